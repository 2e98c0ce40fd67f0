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
