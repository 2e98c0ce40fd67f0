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


def fail(*_):
    raise OSError(errno.EOPNOTSUPP, "Operation not supported")


def test_failed_write_keeps_the_former_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_text_atomic(path, "ä\r\nb\n")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="not supported"):
        write_text_atomic(path, "after")
    assert path.read_bytes() == "ä\r\nb\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def fill(folder, text, *, overwrite=False, failing=False):
    with atomic_folder(folder, overwrite=overwrite) as staged:
        assert (staged.parent, list(staged.iterdir())) == (folder.parent, [])
        (staged / "a.txt").write_text(text)
        if failing:
            raise KeyboardInterrupt


def test_folder_appears_with_its_parents_and_is_replaced_only_if_allowed(tmp_path):
    folder = tmp_path / "deep" / "new"
    fill(folder, "before")
    (folder / "b.txt").write_text("stale")
    with pytest.raises(FileExistsError, match="new exists"), atomic_folder(folder):
        pytest.fail("the block must not run")
    assert (folder / "a.txt").read_text() == "before"
    fill(folder, "after", overwrite=True)
    assert [path.name for path in tmp_path.rglob("*")] == ["deep", "new", "a.txt"]
    assert (folder / "a.txt").read_text() == "after"


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
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:
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


@pytest.mark.parametrize("target", ["1", "2", "2.replaced"])
def test_next_writer_removes_temporary_folders_of_other_targets(target, tmp_path):
    fill(tmp_path / "1", "before")
    with writer(tmp_path / "running") as running:
        with writer(tmp_path / target) as killed:
            killed.kill()
        fill(tmp_path / "3", "")
        assert {path.name[:6] for path in tmp_path.glob(".*")} == {".runni"}
        running.communicate("")


def test_folder_whose_replacement_was_killed_stays_until_it_is_written_again(tmp_path, monkeypatch):
    fill(tmp_path / "model", "before")
    with monkeypatch.context() as patch:  # a killed process neither undoes nor removes anything
        rename, renamed = Path.rename, []

        def rename_once(path, target):
            if not renamed:
                renamed.append(rename(path, target))

        patch.setattr(Path, "rename", rename_once)
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        fill(tmp_path / "model", "after", overwrite=True)
    fill(tmp_path / "other", "")
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "model", "again", failing=True)
    for name in (None, "model"):
        remove_temporary_files(tmp_path, name)
    (kept,) = tmp_path.glob(".*")
    assert (kept / "a.txt").read_text() == "before"
    fill(tmp_path / "model", "again")
    assert {path.name for path in tmp_path.iterdir()} == {"model", "other"}


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

    monkeypatch.setattr(fcntl, "flock", fail)
    fill(tmp_path / "model", "")
    assert leftover.exists() is not removed
