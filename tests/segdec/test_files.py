import os
import shutil
from pathlib import Path

import pytest

from segdec.files import new_folder, remove_leftovers, write_bytes_atomic, write_text_atomic


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


def fill(folder, text, *, overwrite=False, failing=False):
    with new_folder(folder, overwrite=overwrite) as staged:
        assert (staged.parent, list(staged.iterdir())) == (folder.parent, [])
        (staged / "a.txt").write_text(text)
        if failing:
            raise KeyboardInterrupt


def test_new_folder_appears_with_its_parents(tmp_path):
    fill(tmp_path / "deep" / "new", "content")
    assert (tmp_path / "deep" / "new" / "a.txt").read_text() == "content"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["new"]


def test_failed_folder_vanishes(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "new", "content", failing=True)
    assert list(tmp_path.iterdir()) == []


def test_existing_folder_is_refused_before_anything_is_staged(tmp_path):
    fill(tmp_path / "old", "before")
    with pytest.raises(FileExistsError, match="old exists"), new_folder(tmp_path / "old"):
        pytest.fail("the block must not run")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_file_is_never_replaced_by_a_folder(tmp_path):
    (tmp_path / "file").write_text("before")
    with pytest.raises(FileExistsError):
        fill(tmp_path / "file", "after", overwrite=True)
    assert (tmp_path / "file").read_text() == "before"


def test_existing_folder_is_replaced_whole(tmp_path):
    fill(tmp_path / "old", "before")
    (tmp_path / "old" / "b.txt").write_text("stale")
    fill(tmp_path / "old", "after", overwrite=True)
    assert [path.name for path in tmp_path.rglob("*")] == ["old", "a.txt"]
    assert (tmp_path / "old" / "a.txt").read_text() == "after"


@pytest.mark.parametrize("where", ["block", "swap"])
def test_existing_folder_comes_back_when_its_replacement_fails(tmp_path, where, monkeypatch):
    fill(tmp_path / "old", "before")
    rename = Path.rename

    def fail_to_put_in_place(path, target):
        if Path(target).name == "old" and (path / "a.txt").read_text() == "after":
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_to_put_in_place)
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "old", "after", overwrite=True, failing=where == "block")
    assert [path.name for path in tmp_path.rglob("*")] == ["old", "a.txt"]
    assert (tmp_path / "old" / "a.txt").read_text() == "before"


def test_folder_that_appeared_meanwhile_is_kept(tmp_path):
    with pytest.raises(OSError), new_folder(tmp_path / "new"):
        fill(tmp_path / "new", "theirs")
    assert [path.name for path in tmp_path.rglob("*")] == ["new", "a.txt"]


def test_link_to_a_folder_stays_a_link(tmp_path):
    fill(tmp_path / "disk" / "real", "before")
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "real")
    with new_folder(tmp_path / "link", overwrite=True) as staged:
        (staged / "a.txt").write_text("after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "disk" / "real" / "a.txt").read_text() == "after"


def test_what_killed_writers_left_is_removed(tmp_path, monkeypatch):
    (tmp_path / "kept.tmp").write_text("not ours")
    (tmp_path / ".hidden").write_text("not ours")
    with monkeypatch.context() as patch:  # a killed process cleans nothing up
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        patch.setattr(Path, "replace", lambda *_: None)
        patch.setattr(Path, "rename", lambda *_: None)
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        write_bytes_atomic(tmp_path / "a.bin", b"")
        fill(tmp_path / "one", "")
        fill(tmp_path / "two", "")
    assert len(list(tmp_path.iterdir())) == 5
    remove_leftovers(tmp_path, "one")
    assert sorted(path.name[:5] for path in tmp_path.glob(".*.tmp") if path.is_dir()) == [".two."]
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"kept.tmp", ".hidden"}
    remove_leftovers(tmp_path / "nowhere")
