"""Recording as the operator configured it: `required`, `best-effort` or `off`."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from api.errors import RequestError
from api.record.audit import AuditEntry
from api.record.inspection import NewInspection, StoredInspection
from api.record.settings import RecordMode
from api.record.uninspected_photograph import UninspectedPhotograph
from segdec.errors import MissingExtraError, is_own_module

if TYPE_CHECKING:
    from api.record.current_settings import CurrentSettings
    from api.record.record import Record
    from api.record.storage.pictures import PictureStore

BEST_EFFORT_S = 2.0
"""Seconds that an answer waits for an optional record."""
NOT_RECORDED = "This inspection is not recorded"
logger = logging.getLogger(__name__)


class Recording:
    """Stores inspections according to the mode; the other attributes are None if nothing is
    recorded.
    """

    def __init__(
        self, mode: RecordMode, record: "Record | None", settings: "CurrentSettings | None" = None
    ) -> None:
        self.mode, self.record, self.settings = mode, record, settings

    @property
    def is_usable(self) -> bool:
        """Whether inspections can be recorded, as far as is known."""
        return self.record is not None and self.record.is_usable

    def problems(self) -> dict[str, str]:
        """Returns why the record cannot be used, as far as is known, and what space is short of, by codes."""
        return {} if self.record is None else self.record.problems()

    async def open(self) -> None:
        """Opens the record. If it is unreachable now, each later check tries again.

        Raises:
            ConfigError: If it can never be used.
        """
        if self.record is None:
            return
        try:
            await self.record.open()
        except RequestError:  # its reason is logged
            if self.mode == "required":
                logger.error("/v1/inspect answers 503 until the record can be opened")

    async def check(self) -> None:
        """Rejects a request before its photograph is read if recording is required and impossible.

        Raises:
            RequestError: 503 `record_unavailable`.
        """
        if self.record is not None and self.mode == "required":
            await self.record.check()

    async def store(
        self, inspection: NewInspection, deadline: float
    ) -> tuple[StoredInspection | None, str | None]:
        """Stores an inspection; returns the result, or None and the warning why it is not recorded.

        Raises:
            RequestError: As `Record.store`, if recording is required.
        """
        if self.record is None:
            return None, f"{NOT_RECORDED}: the service keeps no record."
        if self.mode == "required":
            return await self.record.store(inspection, deadline), None
        try:
            soon = min(deadline, time.perf_counter() + BEST_EFFORT_S)
            return await self.record.store(inspection, soon), None
        except RequestError as error:
            return None, f"{NOT_RECORDED}: {error}"

    def log_uninspected(self, photograph: UninspectedPhotograph) -> None:
        """Logs a photograph that was not inspected; does not wait for the database."""
        if self.record is not None:
            self.record.uninspected.add(photograph)
            self.record.changes += 1

    async def change(self, entry: AuditEntry, make: Callable[[], None], revert: Callable[[], None]) -> None:
        """Makes a change outside of the record, in a thread, and adds it to the audit log.

        Args:
            entry: For the audit log.
            make: Makes the change, or raises and changes nothing.
            revert: Undoes the change if the entry could not be committed.

        Raises:
            RequestError: As `make`; 503 `record_unavailable` if recording is required and the entry cannot be
                stored: then the change is not made.
        """
        if self.record is not None:
            try:
                await self.record.change_with_audit(entry, make, revert)
            except RequestError as error:
                if self.mode == "required" or error.code != "record_unavailable":
                    raise
                logger.warning("The audit log has no entry '%s' by '%s': %s", entry.what, entry.who, error)
            else:
                return
        await asyncio.to_thread(make)

    def close(self) -> None:
        """Stores queued inspections and ends."""
        if self.record is not None:
            self.record.close()


def open_picture_store(url: str | None) -> "PictureStore | None":
    """Opens the object store at `url`; returns None if pictures are files.

    Raises:
        ConfigError: If the URL cannot be used.
    """
    if url is None:
        return None
    from api.record.storage.object_pictures import ObjectPictures

    return ObjectPictures(url)


@contextmanager
def explain_missing_group(group: str = "record") -> Iterator[None]:
    """Context for imports: raises a MissingExtraError that names the group instead of an ImportError."""
    try:
        yield
    except ImportError as error:
        if isinstance(error, MissingExtraError) or is_own_module(error):
            raise
        raise MissingExtraError(error.name or "psycopg", group=group) from error
