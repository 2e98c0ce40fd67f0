"""`segdec watch` records each photograph once, even if the command is killed at any step."""

import errno
import itertools
import json
import os
import re
from pathlib import Path

import pytest

from segdec.command_line import drop_folder
from segdec.command_line.drop_folder import DropFolder
from segdec.command_line.folder_watch import FolderWatch, StatusMessages
from segdec.command_line.incoming_files import IncomingFiles
from segdec.command_line.recorded_inspector import MAX_CHANGES, MAX_FAULTS, RecordedInspector
from segdec.errors import ServiceError
from segdec.schemas import InspectAnswer
from tests.segdec.service_answer import SERVICE_ANSWER

ANSWER = SERVICE_ANSWER | {"warnings": ["This inspection is not recorded: the service keeps no record."]}


def failure(status, code="any"):
    return ServiceError("It failed.", code=code, status=status, request_id="9")


class Service:
    """Records photographs with a new key, unless it fails; calls `meanwhile` before each answer."""

    def __init__(self):
        self.records: dict[str, tuple[bytes, str | None]] = {}
        self.failures: list[Exception] = []
        self.ready_answers: list[bool] = []
        self.asked = 0
        self.keeps = True
        self.meanwhile = lambda: None

    def inspect(self, image, *, station, part_id, idempotency_key, mask):
        assert (station, mask) == ("line3", "none")
        self.asked += 1
        self.meanwhile()
        if self.failures:
            raise self.failures.pop(0)
        repeated = idempotency_key in self.records
        if self.keeps:
            self.records.setdefault(idempotency_key, (image, part_id))
        number = list(self.records).index(idempotency_key) + 1 if self.keeps else None
        return InspectAnswer.model_validate({**ANSWER, "record_id": number, "repeated": repeated})

    def ready(self):
        return self.ready_answers.pop(0) if self.ready_answers else True

    @property
    def images(self):
        return [image for image, _ in self.records.values()]


class Events:
    """A clock that advances with each wait; the command stops after `patience` seconds."""

    def __init__(self, patience=100.0):
        self.now, self.patience, self.waits = 0.0, patience, []

    @property
    def stopped(self):
        return self.now >= self.patience

    def wait(self, seconds):
        self.waits.append(seconds)
        self.now += seconds
        return self.stopped

    wait_for_change = wait


def open_watch(folder, service, *, part=None, unrecorded=False, patience=100.0, answers=True):
    events, messages = Events(patience), StatusMessages()
    pattern = None if part is None else re.compile(part)
    inspector = RecordedInspector(
        service, "line3", pattern, 2.0, unrecorded, events.wait, messages.report_wait, random=lambda: 0.0
    )
    incoming = IncomingFiles(folder, 2.0, lambda: events.now)
    return FolderWatch(DropFolder(folder), incoming, inspector, events, messages, 2.0, 10.0, answers)


def found(folder, outcome="done"):
    return sorted(path.name for path in (folder / outcome).iterdir())


@pytest.fixture
def service():
    return Service()


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "camera"
    folder.mkdir()
    return folder


def drop(folder, name, data=b"photograph", modified=1000):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    os.utime(folder / name, (modified, modified))


def test_photographs_are_inspected_by_age_and_moved_to_done(folder, service, capsys):
    for number, name in enumerate(("c.png", "a.png", "b.png")):
        drop(folder, name, name.encode(), modified=number)
    open_watch(folder, service, part="(?P<part>.)[.]png").run()
    assert list(service.records.values()) == [(b"c.png", "c"), (b"a.png", "a"), (b"b.png", "b")]
    assert found(folder) == [name for stem in "abc" for name in (f"{stem}.png", f"{stem}.png.json")]
    assert json.loads((folder / "done" / "a.png.json").read_text())["record_id"] == 2
    assert found(folder, "failed") == found(folder, ".inspecting") == []
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0] == "c.png\tspot\t0.800\t0.500\trecord 1" and printed.err == ""


