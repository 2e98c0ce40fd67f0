"""What a report says: counts, classes, errors estimated from reviews, model versions, defects."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, func, select

from api.line import line_queries
from api.messages.language import Language
from api.record.events import verdict_of
from api.record.filters import Filters, equal, start_of_hour
from api.record.inspection import Row
from api.record.search import list_inspections
from api.record.shifts import Span
from api.record.tables import inspections, tags
from api.review.review_statistics import query_statistics
from api.review.schemas import ReviewStatistics
from api.trends.trend_queries import TimeSum, sum_period
from segdec.runtime.identifiers import NOT_INSPECTED

MAX_DEFECTS = 500
"""Defects that a report lists, the newest ones."""

DEFECT_COLUMNS = [
    inspections.c[name]
    for name in ("id", "inspected_at", "station", "part_id", "label", "score", "threshold", "reviewed_label")
]


@dataclass(frozen=True)
class ReportRequest:
    """What a report is about, and its language; None = any station, any metadata."""

    title: str
    span: Span
    zone: ZoneInfo
    language: Language
    station: str | None = None
    tag: tuple[str, str] | None = None

    @property
    def filters(self) -> Filters:
        """The same as filters."""
        return Filters(since=self.span.begin, until=self.span.end, station=self.station, tag=self.tag)


@dataclass(frozen=True)
class ModelUse:
    """A model version with the number of its inspections; thresholds and plan are those of the newest one."""

    model: str
    version: str
    manifest_sha256: str | None
    threshold: float
    review_threshold: float | None
    plan: str | None
    plan_version: int | None
    inspected: int


@dataclass(frozen=True)
class ReportContent:
    """The content of a report.

    Attributes:
        labels: Number of inspections by label.
        not_inspected: Photographs without a verdict; for a value of the metadata only those that are stored.
        rates: Begin of each hour or day with its inspected and defective parts.
        statistics: Estimates from the reviews of the period and station, whatever the metadata.
        defects: Rows with `DEFECT_COLUMNS`, the newest first.
        signers: SHA-256 of a manifest → key that signed the model, None if unknown; of those that are
            served.
    """

    request: ReportRequest
    labels: Counter[str]
    not_inspected: int
    rates: Sequence[tuple[datetime, int, int]]
    statistics: ReviewStatistics
    models: Sequence[ModelUse]
    defects: Sequence[Row]
    signers: Mapping[str | None, str | None] = field(default_factory=dict)

    @property
    def inspected(self) -> int:
        """Number of inspections."""
        return self.labels.total()

    @property
    def defective(self) -> int:
        """Number of those called defective."""
        return sum(count for label, count in self.labels.items() if verdict_of(label) == "defect")


def read_content(connection: Connection, request: ReportRequest) -> ReportContent:
    """Reads the content of a report."""
    filters = request.filters
    sums = sum_period(connection, filters).times
    labels: Counter[str] = Counter()
    for one in sums:
        labels[one.label] += one.count
    if request.tag is not None:
        uninspected = _count_refused(connection, filters)
    else:
        uninspected = line_queries.count_uninspected(
            connection, request.span.begin, request.station, request.span.end
        )
    return ReportContent(
        request,
        labels,
        uninspected,
        _rates(sums, request),
        query_statistics(connection, replace(filters, tag=None), request.language),
        _models(connection, filters, sums),
        list_inspections(connection, replace(filters, verdict="defect"), None, MAX_DEFECTS, DEFECT_COLUMNS),
    )


def _count_refused(connection: Connection, filters: Filters) -> int:
    """Returns the number of stored photographs without a verdict that have a value of the metadata."""
    assert filters.tag is not None
    table, (key, value) = inspections.c, filters.tag
    statement = select(func.count()).select_from(tags).join(inspections, table.id == tags.c.record_id)
    statement = statement.where(tags.c.key == key, tags.c.value == value, table.label == NOT_INSPECTED)
    statement = statement.where(*equal(inspections, station=filters.station))
    return int(connection.execute(statement).scalar_one())


def span_of_tag(connection: Connection, tag: tuple[str, str]) -> Span | None:
    """Returns the time of the inspections with a value of the metadata; None if there are none."""
    times = inspections.c.inspected_at
    joined = select(func.min(times), func.max(times)).join(tags, tags.c.record_id == inspections.c.id)
    begin, last = connection.execute(joined.where(tags.c.key == tag[0], tags.c.value == tag[1])).one()
    return None if begin is None else Span(begin, last + timedelta(seconds=1))


def _rates(sums: Sequence[TimeSum], request: ReportRequest) -> Sequence[tuple[datetime, int, int]]:
    """Sums hours, or days if the report is about more than two."""
    by_day = request.span.end - request.span.begin > timedelta(days=2)
    by_time: dict[datetime, list[int]] = {}
    for one in sums:
        counts = by_time.setdefault(
            _begin_of_day(one.at, request.zone) if by_day else start_of_hour(one.at), [0, 0]
        )
        counts[0] += one.count
        counts[1] += one.count if verdict_of(one.label) == "defect" else 0
    return [(begin, inspected, defective) for begin, (inspected, defective) in sorted(by_time.items())]


def _begin_of_day(moment: datetime, zone: ZoneInfo) -> datetime:
    return datetime.combine(moment.astimezone(zone).date(), time(), zone).astimezone(UTC)


def _models(connection: Connection, filters: Filters, sums: Sequence[TimeSum]) -> list[ModelUse]:
    counts: Counter[tuple[str, str]] = Counter()
    for one in sums:
        counts[one.model, one.version] += one.count
    names = ("model", "version", "manifest_sha256", "threshold", "review_threshold", "plan", "plan_version")
    columns = [inspections.c.id, *(inspections.c[name] for name in names)]
    used = []
    for (model, version), count in counts.most_common():
        asked = replace(filters, model=model, version=version)
        newest = list_inspections(connection, asked, None, 1, columns)
        used += [ModelUse(**{name: row[name] for name in names}, inspected=count) for row in newest]
    return used
