"""Complete photographs of a folder, and their order."""

import os
from types import SimpleNamespace

import pytest

from segdec.command_line.incoming_files import IncomingFiles


@pytest.fixture
def clock():
    return SimpleNamespace(now=0.0)


@pytest.fixture
def incoming(tmp_path, clock):
    return IncomingFiles(tmp_path, 2.0, lambda: clock.now)


def drop(folder, name, data=b"x", modified=1000):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    os.utime(folder / name, (modified, modified))


def names(incoming):
    return [path.name for path in incoming.stable_files()]


@pytest.mark.parametrize("change", [{"data": b"xy"}, {"modified": 1001}])
def test_a_change_restarts_the_wait(incoming, clock, tmp_path, change):
    assert names(incoming) == [] and not incoming.has_files
    drop(tmp_path, "a.png")
    assert names(incoming) == [] and incoming.has_files
    clock.now = 1.5
    drop(tmp_path, "a.png", **change)
    for now, stable_files in ((2.0, []), (3.4, []), (4.0, ["a.png"])):
        clock.now = now
        assert names(incoming) == stable_files


def test_other_files_are_ignored(incoming, clock, tmp_path):
    for name in (".a.png", "~a.png", "$a.png", "a.png.tmp", "a.png.part", "a.xml", "png"):
        drop(tmp_path, name)
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "link.png").symlink_to(tmp_path / "a.xml")
    incoming.stable_files()
    clock.now = 2.0
    assert names(incoming) == [] and not incoming.has_files
    listed = {kind: ignored.count for kind, ignored in incoming.ignored.items()}
    assert listed == {
        "hidden or temporary files": 3,
        "files of the type '.tmp'": 1,
        "files of the type '.part'": 1,
        "files of the type '.xml'": 1,
        "files of the type ''": 1,
        "links to files": 1,
    }


def complete(incoming, clock, folder):
    incoming.stable_files()
    clock.now += 2.0
    return [path.relative_to(folder).as_posix() for path in incoming.stable_files()]


def test_subfolders_are_scanned_but_not_the_results(incoming, clock, tmp_path):
    """Existing ones, created later, moved in and linked; each photograph once."""
    for name in [
        "a.png",
        "day/1/a.png",
        "done/b.png",
        "failed/day/b.png",
        ".inspecting/1/b.png",
        "x/done/a.png",
    ]:
        drop(tmp_path, name)
    (tmp_path / "results").symlink_to(tmp_path / "done")
    assert complete(incoming, clock, tmp_path) == ["a.png", "day/1/a.png", "x/done/a.png"]
    drop(tmp_path, "new/a.png", modified=1001)
    elsewhere = tmp_path.with_name(f"{tmp_path.name}_elsewhere")
    drop(elsewhere, "day/c.png", modified=1002)
    drop(elsewhere, "day/d/c.png", modified=1003)
    (elsewhere / "day").rename(tmp_path / "moved")
    drop(elsewhere, "linked/e.png", modified=1004)
    (tmp_path / "a_link").symlink_to(elsewhere / "linked")
    for name, target in {"circle": ".", "moved/again": "day", "lost": "none"}.items():
        (tmp_path / name).symlink_to(tmp_path / target)
    added = ["new/a.png", "moved/c.png", "moved/d/c.png", "a_link/e.png"]
    assert complete(incoming, clock, tmp_path)[3:] == added
    assert set(incoming.ignored) == {"files of the type ''"}  # the lost link


def test_ignored_folders_are_named(incoming, clock, tmp_path, monkeypatch):
    for name in [
        ".hidden/a.png",
        "other/a.png",
        "other/.inspecting/x",
        "closed/a.png",
        "full/a.png",
        "full/day/b.png",
    ]:
        drop(tmp_path, name)
    (tmp_path / "above").symlink_to(tmp_path.parent)
    scan = os.scandir

    def scan_readable(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scan_readable)
    incoming.skip_folder(tmp_path / "full", "Read-only file system")
    assert complete(incoming, clock, tmp_path) == ["full/day/b.png"]
    assert sorted(incoming.ignored) == [
        "hidden folders",
        "the folder above: it contains the watched folder",
        "the folder closed: Permission denied",
        "the folder full: Read-only file system",
        "the folder other: another command watches it, or did: remove its '.inspecting' to watch it here",
    ]
    clock.now += 60.0
    assert complete(incoming, clock, tmp_path) == ["full/a.png", "full/day/b.png"]  # tried again


def test_only_the_oldest_are_remembered(incoming, clock, tmp_path, monkeypatch):
    """The oldest come first, and of one time by name."""
    monkeypatch.setattr("segdec.command_line.incoming_files.MAX_TRACKED_FILES", 3)
    for number in (3, 1, 6, 0, 2, 5, 4):
        drop(tmp_path, f"{number}.png", modified=number // 2)
    found = []
    while len(found) < 7:
        for path in incoming.stable_files():
            found.append(path.name)
            path.unlink()
        assert len(incoming._seen) <= 3
        clock.now += 1.0
    assert found == [f"{number}.png" for number in range(7)]
