import pytest

from datasets.text_file import read_json
from segdec.errors import DatasetError


def test_json_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": [1]}')
    assert read_json(path) == {"a": [1]}


@pytest.mark.parametrize("data", [b"", b'{"images": [', b"[" * 100_000, b"\xff\xfe"])
def test_broken_json_is_one_clear_error(tmp_path, data):
    path = tmp_path / "a.json"
    path.write_bytes(data)
    with pytest.raises(DatasetError, match=r"a\.json is no"):
        read_json(path)


def test_missing_and_unreadable_files_are_named(tmp_path):
    with pytest.raises(DatasetError, match=r"gone\.json does not exist"):
        read_json(tmp_path / "gone.json")
    with pytest.raises(DatasetError, match="cannot be read"):
        read_json(tmp_path)
