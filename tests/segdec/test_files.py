import os

import pytest

from segdec.files import write_bytes_atomic, write_text_atomic


def test_text_is_written_as_given(tmp_path):
    write_text_atomic(tmp_path / "a.txt", "ä\r\nb\n")
    assert (tmp_path / "a.txt").read_bytes() == "ä\r\nb\n".encode()


def test_failed_write_keeps_the_former_file(tmp_path, monkeypatch):
    path = tmp_path / "a.bin"
    write_bytes_atomic(path, b"before")

    def fail(_descriptor):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        write_bytes_atomic(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_missing_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_text_atomic(tmp_path / "missing" / "a.txt", "")
