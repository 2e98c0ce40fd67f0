"""Recording as the operator configured it: `required`, `best-effort` or `off`."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from api.errors import RequestError
from api.metrics import Metrics
from api.records.audit import AuditEntry
from api.records.inspection import NewInspection, StoredInspection
from api.records.line.uninspected_photograph import UninspectedPhotograph
from api.settings import RecordMode, Settings
from segdec.errors import MissingExtraError

if TYPE_CHECKING:
    from api.records.line.line_status import LineMonitor
    from api.records.record import Record
    from api.records.record_settings import RecordSettings
    from api.records.reports.scheduled_reports import ScheduledReports
    from api.records.storage.pictures import PictureStore

BEST_EFFORT_S = 2.0
"""Seconds that an answer waits for an optional record."""
NOT_RECORDED = "This inspection is not recorded"
logger = logging.getLogger(__name__)


class Recording:
    """Stores inspections according to the mode; the other attributes are None if nothing is
    recorded.
    """

    def __init__(
        self,
        mode: RecordMode,
        record: "Record | None",
        line: "LineMonitor | None" = None,
        settings: "RecordSettings | None" = None,
        reports: "ScheduledReports | None" = None,
    ) -> None:
        self.mode, self.record, self.line, self.settings = mode, record, line, settings
        self.reports = reports

    @property
    def is_usable(self) -> bool:
        """Whether inspections can be recorded, as far as is known."""
        return self.record is not None and self.record.is_usable

    def problems(self) -> list[str]:
        """Returns why the record cannot be used, as far as is known, and what space is short of."""
        if self.record is None:
            return []
        unusable = self.record.problem and f"The record cannot be used: {self.record.problem}."
        space = self.record.space_problem and f"{self.record.space_problem}."
        return [problem for problem in (unusable, space) if problem]

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
            self.record.misses.add(photograph)
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


def create_recording(
    settings: Settings,
    metrics: Metrics,
    sinks: Sequence[str] = (),
    set_zone: Callable[[ZoneInfo], None] = lambda _zone: None,
) -> Recording:
    """Creates the recording according to the settings.

    Args:
        settings: Settings of the start.
        metrics: Metrics of the service.
        sinks: Names of the receivers of events.
        set_zone: Is called with the plant's time zone after it was changed.

    Raises:
        MissingExtraError: If the group `record` is not installed.
        ConfigError: If the record's database or picture store cannot be used.
    """
    if settings.record == "off":
        return Recording("off", None)
    with explain_missing_group():  # covers a missing driver of the URL, too
        from api.records.line.line_status import LineMonitor
        from api.records.line.shifts import ShiftPlan
        from api.records.outbox import Outbox
        from api.records.record import Record
        from api.records.record_metrics import RecordMetrics
        from api.records.record_settings import RecordSettings
        from api.records.reports.scheduled_reports import ReportSchedule, ScheduledReports
        from api.records.storage.retention import RetentionRules

        record = Record(
            settings.record_database,
            settings.record_folder,
            RetentionRules.from_settings(settings),
            settings.retry_after_s,
            RecordMetrics(metrics),
            Outbox(tuple(sinks), settings.public_url),
            open_picture_store(settings.record_pictures),
        )
    line = LineMonitor(record, ShiftPlan.from_settings(settings))

    def apply(changed: Settings) -> None:
        record.set_rules(RetentionRules.from_settings(changed))
        line.plan = ShiftPlan.from_settings(changed)
        set_zone(line.plan.zone)

    changeable, reports = RecordSettings(settings, record, apply), None
    if settings.report_schedule:
        reports = ScheduledReports(record, ReportSchedule.from_settings(settings), lambda: line.plan)
    return Recording(settings.record, record, line, changeable, reports)


def open_picture_store(url: str | None) -> "PictureStore | None":
    """Opens the object store at `url`; returns None if pictures are files.

    Raises:
        ConfigError: If the URL cannot be used.
    """
    if url is None:
        return None
    from api.records.storage.object_pictures import ObjectPictures

    return ObjectPictures(url)


@contextmanager
def explain_missing_group(group: str = "record") -> Iterator[None]:
    """Context for imports: raises a MissingExtraError that names the group instead of an ImportError."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(error.name or "psycopg", group=group) from error
