"""Which shift, day, week or lot a report is about."""

from datetime import UTC, datetime
from typing import Literal

from sqlalchemy import Connection

from api.errors import RequestError
from api.messages.language import ENGLISH, Language
from api.record.shifts import ShiftPlan, Span
from api.reports.report_content import ReportRequest, span_of_tag
from api.trends.periods import list_periods

MEDIA_TYPES = {
    "pdf": "application/pdf",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
"""Media types of reports by the ending of their files."""
ReportKind = Literal["shift", "day", "week", "lot"]


def make_report_request(
    connection: Connection,
    kind: ReportKind,
    plan: ShiftPlan,
    at: datetime,
    station: str | None = None,
    tag: tuple[str, str] | None = None,
    language: Language = ENGLISH,
) -> ReportRequest:
    """Returns the request for the shift, day or week that contains a time, or for a value of the metadata.

    Raises:
        RequestError: 400 without a value of the metadata for `lot`, 404 if no inspection has it.
    """
    if kind == "lot":
        return _lot_request(connection, plan, language, station, tag)
    day = at.astimezone(plan.zone).date()
    span = plan.shift_at(at) if kind == "shift" else next(list_periods(kind, day, day, plan.zone))
    title = _title(kind, span, plan, language)
    if datetime.now(UTC) < span.end:
        title = language.translate("{title}, not finished", title=title)
    return ReportRequest(title, span, plan.zone, language, station, tag)


def _title(kind: ReportKind, span: Span, plan: ShiftPlan, language: Language) -> str:
    begin = span.begin.astimezone(plan.zone)
    if kind == "shift":
        return language.translate("Shift of {time}", time=language.time(begin, plan.zone))
    if kind == "day":
        return language.translate("Day {date}", date=language.date(begin))
    return language.translate("Week {week} of {year}", week=f"{begin:%V}", year=f"{begin:%G}")


def _lot_request(
    connection: Connection,
    plan: ShiftPlan,
    language: Language,
    station: str | None,
    tag: tuple[str, str] | None,
) -> ReportRequest:
    if tag is None:
        detail = "A report of a lot needs a value of the metadata. Expected for example lot:4711."
        raise RequestError(400, "lot_without_metadata", detail)
    span: Span | None = span_of_tag(connection, tag)
    if span is None:
        raise RequestError(404, "lot_not_found", f"No inspection has the metadata {tag[0]}: {tag[1]}.")
    title = language.translate("Certificate of {key} {value}", key=tag[0], value=tag[1])
    return ReportRequest(title, span, plan.zone, language, station, tag)