def test_folders_of_two_days_stay_apart(folder, service, capsys):
    for number, day in enumerate(("2026-11-25", "2026-11-26")):
        drop(folder, f"{day}/A1_1.png", day.encode(), modified=number)
    drop(folder, "2026-11-26/B2_1.png", b"bad", modified=2)
    drop(folder, "2026-11-26/A1_1.xml")
    service.meanwhile = lambda: service.failures.extend([failure(422)] * (service.asked == 3))
    open_watch(folder, service, part="^(?P<part>[^_]+)_").run()
    assert list(service.records.values()) == [(b"2026-11-25", "A1"), (b"2026-11-26", "A1")]
    outcomes = [path.relative_to(folder).as_posix() for path in folder.rglob("*.png*")]
    assert sorted(outcomes) == [
        "done/2026-11-25/A1_1.png",
        "done/2026-11-25/A1_1.png.json",
        "done/2026-11-26/A1_1.png",
        "done/2026-11-26/A1_1.png.json",
        "failed/2026-11-26/B2_1.png",
        "failed/2026-11-26/B2_1.png.json",
    ]
    details = json.loads((folder / "failed/2026-11-26/B2_1.png.json").read_text())
    assert details["photograph"] == "2026-11-26/B2_1.png"
    printed = capsys.readouterr()
    assert [line.split("\t")[0] for line in printed.out.splitlines()] == [
        "2026-11-25/A1_1.png",
        "2026-11-26/A1_1.png",
        "2026-11-26/B2_1.png",
    ]
    assert printed.err == "ignored: files of the type '.xml' (1, the first is 2026-11-26/A1_1.xml)\n"
    assert found(folder, ".inspecting") == []
    open_watch(folder, service).run()
    assert service.asked == 3


@pytest.mark.parametrize("number", [errno.EACCES, errno.EXDEV])
def test_a_folder_that_keeps_its_files_does_not_stop_the_line(folder, service, monkeypatch, capsys, number):
    for name in ("kept/a.png", "kept/b.png", "c.png"):
        drop(folder, name)
    rename = Path.rename

    def rename_others(path, target):
        if path.parent.name == "kept":
            raise OSError(number, "It stays", str(path))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", rename_others)
    open_watch(folder, service, patience=20.0).run()
    assert found(folder) == ["c.png", "c.png.json"] and found(folder, ".inspecting") == []
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "ignored: the folder kept: its photographs cannot be moved: It stays"


def test_a_file_in_the_place_of_a_result_folder(folder, service):
    for name in ("a.png", "a.png/b.png"):
        drop(folder, name)
        open_watch(folder, service, answers=False).run()
    first, other = found(folder)
    assert first == "a.png" and re.fullmatch(r"b_[0-9a-f]{32}\.png", other)


def test_an_equal_file_is_another_photograph(folder, service):
    for _ in range(3):
        drop(folder, "a.png")
        open_watch(folder, service, answers=False).run()
    first, *others = found(folder)
    assert first == "a.png" and all(re.fullmatch(r"a_[0-9a-f]{32}\.png", name) for name in others)
    assert len(service.records) == 3 and len(others) == 2


def test_unusual_file_names(folder, service):
    names = ["x" * 251 + ".png", "ä" * 120 + ".png", os.fsdecode(b"\xff.png"), "a\nb.png"]
    for name in names:
        drop(folder, name)
    open_watch(folder, service).run()
    assert len(service.records) == 4 and len(found(folder)) == 8


class KilledError(BaseException):
    """Ends the process at once."""


STEPS = [
    (Path, "mkdir"),
    (Path, "rename"),
    (Path, "rmdir"),
    (Path, "replace"),
    (drop_folder, "fsync_folder"),
    (drop_folder, "write_text_atomic"),
    (Service, "inspect"),
]


