"""Reports that are made at the end of each shift, day or week, and written to a folder or sent by e-mail."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from sqlalchemy import ColumnElement, Connection, Engine, delete, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from api.database.database import write_transaction
from api.messages.language import Language, find_language
from api.record.file_names import name_report
from api.record.record import Record
from api.record.shifts import ShiftPlan
from api.reports.excel_report import write_excel
from api.reports.pdf_report import write_pdf
from api.reports.report_content import ReportContent, ReportRequest, read_content
from api.reports.report_mail import MailServer
from api.reports.report_request import make_report_request
from api.reports.settings import ReportSettings, ScheduledKind
from api.reports.tables import scheduled_reports
from segdec.errors import SegdecError
from segdec.runtime.files import write_bytes_atomic

INTERVAL_S = 60.0
"""Seconds between two checks for reports that are due."""
REPORT_DELAY = timedelta(minutes=2)
"""Time after the end of a period: its last inspections have been stored."""
CLAIM_TIME = timedelta(minutes=15)
"""Time after which a replica makes a report that another one has begun and not finished."""
MAX_REPORT_AGE = timedelta(days=400)
"""Time after which the table forgets reports."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReportSchedule:
    """Which reports are made, and where they go."""

    kinds: Sequence[ScheduledKind]
    folder: Path | None
    mail: MailServer | None
    language: Language

    @classmethod
    def from_settings(cls, settings: ReportSettings) -> "ReportSchedule":
        """Reads the schedule from the settings.

        Raises:
            ConfigError: If the mail server or the language is unknown.
        """
        mail, language = MailServer.from_settings(settings), find_language(settings.report_language)
        return cls(settings.report_schedule, settings.report_folder, mail, language)


class ScheduledReports:
    """Makes the reports that are due; of several replicas one makes each.

    Args:
        plan: Returns the shifts and the zone that count now.
    """

    def __init__(self, record: Record, schedule: ReportSchedule, plan: Callable[[], ShiftPlan]) -> None:
        self._record, self._schedule, self._plan = record, schedule, plan

    async def run(self) -> None:
        """Makes reports until it is cancelled."""
        while True:
            if self._record.is_usable:
                await self.make_all_due()
            await asyncio.sleep(INTERVAL_S)

    async def make_all_due(self) -> None:
        """Makes all reports that are due; logs failures, which are tried again later."""
        for kind in self._schedule.kinds:
            try:
                await self._record.read_all(partial(self.make_due, kind=kind))
            except (SegdecError, OSError, SQLAlchemyError) as error:
                logger.error("The report of the last %s is tried again later: %s", kind, error)

    def make_due(self, engine: Engine, kind: ScheduledKind, now: datetime | None = None) -> bool:
        """Makes the report of the last period that has ended, unless it exists; returns whether it did.

        A period without inspections has no report.

        Raises:
            OSError, SegdecError, SQLAlchemyError: If it cannot be made, written or sent.
        """
        now = now or datetime.now(UTC)
        with engine.connect() as connection:
            request = self._last_request(connection, kind, now - REPORT_DELAY)
        with write_transaction(engine) as connection:
            if not _claim(connection, kind, request.span.begin, now):
                return False
        with engine.connect() as connection:
            content = read_content(connection, request)
        if content.inspected or content.not_inspected:
            self._deliver(content, kind, engine, now)
        with write_transaction(engine) as connection:
            _finish(connection, kind, request.span.begin, now)
        return True

    def _last_request(self, connection: Connection, kind: ScheduledKind, at: datetime) -> ReportRequest:
        plan, language = self._plan(), self._schedule.language
        current = make_report_request(connection, kind, plan, at, language=language)
        before = current.span.begin - timedelta(seconds=1)
        return make_report_request(connection, kind, plan, before, language=language)

    def _deliver(self, content: ReportContent, kind: ScheduledKind, engine: Engine, now: datetime) -> None:
        name = name_report(kind, content.request.span, content.request.zone)
        files = {f"{name}.pdf": write_pdf(content, now), f"{name}.xlsx": write_excel(content, engine)}
        if self._schedule.folder is not None:
            self._schedule.folder.mkdir(parents=True, exist_ok=True)
            for file, data in files.items():
                write_bytes_atomic(self._schedule.folder / file, data)
        if self._schedule.mail is not None:
            self._schedule.mail.send(self._schedule.mail.make_message(content, files))


def _claim(connection: Connection, kind: str, begin: datetime, now: datetime) -> bool:
    """Returns whether this replica makes a report: it is not made yet, nor being made.

    One that was made in the future is made again: the clock was set back, and its period had not ended.
    """
    connection.execute(delete(scheduled_reports).where(scheduled_reports.c.begin < now - MAX_REPORT_AGE))
    key = _is_report(kind, begin)
    known = connection.execute(select(scheduled_reports).where(key)).one_or_none()
    if known is None:
        row = {"kind": kind, "begin": begin, "claimed_at": now, "made_at": None}
        connection.execute(insert(scheduled_reports), row)
        return True
    is_done = known.made_at is not None or known.claimed_at > now - CLAIM_TIME
    if is_done and (known.made_at or known.claimed_at) <= now + CLAIM_TIME:
        return False
    connection.execute(update(scheduled_reports).where(key).values(claimed_at=now, made_at=None))
    return True


def _finish(connection: Connection, kind: str, begin: datetime, now: datetime) -> None:
    done = update(scheduled_reports).where(_is_report(kind, begin))
    connection.execute(done.values(made_at=now))


def _is_report(kind: str, begin: datetime) -> ColumnElement[bool]:
    return (scheduled_reports.c.kind == kind) & (scheduled_reports.c.begin == begin)
