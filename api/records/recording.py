"""Whether an inspection is recorded, and what becomes of its answer where it cannot be."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from api.errors import RequestError
from api.middleware.metrics import Metrics
from api.records.inspection import Inspection, Kept
from api.settings import RecordMode, Settings
from segdec.errors import MissingExtraError

if TYPE_CHECKING:
    from api.records.pictures import PictureStore
    from api.records.record import Record

BEST_EFFORT_S = 2.0
"""Seconds that an answer waits for a record which it may go without."""
NOT_RECORDED = "This inspection is not recorded"


class Recording:
    """Keeps inspections as the operator asked for it.

    Attributes:
        mode: What the operator asked for.
        record: Where they are kept; None where none are.
    """

    def __init__(self, mode: RecordMode, record: "Record | None") -> None:
        self.mode, self.record = mode, record

    async def open(self) -> None:
        """Opens the record. One that cannot be reached now is tried again by each check.

        Raises:
            ConfigError: If it can never be used.
        """
        if self.record is not None:
            with suppress(RequestError):  # logged
                await self.record.open()

    async def check(self) -> None:
        """Refuses before a photograph is read where it could not be recorded and has to be.

        Raises:
            RequestError: 503 `record_unavailable`.
        """
        if self.record is not None and self.mode == "required":
            await self.record.check()

    async def keep(self, inspection: Inspection, deadline: float) -> tuple[Kept | None, str | None]:
        """Keeps an inspection; returns what became of it, or None and why it is not recorded.

        Raises:
            RequestError: As `Record.keep` where it has to be recorded.
        """
        if self.record is None:
            return None, f"{NOT_RECORDED}: the service keeps no record."
        if self.mode == "required":
            return await self.record.keep(inspection, deadline), None
        try:
            soon = min(deadline, time.perf_counter() + BEST_EFFORT_S)
            return await self.record.keep(inspection, soon), None
        except RequestError as error:
            return None, f"{NOT_RECORDED}: {error}"

    def close(self) -> None:
        """Stores what waits and ends."""
        if self.record is not None:
            self.record.close()


def open_recording(settings: Settings, metrics: Metrics) -> Recording:
    """Makes the recording that the settings ask for.

    Raises:
        MissingExtraError: If the group `record` is not installed.
        ConfigError: If the record's database, or the place of its pictures, cannot be used.
    """
    if settings.record == "off":
        return Recording("off", None)
    with naming_group():  # also where the driver is missing that the URL asks for
        from api.records.record import Record
        from api.records.record_metrics import RecordMetrics
        from api.records.retention import RetentionRules

        record = Record(
            settings.record_database,
            settings.record_folder,
            RetentionRules.from_settings(settings),
            settings.retry_after_s,
            RecordMetrics(metrics),
            _open_store(settings.record_pictures),
        )
    return Recording(settings.record, record)


def _open_store(url: str | None) -> "PictureStore | None":
    if url is None:
        return None
    from api.records.object_pictures import ObjectPictures

    return ObjectPictures(url)


@contextmanager
def naming_group() -> Iterator[None]:
    """Says of a package that is missing that the group `record` has it.

    Raises:
        MissingExtraError: In place of an ImportError.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(error.name or "psycopg", group="record") from error
