"""Jobs run one after the other, state their end, and leave no files."""

import asyncio
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from api.errors import RequestError
from api.jobs import runner
from api.jobs.runner import JobRunner
from api.jobs.stored_jobs import list_jobs
from api.jobs.tables import jobs as table
from segdec.errors import SegdecError
from tests.api.jobs.trial_job import TRIAL, TrialJob


class Jobs:
    """A runner with a data set."""

    def __init__(self, record, data_set, folder):
        self.record, self.data_set, self.folder = record, data_set, folder
        self.runner = JobRunner(record, folder, retry_after_s=1)

    async def start(self, work, kind=TRIAL):
        async with self.runner.open_folder(kind) as folder:
            return await self.runner.start(folder, TrialJob(self.data_set, work, kind))

    async def wait(self):
        await asyncio.gather(*self.runner._tasks)

    def run(self, work):
        """Runs a job until its end."""

        async def start_and_wait():
            await self.start(work)
            await self.wait()

        asyncio.run(start_and_wait())

    def shown(self):
        """State, progress and error of each job."""
        found = self.record.query(list_jobs, TRIAL, self.data_set, datetime.now(UTC), 9)
        return [(one.state, one.done, one.error) for one in reversed(found)]


@pytest.fixture
def jobs(record, data_set, tmp_path):
    return Jobs(record, data_set, tmp_path / "jobs")


def failing_with(error):
    async def fail():
        raise error

    return fail


def test_jobs_of_a_queue_run_one_after_the_other_and_leave_no_files(jobs):
    steps = []

    async def start_both():
        started = asyncio.Event()

        async def work():
            steps.append("begins")
            await started.wait()
            steps.append("ends")

        for _ in range(2):
            await jobs.start(work)
        assert len(list(jobs.folder.iterdir())) == 2
        started.set()
        await jobs.wait()

    asyncio.run(start_both())
    assert steps == ["begins", "ends"] * 2
    assert jobs.shown() == [("done", 1, None)] * 2
    assert list(jobs.folder.iterdir()) == []


def test_jobs_of_other_queues_do_not_wait(jobs):
    async def start_both():
        ended = asyncio.Event()

        async def end():
            ended.set()

        await jobs.start(ended.wait)
        await jobs.start(end, replace(TRIAL, queue="other"))
        await jobs.wait()

    asyncio.run(start_both())
    assert jobs.shown() == [("done", 1, None)] * 2


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_running_job_stays_running_when_the_clock_jumps(jobs, hours):
    shown, only = [], replace(TRIAL, only_latest=True)

    async def work():
        before = datetime.now(UTC) - timedelta(hours=hours)  # as after a jump of the clock by `hours`
        jobs.record.change(lambda connection: connection.execute(update(table).values(alive_at=before)))
        shown.extend(jobs.shown())
        with pytest.raises(RequestError) as caught:
            await jobs.start(work, only)
        assert caught.value.code == "job_running"

    jobs.run(work)
    assert shown == [("running", 0, None)]
    assert jobs.shown() == [("done", 1, None)]


def fail_writes(jobs, monkeypatch, count):
    """Lets the next `count` writes fail, as without a database."""
    write, left = jobs.record.write, iter(range(count))

    async def fail(*change):
        if next(left, None) is not None:
            raise RequestError(503, "record_unavailable", "The record cannot be used now.")
        return await write(*change)

    monkeypatch.setattr(jobs.record, "write", fail)


@pytest.mark.parametrize("error", [None, SegdecError("The file is empty.")])
def test_the_end_of_a_job_is_stored_when_the_database_answers_again(jobs, monkeypatch, error):
    monkeypatch.setattr(runner, "KEEP_ALIVE_INTERVAL_S", 0.0)

    async def work():
        fail_writes(jobs, monkeypatch, 3)
        if error is not None:
            raise error

    jobs.run(work)
    assert jobs.shown() == [("done", 1, None) if error is None else ("failed", 1, str(error))]


@pytest.mark.parametrize("is_ended", [False, True])
def test_a_service_stops_although_the_end_of_a_job_cannot_be_stored(jobs, monkeypatch, is_ended):
    async def start_and_close():
        begun = asyncio.Event()

        async def work():
            fail_writes(jobs, monkeypatch, 10**9)
            begun.set()
            if not is_ended:
                await asyncio.Event().wait()

        await jobs.start(work)
        await begun.wait()
        if is_ended:
            while list(jobs.folder.iterdir()):
                await asyncio.sleep(0)
        async with asyncio.timeout(30):
            await jobs.runner.close()

    asyncio.run(start_and_close())
    assert jobs.shown() == [("running", 0, None)]


