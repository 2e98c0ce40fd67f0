import errno
import fcntl
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from segdec.runtime.files import atomic_folder, remove_temporary_files, write_bytes_atomic, write_text_atomic

ROOT = Path(__file__).parents[3]


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


def fill(folder, text, *, overwrite=False, failing=False):
    with atomic_folder(folder, overwrite=overwrite) as staged:
        assert (staged.parent, list(staged.iterdir())) == (folder.parent, [])
        (staged / "a.txt").write_text(text)
        if failing:
            raise KeyboardInterrupt


def test_new_folder_appears_with_its_parents(tmp_path):
    fill(tmp_path / "deep" / "new", "content")
    assert (tmp_path / "deep" / "new" / "a.txt").read_text() == "content"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["new"]


def test_existing_folder_is_rejected_before_anything_is_staged(tmp_path):
    fill(tmp_path / "old", "before")
    with pytest.raises(FileExistsError, match="old exists"), atomic_folder(tmp_path / "old"):
        pytest.fail("the block must not run")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_existing_folder_is_replaced_atomically(tmp_path):
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


def test_temporary_files_of_killed_writers_are_removed(tmp_path, monkeypatch):
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
    remove_temporary_files(tmp_path, "one")
    assert sorted(path.name[:5] for path in tmp_path.glob(".*.tmp") if path.is_dir()) == [".two."]
    remove_temporary_files(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"kept.tmp", ".hidden"}
    remove_temporary_files(tmp_path / "nowhere")


# === Killed writers ===

WRITER = """
import sys
from pathlib import Path
from segdec.runtime.files import atomic_folder
with atomic_folder(Path(sys.argv[1]), overwrite=True) as staged:
    (staged / "half.txt").write_text("half")
    print("writing", flush=True)
    sys.stdin.read()
"""


@contextmanager
def writer(folder):
    """A process that is writing `folder` and succeeds unless it is killed."""
    command = [sys.executable, "-c", WRITER, str(folder)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "writing\n"
        yield process


@pytest.mark.parametrize("existed", [True, False])
def test_next_writer_removes_temporary_folders_of_killed_ones(existed, tmp_path):
    if existed:
        fill(tmp_path / "model", "before")
    with writer(tmp_path / "model") as killed:
        killed.kill()
    assert len(list(tmp_path.glob(".model.*.tmp"))) == 1
    fill(tmp_path / "model", "after", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_temporary_folders_of_running_writers_stay(tmp_path):
    with writer(tmp_path / "model") as running:
        fill(tmp_path / "model", "first", overwrite=True)
        (theirs,) = tmp_path.glob(".model.*.tmp")
        assert (theirs / "half.txt").read_text() == "half"
        running.communicate("")
        assert running.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model" / "half.txt").read_text() == "half"


@pytest.mark.parametrize(("age_s", "removed"), [(60, False), (2 * 86_400, True)])
def test_without_locks_age_decides(age_s, removed, tmp_path, monkeypatch):
    leftover = tmp_path / f".model.{'0' * 32}.tmp"
    leftover.mkdir()
    os.utime(leftover, (time.time() - age_s,) * 2)

    def unsupported(*_):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    fill(tmp_path / "model", "")
    assert leftover.exists() is not removed
