"""`segdec watch` as a command: start, change events, signals, errors."""

import os
import signal
import sys
import threading

import numpy as np
import pytest

from segdec.__main__ import main
from segdec.command_line.folder_events import FolderEvents
from segdec.images import encode_png
from segdec.runtime.files import folder_lock

PICTURE = encode_png(np.full((8, 12), 90, np.uint8))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "camera").mkdir()
    return tmp_path / "camera"


def when_exists(path, act):
    """Calls `act` in a thread as soon as a file exists."""

    def wait():
        while not path.exists():
            threading.Event().wait(0.01)
        act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_photographs_are_inspected_until_a_signal(folder, stub_service, service_url, tmp_path, number, capfd):
    stub_service.key = "k1"
    (tmp_path / "key").write_text("k1\n")
    (folder / "A7_left.png").write_bytes(PICTURE)
    (folder / "B8_left.png").write_bytes(b"no picture")
    handlers = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    flags = ["--station", "line3", "--part-pattern", "^(?P<part>[^_.]+)", "--answers", "--settle", "0.02"]
    flags += ["--api-key-file", str(tmp_path / "key"), "--look-every", "1"]
    done = folder / "done"
    (folder / ".new").mkdir()
    (folder / ".new" / "C9.png").write_bytes(PICTURE)
    threads = [
        when_exists(done / "A7_left.png.json", lambda: (folder / ".new").rename(folder / "2026-11-25")),
        when_exists(done / "2026-11-25" / "C9.png", lambda: os.kill(os.getpid(), number)),
    ]
    assert main(["watch", str(folder), "--url", service_url, *flags]) == 0
    for thread in threads:
        thread.join()
    assert handlers == [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    assert sorted(part["part_id"] for part in stub_service.parts) == ["A7", "C9"]
    assert {part["station"] for part in stub_service.parts} == {"line3"}
    assert sorted(path.name for path in (folder / "failed").iterdir()) == ["B8_left.png", "B8_left.png.json"]
    printed = capfd.readouterr()
    assert "A7_left.png\tgood\t0.353\t0.500\trecord 1\n" in printed.out and "waiting" not in printed.err
    assert "2026-11-25/C9.png\tgood\t" in printed.out and "ignored: hidden folders (1, " in printed.err


def test_changes_and_stop_end_the_wait(folder):
    warnings = []
    (folder / "day").mkdir()
    for change in ((folder / "a.png").touch, (folder / "day" / "a.png").touch, None):
        events = FolderEvents(folder, warnings.append)
        waiting = threading.Thread(target=events.wait_for_change, args=(600,), daemon=True)
        events.start()
        waiting.start()
        while waiting.is_alive():
            assert not warnings
            (change or events.stop)()
            waiting.join(0.01)
        assert events.stopped is (change is None)
        events.stop()
        assert events.wait(600)


def test_warning_for_a_folder_without_events(tmp_path):
    warnings = []
    events = FolderEvents(tmp_path / "none", warnings.append)
    events.start()
    while not warnings:
        events.wait_for_change(0.01)
    assert "it is scanned at regular intervals" in warnings[0]


def refused(capsys, *flags):
    with pytest.raises(SystemExit) as ended:
        main(["watch", *map(str, flags), "--url", "http://127.0.0.1:1"])
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_one_command_watches_a_folder(folder, capsys):
    (folder / ".inspecting").mkdir()
    with folder_lock(folder / ".inspecting"):
        assert "is watched by another process. Expected one per folder" in refused(capsys, folder)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--settle", "0"], "'0' is not a time. Expected seconds"),
        (["--look-every", "nan"], "'nan' is not a time"),
        (["--part-pattern", "("], "'(' is not a regular expression"),
        (["--part-pattern", "a"], "'a' has no group 'part'"),
        (["--station", "a\nb"], "is not a name. The character U+000A is not allowed"),
    ],
)
def test_wrong_flags(folder, capsys, flags, words):
    assert words in refused(capsys, folder, *flags)


@pytest.mark.parametrize("package", ["watchfiles", "httpx"])
def test_without_its_packages_the_extra_is_named(folder, package, monkeypatch, capsys):
    users = ("segdec.client", "segdec.command_line.folder_events")
    for name in [name for name in sys.modules if name.startswith(users)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    message = f"The package '{package}' is not installed. Install the extra 'watch'"
    assert message in refused(capsys, folder)
