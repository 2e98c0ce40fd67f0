import os
import pickle
import random

import pytest

from datasets import published_pickle
from datasets.published_pickle import MAX_BYTES, read_pickle
from segdec.errors import DatasetError

CONTENT = ([("10000", True), (10001, False)], [("20000", True)] * 3)


@pytest.fixture
def write(tmp_path):
    def write_bytes(data):
        path = tmp_path / "split_16.pyb"
        path.write_bytes(data)
        return path

    return write_bytes


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_lists_are_read_in_every_protocol(write, protocol):
    assert read_pickle(write(pickle.dumps(CONTENT, protocol=protocol))) == CONTENT


class Evil:
    """Makes the folder `mark` when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (os.mkdir, (str(self.mark),))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_code_in_a_pickle_is_refused_and_not_run(write, tmp_path, monkeypatch, protocol):
    mark = tmp_path / "ran"
    data = pickle.dumps(([("10000", Evil(mark))], []), protocol=protocol)
    path = write(data)
    with pytest.raises(DatasetError, match=r"more than lists of names .*GLOBAL.*Nothing of it was run"):
        read_pickle(path)
    monkeypatch.setattr(published_pickle, "_check_steps", lambda *_: None)
    with pytest.raises(DatasetError, match=r"asks for posix\.mkdir"):
        read_pickle(path)
    assert not mark.exists()
    pickle.loads(data)
    assert mark.exists()  # the file is as bad as it looks


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no pickle"),
        (b"<html>", "no pickle"),
        (pickle.dumps(CONTENT)[:-9], "no pickle, or a damaged one"),
        (b"]a.", "damaged"),
        (b"]r\xff\xff\xff\x7f.", "an object numbered 2147483647"),
        (pickle.dumps({"train": []}), "more than lists of names"),
        (b"\x80\x04" + b"]" * MAX_BYTES, "larger than"),
    ],
)
def test_damaged_file_is_refused(write, data, message):
    with pytest.raises(DatasetError, match=message):
        read_pickle(write(data))


def test_missing_file_is_named(tmp_path):
    with pytest.raises(DatasetError, match=r"split_16\.pyb cannot be read \(No such file"):
        read_pickle(tmp_path / "split_16.pyb")


def test_changed_bytes_give_a_value_or_one_error(write):
    """Two hundred files with three bytes changed: no other exception, no hang."""
    source, refused = random.Random(5), 0
    for _ in range(200):
        data = bytearray(pickle.dumps(CONTENT, protocol=source.randrange(6)))
        for _ in range(3):
            data[source.randrange(len(data))] = source.randrange(256)
        try:
            read_pickle(write(bytes(data)))
        except DatasetError:
            refused += 1
    assert 100 < refused < 200
