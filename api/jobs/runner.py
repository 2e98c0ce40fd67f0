"""Runs jobs beside the requests of the service."""

import asyncio
import logging
import shutil
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from api.errors import RequestError
from api.jobs.job_kind import Job, JobKind
from api.jobs.schemas import JobState
from api.jobs.stored_jobs import finish_job, interrupt_jobs, jobs_of_this_process, save_progress
from api.messages.causes import Cause, Failure
from api.record.record import Record
from segdec.errors import SegdecError
from segdec.runtime.files import folder_lock

KEEP_ALIVE_INTERVAL_S = 10.0
"""Time between two notes in the database that a job is running."""
MAX_WAITING = 4
"""Jobs of a queue that wait or run; more get a 503."""
JOB_FILE = "job"
"""In the folder of a job: its id."""
MAX_ID = 2**63
"""Ids in the database are below this: a larger one is a damaged file."""
BROKEN = Failure("It failed: the service has an error, which is in its log.", Cause(code="internal_error"))
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobFolder:
    """The folder of a job, which this process has locked, and what ends with it."""

    path: Path
    resources: ExitStack


class JobRunner:
    """Runs the jobs of each queue one after the other.

    `folder` has a folder for each job that waits or runs.
    """

    def __init__(self, record: Record, folder: Path, retry_after_s: int) -> None:
        self._record, self._folder, self._retry_after_s = record, folder, retry_after_s
        self._queues: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._open: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    async def end_abandoned(self) -> None:
        """Ends the jobs of services that were killed, and removes their folders."""
        # Listed now: folders of later jobs may not be locked yet.
        folders = list(self._folder.iterdir()) if self._folder.exists() else []
        job_ids = await asyncio.to_thread(_remove_abandoned, folders)
        if job_ids:
            with suppress(RequestError):  # otherwise they are failed when they have not been kept alive
                await self._record.write(interrupt_jobs, job_ids)

    @asynccontextmanager
    async def open_folder(self, kind: JobKind[Any]) -> AsyncIterator[JobFolder]:
        """Yields a new folder for a job; it is removed at the end, or when the started job has ended.

        Raises:
            RequestError: 503 if too many jobs wait.
            OSError: If the folder cannot be created.
        """
        await self.end_abandoned()
        if self._open[kind.queue] >= MAX_WAITING:
            detail = f"{MAX_WAITING} jobs are waiting or running. Repeat this when one of them has ended."
            raise RequestError(503, "jobs_full", detail, {"Retry-After": str(max(self._retry_after_s, 1))})
        with ExitStack() as resources:
            self._open[kind.queue] += 1
            resources.callback(self._open.subtract, [kind.queue])
            folder = self._folder / uuid4().hex
            resources.callback(shutil.rmtree, folder, ignore_errors=True)
            folder.mkdir(parents=True)
            resources.enter_context(folder_lock(folder))
            yield JobFolder(folder, resources)

    async def start(self, folder: JobFolder, job: Job) -> int:
        """Starts a job; returns its id. The folder belongs to the job from now on.

        Raises:
            RequestError: As `start_row` of the job; 503 if the record cannot be used now.
        """
        started_at = datetime.now(UTC)
        job_id = await self._record.write(job.start_row, started_at)
        with suppress(OSError):  # otherwise it is failed later if this service is killed
            (folder.path / JOB_FILE).write_text(str(job_id))
        jobs_of_this_process.add((job_id, started_at))
        task = asyncio.create_task(self._run(folder.resources.pop_all(), job_id, job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: jobs_of_this_process.discard((job_id, started_at)))
        return job_id

    async def close(self) -> None:
        """Ends running jobs; they are failed and can be repeated."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, resources: ExitStack, job_id: int, job: Job) -> None:
        alive = asyncio.create_task(self._keep_alive(job_id, job))
        state: JobState = "failed"
        failure: Failure | None = None
        try:
            async with self._queues[job.kind.queue]:
                await job.run()
            state = "done"
        except (SegdecError, RequestError) as caught:
            failure = Failure.of(caught)
        except OSError as caught:
            reason = caught.strerror or str(caught)
            text = f"The files cannot be written: {reason}. Free space on the disk."
            failure = Failure(text, Cause(code="files_not_written", values={"reason": reason}))
        except asyncio.CancelledError:
            failure = job.kind.interrupted
        except Exception:
            logger.exception("The job %s failed", job_id)
            failure = BROKEN
        finally:
            alive.cancel()
            await asyncio.to_thread(resources.close)
        await self._store_end(job_id, job, state, failure)

    async def _store_end(self, job_id: int, job: Job, state: JobState, failure: Failure | None) -> None:
        """Tries again until the record can be used; an interrupted job is failed without it, too."""
        ended_at = datetime.now(UTC)
        while True:
            try:
                await self._record.write(finish_job, job_id, state, job.progress, failure, ended_at)
            except RequestError:
                if failure is job.kind.interrupted:
                    return
            else:
                return
            await asyncio.sleep(KEEP_ALIVE_INTERVAL_S)

    async def _keep_alive(self, job_id: int, job: Job) -> None:
        while True:
            await asyncio.sleep(KEEP_ALIVE_INTERVAL_S)
            with suppress(RequestError):
                await self._record.write(save_progress, job_id, job.progress, datetime.now(UTC))


def _remove_abandoned(folders: Sequence[Path]) -> list[int]:
    """Removes the folders of services that were killed: nobody holds their locks. Returns their jobs."""
    job_ids = []
    for folder in folders:
        with suppress(OSError), folder_lock(folder, wait=False) as is_locked:
            if is_locked:
                with suppress(OSError, ValueError):
                    job_id = int((folder / JOB_FILE).read_text())
                    job_ids += [job_id] * (job_id < MAX_ID)
                shutil.rmtree(folder, ignore_errors=True)
    return job_ids