@pytest.mark.parametrize("before", [True, False])
def test_a_kill_at_any_step_loses_and_repeats_nothing(tmp_path, monkeypatch, before):
    """Kills the command at its first step, then at its second, and so on until it finishes."""
    monkeypatch.setattr(os, "fsync", lambda _: None)  # a kill loses nothing that is not on the disk yet

    def run_until(step, folder, service):
        count = 0

        def guard(call):
            def guarded(*arguments, **named):
                nonlocal count
                count += 1
                if before and count == step:
                    raise KilledError
                result = call(*arguments, **named)
                if count >= step:
                    raise KilledError
                return result

            return guarded

        with monkeypatch.context() as patch:
            for owner, name in STEPS:
                patch.setattr(owner, name, guard(getattr(owner, name)))
            try:
                open_watch(folder, service).run()
            except KilledError:
                return False
        return True

    step, through = 0, False
    while not through:
        step += 1
        folder, service = tmp_path / str(step), Service()
        folder.mkdir()
        for number, name in enumerate(("1.png", "day/2.png"), start=1):
            drop(folder, name, b"%d" % number, modified=number)
        through = run_until(step, folder, service)
        taken = not (folder / "1.png").exists()
        drop(folder, "1.png" if taken else "3.png", b"new", modified=3)  # the camera may count anew
        open_watch(folder, service).run()
        assert sorted(service.images) == [b"1", b"2", b"new"], step
        names = [path.relative_to(folder / "done").as_posix() for path in (folder / "done").rglob("*.*")]
        assert {"1.png", "1.png.json", "day/2.png", "day/2.png.json"} < set(names) and len(names) == 6, names
        pictures = [name for name in names if name.endswith(".png")]
        assert sorted((folder / "done" / name).read_bytes() for name in pictures) == [b"1", b"2", b"new"]
        assert found(folder, "failed") == found(folder, ".inspecting") == []
    assert step > 20


def test_a_growing_photograph_is_read_again_but_not_for_ever(folder, service):
    service.meanwhile = lambda: claimed(folder).write_bytes(next(contents))

    contents = itertools.repeat(b"the whole of it")
    drop(folder, "a.png", b"half")
    service.failures = [failure(422, "truncated_image")]
    open_watch(folder, service).run()
    assert service.images == [b"the whole of it"] and service.asked == 2
    assert found(folder) == ["a.png", "a.png.json"]

    contents = map(bytes, itertools.count(100))
    drop(folder, "a.png")
    service.failures = [failure(422, "truncated_image")] * 99
    open_watch(folder, service).run()
    assert service.asked == 2 + MAX_CHANGES
    assert json.loads((folder / "failed" / "a.png.json").read_text())["code"] == "still_changing"


def claimed(folder):
    return next((folder / ".inspecting").glob("*/a.png"))


@pytest.mark.parametrize(
    ("status", "code", "times"),
    [
        (422, "truncated_image", 1),
        (415, "unsupported_type", 1),
        (413, "too_large", 1),
        (502, "replica_lost", 1),
        (500, "any", MAX_FAULTS),
        (504, "any", MAX_FAULTS),
        (None, "unreachable", MAX_FAULTS),
    ],
)
def test_a_photograph_that_fails_does_not_stop_the_line(folder, service, status, code, times, capsys):
    drop(folder, "a.png", b"bad", modified=1)
    drop(folder, "b.png", modified=2)
    service.failures = [failure(status, code)] * times
    open_watch(folder, service).run()
    assert found(folder, "failed") == ["a.png", "a.png.json"] and found(folder) == ["b.png", "b.png.json"]
    details = json.loads((folder / "failed" / "a.png.json").read_text())
    assert (details["photograph"], details["status"], details["code"]) == ("a.png", status, code)
    assert (details["detail"], details["request_id"]) == ("It failed.", "9")
    assert f"a.png\tNOT_INSPECTED\t{code}\n" in capsys.readouterr().out


def test_a_name_without_a_part_id_is_not_sent(folder, service):
    for name in ("7.png", "a_.png", f"{'x' * 129}_.png", os.fsdecode(b"\xff_.png")):
        drop(folder, name)
    open_watch(folder, service, part="^(?P<part>[^_]+)_").run()
    assert found(folder) == ["a_.png", "a_.png.json"]
    assert json.loads((folder / "failed" / "7.png.json").read_text())["code"] == "no_part"
    assert len(found(folder, "failed")) == 6


