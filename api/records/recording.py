"""Whether an inspection is recorded, and what becomes of its answer where it cannot be."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from api.errors import RequestError
from api.inspection.uninspected import UninspectedPhotograph
from api.metrics import Metrics
from api.records.audit import AuditEntry
from api.records.inspection import Inspection, StoredInspection
from api.settings import RecordMode, Settings
from segdec.errors import MissingExtraError

if TYPE_CHECKING:
    from api.records.line.line_status import LineMonitor
    from api.records.record import Record
    from api.records.storage.pictures import PictureStore

BEST_EFFORT_S = 2.0
"""Seconds that an answer waits for a record which it may go without."""
NOT_RECORDED = "This inspection is not recorded"
logger = logging.getLogger(__name__)


class Recording:
    """Keeps inspections as the operator asked for it.

    Attributes:
        mode: What the operator asked for.
        record: Where they are kept; None where none are.
        line: Tells how the line does, likewise.
    """

    def __init__(self, mode: RecordMode, record: "Record | None", line: "LineMonitor | None" = None) -> None:
        self.mode, self.record, self.line = mode, record, line

    @property
    def is_usable(self) -> bool:
        """Whether inspections can be recorded, as far as is known."""
        return self.record is not None and self.record.is_usable

    async def open(self) -> None:
        """Opens the record. One that cannot be reached now is tried again by each check.

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
        """Refuses before a photograph is read where it could not be recorded and has to be.

        Raises:
            RequestError: 503 `record_unavailable`.
        """
        if self.record is not None and self.mode == "required":
            await self.record.check()

    async def store(
        self, inspection: Inspection, deadline: float
    ) -> tuple[StoredInspection | None, str | None]:
        """Keeps an inspection; returns what became of it, or None and why it is not recorded.

        Raises:
            RequestError: As `Record.store` where it has to be recorded.
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

    def log_uninspected(self, miss: UninspectedPhotograph) -> None:
        """Notes what was not inspected; at once, whatever the database does."""
        if self.record is not None:
            self.record.misses.note(miss)

    async def change(self, line: AuditEntry, make: Callable[[], None], take_back: Callable[[], None]) -> None:
        """Makes a change outside of the record, in a thread, and writes it down in the audit.

        Args:
            line: What is written down.
            make: Makes the change, or raises and leaves it undone.
            take_back: Undoes it, where the line could not be written after all.

        Raises:
            RequestError: As `make`; 503 `record_unavailable` where inspections have to be recorded and the
                line cannot be: then the change is not made.
        """
        if self.record is not None:
            try:
                await self.record.change_with_audit(line, make, take_back)
            except RequestError as error:
                if self.mode == "required" or error.code != "record_unavailable":
                    raise
                logger.warning("%s by '%s' is missing in the audit: %s", line.what, line.who, error)
            else:
                return
        await asyncio.to_thread(make)

    def close(self) -> None:
        """Stores what waits and ends."""
        if self.record is not None:
            self.record.close()


def create_recording(settings: Settings, metrics: Metrics, sinks: Sequence[str] = ()) -> Recording:
    """Makes the recording that the settings ask for.

    Args:
        settings: What the operator set.
        metrics: Told what is kept.
        sinks: Names of those for whom it is written down what they are to be told.

    Raises:
        MissingExtraError: If the group `record` is not installed.
        ConfigError: If the record's database, or the place of its pictures, cannot be used.
    """
    if settings.record == "off":
        return Recording("off", None)
    with explain_missing_group():  # also where the driver is missing that the URL asks for
        from api.records.line.line_status import LineMonitor
        from api.records.line.shifts import ShiftPlan
        from api.records.outbox import Outbox
        from api.records.record import Record
        from api.records.record_metrics import RecordMetrics
        from api.records.storage.retention import RetentionRules

        record = Record(
            settings.record_database,
            settings.record_folder,
            RetentionRules.from_settings(settings),
            settings.retry_after_s,
            RecordMetrics(metrics),
            Outbox(tuple(sinks)),
            open_picture_store(settings.record_pictures),
        )
    return Recording(settings.record, record, LineMonitor(record, ShiftPlan.from_settings(settings)))


def open_picture_store(url: str | None) -> "PictureStore | None":
    """Opens the store of pictures at `url`; None where they are files.

    Raises:
        ConfigError: If it names no store that can be used.
    """
    if url is None:
        return None
    from api.records.storage.object_pictures import ObjectPictures

    return ObjectPictures(url)


@contextmanager
def explain_missing_group(group: str = "record") -> Iterator[None]:
    """Says of a package that is missing that `group` has it.

    Raises:
        MissingExtraError: In place of an ImportError.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(error.name or "psycopg", group=group) from error
