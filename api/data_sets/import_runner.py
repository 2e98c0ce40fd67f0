"""Runs imports one after the other, beside the requests of the service."""

import asyncio
import logging
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from api.data_sets.archive_import import ArchiveImport
from api.data_sets.data_set_store import DataSetStore
from api.data_sets.import_schemas import ImportState
from api.data_sets.imports import INTERRUPTED, finish_import, keep_alive, start_import
from api.errors import RequestError
from segdec.errors import SegdecError
from segdec.runtime.files import folder_lock

KEEP_ALIVE_S = 10.0
"""Time between two notes in the database that an import is running."""
MAX_WAITING = 4
"""Archives that wait or are read; more get a 503."""
BROKEN = "The import failed: the service has an error, which is in its log."
logger = logging.getLogger(__name__)


class ImportRunner:
    """Runs imports one after the other.

    Args:
        store: The data sets.
        folder: Folder for archives and what is unpacked from them.
        retry_after_s: `Retry-After` of answers while too many archives wait.
    """

    def __init__(self, store: DataSetStore, folder: Path, retry_after_s: int) -> None:
        self._store, self._folder, self._retry_after_s = store, folder, retry_after_s
        self._one_at_a_time = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = 0

    @contextmanager
    def receive(self) -> Iterator["ReceivedArchive"]:
        """Yields a new folder for an archive; it is removed at the end, or when the import has ended.

        Raises:
            RequestError: 503 if too many archives wait.
            OSError: If the folder cannot be created.
        """
        if self._open >= MAX_WAITING:
            raise RequestError(
                503,
                "imports_full",
                f"{MAX_WAITING} archives are waiting or being read. Send this one when one of them is done.",
                {"Retry-After": str(max(self._retry_after_s, 1))},
            )
        self._open += 1
        with ExitStack() as resources:
            resources.callback(self._count_ended)
            folder = self._folder / uuid4().hex
            resources.callback(shutil.rmtree, folder, ignore_errors=True)
            folder.mkdir(parents=True)
            resources.enter_context(folder_lock(folder))
            _remove_abandoned(self._folder)
            yield ReceivedArchive(folder, resources)

    def _count_ended(self) -> None:
        self._open -= 1

    async def start(
        self, received: "ReceivedArchive", data_set_id: int, name: str, who: str, job: ArchiveImport
    ) -> int:
        """Starts an import; returns its id. The folder of the archive belongs to the import from now on.

        Raises:
            RequestError: 404 if the data set does not exist, 503 if the record cannot be used now.
        """
        number = await self._store.write(start_import, data_set_id, name, who, datetime.now(UTC))
        task = asyncio.create_task(self._run(received.resources.pop_all(), number, job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return number

    async def close(self) -> None:
        """Ends running imports; they are failed and can be repeated."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, resources: ExitStack, number: int, job: ArchiveImport) -> None:
        alive = asyncio.create_task(self._keep_alive(number, job))
        state: ImportState = "failed"
        error: str | None = None
        try:
            async with self._one_at_a_time:
                await job.run()
            state = "done"
        except (SegdecError, RequestError) as caught:
            error = str(caught)
        except OSError as caught:
            error = f"The archive cannot be unpacked: {caught.strerror or caught}. Free space on the disk."
        except asyncio.CancelledError:
            error = INTERRUPTED
        except Exception:
            logger.exception("The import %s failed", number)
            error = BROKEN
        finally:
            alive.cancel()
            await asyncio.to_thread(resources.close)
        job.result = job.result.model_copy(update={"error": error})
        with suppress(RequestError):  # otherwise it is failed when it has not been kept alive
            await self._store.write(finish_import, number, state, job.result, datetime.now(UTC))

    async def _keep_alive(self, number: int, job: ArchiveImport) -> None:
        while True:
            await asyncio.sleep(KEEP_ALIVE_S)
            with suppress(RequestError):
                await self._store.write(keep_alive, number, job.result, datetime.now(UTC))


@dataclass(frozen=True)
class ReceivedArchive:
    """The folder of an archive, which this process has locked, and what ends with it."""

    folder: Path
    resources: ExitStack


def _remove_abandoned(parent: Path) -> None:
    """Removes the folders of services that were killed: nobody holds their locks."""
    for folder in parent.iterdir():
        with suppress(OSError), folder_lock(folder, wait=False) as is_locked:
            if is_locked:
                shutil.rmtree(folder, ignore_errors=True)