@pytest.mark.parametrize(
    "failures", [[failure(503, "queue_full")] * 20, [failure(429)] * 20, [failure(None, "unreachable")] * 4]
)
def test_an_unavailable_service_is_retried(folder, service, failures, capsys):
    for name in ("a.png", "b.png"):
        drop(folder, name)
    service.failures, service.ready_answers = list(failures), [False, False]
    watch = open_watch(folder, service, patience=700.0)
    watch.run()
    assert len(service.records) == 2 and len(found(folder)) == 4
    assert service.asked == len(failures) + 2  # nothing is sent until the service is ready
    waits = [1.0, 2.0, 4.0, 8.0, 16.0, *[30.0] * 17]
    assert watch.events.waits[2 : 4 + len(failures)] == waits[: len(failures) + 2]
    assert capsys.readouterr().err == "waiting: It failed.\ninspecting again\n"


def test_a_wrong_request_stops_and_loses_nothing(folder, service):
    drop(folder, "a.png")
    for status in (400, 401, 403, 404, 405):
        service.failures = [failure(status)]
        with pytest.raises(ServiceError):
            open_watch(folder, service).run()
        assert found(folder) == found(folder, "failed") == []
    open_watch(folder, service).run()
    assert found(folder) == ["a.png", "a.png.json"]


def test_unrecorded_answers_are_retried_unless_accepted(folder, service, capsys):
    drop(folder, "a.png")
    service.keeps = False
    open_watch(folder, service).run()
    assert found(folder) == []
    assert "the service keeps no record. To accept that, start with --unrecorded" in capsys.readouterr().err
    open_watch(folder, service, unrecorded=True).run()
    assert found(folder) == ["a.png", "a.png.json"]
    assert capsys.readouterr().out == "a.png\tspot\t0.800\t0.500\trecord none\n"


def test_a_failing_disk_is_retried(folder, service, monkeypatch, capsys):
    drop(folder, "a.png")
    write, failures = drop_folder.write_text_atomic, iter([OSError(28, "No space left on device")] * 2)

    def fail_twice(*arguments):
        for error in failures:
            raise error
        write(*arguments)

    monkeypatch.setattr(drop_folder, "write_text_atomic", fail_twice)
    open_watch(folder, service).run()
    assert len(service.records) == 1 and service.asked == 3 and found(folder) == ["a.png", "a.png.json"]
    assert "waiting: the folder: No space left on device" in capsys.readouterr().err


def test_a_closed_pipe_stops_the_command(folder, service, monkeypatch):
    def fail(*_):
        raise BrokenPipeError

    monkeypatch.setattr("segdec.command_line.folder_watch._print_row", fail)
    drop(folder, "a.png")
    with pytest.raises(BrokenPipeError):
        open_watch(folder, service).run()
    assert found(folder) == ["a.png", "a.png.json"]


def test_a_file_that_cannot_be_read_does_not_stop_the_line(folder, service, monkeypatch):
    for number, name in enumerate(("a.png", "b.png", "c.png")):
        drop(folder, name, bytes(number + 2), modified=number)
    monkeypatch.setattr("segdec.command_line.recorded_inspector.MAX_FILE_BYTES", 3)
    open_file = Path.open

    def open_readable(path, *arguments, **named):
        if path.name == "a.png" and "rb" in arguments:
            raise PermissionError(13, "Permission denied", str(path))
        return open_file(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", open_readable)
    open_watch(folder, service).run()
    monkeypatch.undo()
    for name, code in (("a.png", "unreadable_file"), ("c.png", "too_large")):
        assert json.loads((folder / "failed" / f"{name}.json").read_text())["code"] == code
    assert service.images == [bytes(3)] and found(folder) == ["b.png", "b.png.json"]
