"""Runs jobs of data sets, such as imports, one after the other, beside the requests of the service."""

import asyncio
import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from sqlalchemy import Connection

from api.data_sets.data_set_store import DataSetStore
from api.data_sets.job_schemas import JobState
from api.errors import RequestError
from api.messages.causes import Cause, Failure
from segdec.errors import SegdecError
from segdec.runtime.files import folder_lock

KEEP_ALIVE_S = 10.0
"""Time between two notes in the database that a job is running."""
MAX_WAITING = 4
"""Jobs that wait or run; more get a 503."""
BROKEN = Failure("It failed: the service has an error, which is in its log.", Cause(code="internal_error"))
logger = logging.getLogger(__name__)


class Job(Protocol):
    """A job with a row in the database. The methods about the row run in a writing transaction.

    Attributes:
        interrupted: For the user if the service ends before the job.
    """

    interrupted: Failure

    async def run(self) -> None:
        """Does the work; raises a SegdecError or a RequestError with a text for the user."""

    def start_row(self, connection: Connection, now: datetime) -> int:
        """Adds the row of the running job; returns its id."""

    def keep_alive(self, connection: Connection, number: int, now: datetime) -> None:
        """States that the job is running, and what it has done."""

    def finish_row(
        self, connection: Connection, number: int, state: JobState, failure: Failure | None, now: datetime
    ) -> None:
        """States the end of the job."""


class BackgroundJobs:
    """Runs jobs one after the other.

    Args:
        store: The data sets.
        folder: Folder for archives and what is unpacked from them, and for checked photographs.
        retry_after_s: `Retry-After` of answers while too many jobs wait.
    """

    def __init__(self, store: DataSetStore, folder: Path, retry_after_s: int) -> None:
        self._store, self._folder, self._retry_after_s = store, folder, retry_after_s
        self._one_at_a_time = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = 0

    async def remove_abandoned(self) -> None:
        """Removes the folders of services that were killed, which may take long."""
        # Listed now: folders of later jobs may not be locked yet.
        found = list(self._folder.iterdir()) if self._folder.exists() else []
        await asyncio.to_thread(_remove_abandoned, found)

    @contextmanager
    def open_folder(self) -> Iterator["JobFolder"]:
        """Yields a new folder for a job; it is removed at the end, or when the started job has ended.

        Raises:
            RequestError: 503 if too many jobs wait.
            OSError: If the folder cannot be created.
        """
        if self._open >= MAX_WAITING:
            raise RequestError(
                503,
                "jobs_full",
                f"{MAX_WAITING} jobs of data sets are waiting or running. Repeat this when one of them has "
                "ended.",
                {"Retry-After": str(max(self._retry_after_s, 1))},
            )
        self._open += 1
        with ExitStack() as resources:
            resources.callback(self._count_ended)
            folder = self._folder / uuid4().hex
            resources.callback(shutil.rmtree, folder, ignore_errors=True)
            folder.mkdir(parents=True)
            resources.enter_context(folder_lock(folder))
            yield JobFolder(folder, resources)

    def _count_ended(self) -> None:
        self._open -= 1

    async def start(self, folder: "JobFolder", job: Job) -> int:
        """Starts a job; returns the id of its row. The folder belongs to the job from now on.

        Raises:
            RequestError: As `start_row` of the job; 503 if the record cannot be used now.
        """
        number = await self._store.write(job.start_row, datetime.now(UTC))
        task = asyncio.create_task(self._run(folder.resources.pop_all(), number, job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return number

    async def close(self) -> None:
        """Ends running jobs; they are failed and can be repeated."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, resources: ExitStack, number: int, job: Job) -> None:
        alive = asyncio.create_task(self._keep_alive(number, job))
        state: JobState = "failed"
        failure: Failure | None = None
        try:
            async with self._one_at_a_time:
                await job.run()
            state = "done"
        except (SegdecError, RequestError) as caught:
            failure = Failure.of(caught)
        except OSError as caught:
            reason = caught.strerror or str(caught)
            text = f"The files cannot be written: {reason}. Free space on the disk."
            failure = Failure(text, Cause(code="files_not_written", values={"reason": reason}))
        except asyncio.CancelledError:
            failure = job.interrupted
        except Exception:
            logger.exception("The job %s of the data sets failed", number)
            failure = BROKEN
        finally:
            alive.cancel()
            await asyncio.to_thread(resources.close)
        with suppress(RequestError):  # otherwise it is failed when it has not been kept alive
            await self._store.write(job.finish_row, number, state, failure, datetime.now(UTC))

    async def _keep_alive(self, number: int, job: Job) -> None:
        while True:
            await asyncio.sleep(KEEP_ALIVE_S)
            with suppress(RequestError):
                await self._store.write(job.keep_alive, number, datetime.now(UTC))


class ImportJobs(BackgroundJobs):
    """Imports archives and checks photographs."""


class ProposalJobs(BackgroundJobs):
    """Lets models propose labels."""


@dataclass(frozen=True)
class JobFolder:
    """The folder of a job, which this process has locked, and what ends with it."""

    path: Path
    resources: ExitStack


def _remove_abandoned(folders: Sequence[Path]) -> None:
    """Removes the folders of services that were killed: nobody holds their locks."""
    for folder in folders:
        with suppress(OSError), folder_lock(folder, wait=False) as is_locked:
            if is_locked:
                shutil.rmtree(folder, ignore_errors=True)