def test_a_stopped_service_states_that_its_jobs_were_interrupted(jobs):
    async def start_and_close():
        begun = asyncio.Event()

        async def work():
            begun.set()
            await asyncio.Event().wait()

        await jobs.start(work)
        await begun.wait()
        await jobs.runner.close()

    asyncio.run(start_and_close())
    assert jobs.shown() == [("failed", 1, TRIAL.interrupted.text)]
    assert list(jobs.folder.iterdir()) == []


def test_too_many_jobs_are_refused(jobs, monkeypatch):
    monkeypatch.setattr(runner, "MAX_WAITING", 1)

    async def start_two():
        refused = asyncio.Event()
        await jobs.start(refused.wait)
        with pytest.raises(RequestError, match="1 jobs are waiting or running") as caught:
            await jobs.start(refused.wait)
        assert (caught.value.status, caught.value.headers) == (503, {"Retry-After": "1"})
        await jobs.start(refused.wait, replace(TRIAL, queue="other"))
        refused.set()
        await jobs.wait()
        await jobs.start(refused.wait)
        await jobs.wait()

    asyncio.run(start_two())
    assert [state for state, *_ in jobs.shown()] == ["done"] * 3


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SegdecError("The file is empty."), "The file is empty."),
        (RequestError(409, "gone", "It is gone."), "It is gone."),
        (OSError(28, "No space"), "The files cannot be written: No space. Free space on the disk."),
        (ZeroDivisionError(), runner.BROKEN.text),
    ],
)
def test_errors_are_stored_but_those_of_the_service_are_only_logged(jobs, caplog, error, text):
    jobs.run(failing_with(error))
    assert jobs.shown() == [("failed", 1, text)]
    assert ("ZeroDivisionError" in caplog.text) == (text == runner.BROKEN.text)


def test_progress_is_stored_while_a_job_runs(jobs, monkeypatch):
    monkeypatch.setattr(runner, "KEEP_ALIVE_INTERVAL_S", 0.0)

    async def work():
        async with asyncio.timeout(60):
            while jobs.shown() != [("running", 1, None)]:
                await asyncio.sleep(0)

    jobs.run(work)
    assert jobs.shown() == [("done", 1, None)]


def test_jobs_of_a_killed_service_are_interrupted_when_the_next_one_starts(jobs):
    """The folder of a killed service stays, without its lock; that of another service is locked."""

    async def start_and_restart():
        stopped = asyncio.Event()
        for _ in range(2):
            await jobs.start(stopped.wait)
        killed, running = sorted(jobs.folder.iterdir(), key=lambda folder: int((folder / "job").read_text()))
        shutil.copytree(killed, jobs.folder / "copy")
        killed.rename(jobs.folder.parent / "away")
        await JobRunner(jobs.record, jobs.folder, retry_after_s=1).end_abandoned()
        assert list(jobs.folder.iterdir()) == [running]
        assert jobs.shown() == [("failed", 0, TRIAL.interrupted.text), ("running", 0, None)]
        stopped.set()
        await jobs.wait()

    asyncio.run(start_and_restart())
    assert jobs.shown() == [("failed", 0, TRIAL.interrupted.text), ("done", 1, None)]


def test_damaged_ids_of_killed_services_do_not_prevent_the_interruption_of_their_jobs(jobs):
    async def start_and_restart():
        stopped = asyncio.Event()
        await jobs.start(stopped.wait)
        (running,) = jobs.folder.iterdir()
        shutil.copytree(running, jobs.folder / "killed")
        for number, content in enumerate([b"9" * 30, b"1" * 5000, b"-1", b"", b"\xff"]):
            (jobs.folder / f"{number}").mkdir()
            (jobs.folder / f"{number}/job").write_bytes(content)
        await JobRunner(jobs.record, jobs.folder, retry_after_s=1).end_abandoned()
        assert list(jobs.folder.iterdir()) == [running]
        assert jobs.shown() == [("failed", 0, TRIAL.interrupted.text)]
        stopped.set()
        await jobs.wait()

    asyncio.run(start_and_restart())


def test_folders_of_killed_services_are_removed(jobs):
    (jobs.folder / "0123").mkdir(parents=True)
    (jobs.folder / "0123/archive.zip").write_bytes(b"")

    async def open_two():
        async with jobs.runner.open_folder(TRIAL) as first, jobs.runner.open_folder(TRIAL) as second:
            assert set(jobs.folder.iterdir()) == {first.path, second.path}

    asyncio.run(open_two())
    assert list(jobs.folder.iterdir()) == []
