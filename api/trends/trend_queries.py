"""Counts by time, model version, label and station, for trends and reports."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    DateTime,
    FromClause,
    Select,
    Table,
    Text,
    cast,
    func,
    select,
    type_coerce,
)

from api.errors import RequestError
from api.record.filters import Filters, equal, id_range, in_period, start_of_day, start_of_hour, without_index
from api.record.shifts import Span
from api.record.tables import hour_totals, hours, inspections, station_days, tags
from segdec.runtime.identifiers import NOT_INSPECTED

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
QUARTER_S = 900
"""Every time zone differs from UTC by a multiple of 15 minutes."""
MAX_TAGGED = 1_000_000
"""Inspections that are counted one by one for a value of the metadata."""
ROWS = 10_000
"""Rows that are in memory while they are counted."""


@dataclass(frozen=True)
class TimeSum:
    """Inspections with a label by a model version, from a time on: of a period, an hour or a quarter of it.

    `log_odds` is their sum; `last` is the begin of the last hour or quarter that has any.
    """

    at: datetime
    model: str
    version: str
    label: str
    count: int
    log_odds: float
    last: datetime


@dataclass(frozen=True)
class StationSum:
    """Inspections with a label at a station."""

    station: str
    label: str
    count: int


@dataclass(frozen=True)
class PeriodSums:
    """The inspections of a period by time and by station."""

    times: Sequence[TimeSum]
    stations: Sequence[StationSum]


def sum_period(connection: Connection, filters: Filters, periods: Sequence[Span] = ()) -> PeriodSums:
    """Sums the inspections of a period; `filters` may also have a station, a version and a tag.

    Whole hours are read from the tables of hours and days, the rest from the inspections. With `periods`,
    consecutive ones that are the whole period, whole hours are summed by period instead of by hour.

    Raises:
        RequestError: 400 if more than `MAX_TAGGED` inspections have the tag.
    """
    assert filters.since is not None and filters.until is not None
    if filters.tag is not None:
        return _sum_rows(connection, filters)
    first, last = _next_start(filters.since, start_of_hour, HOUR), start_of_hour(filters.until)
    if first >= last:
        return _sum_rows(connection, filters)
    edges = [
        _sum_rows(connection, replace(filters, since=since, until=until))
        for since, until in ((filters.since, first), (last, filters.until))
        if since < until
    ]
    whole = replace(filters, since=first, until=last)
    times = [*_sum_times(connection, whole, periods), *(one for edge in edges for one in edge.times)]
    stations = [*_sum_stations(connection, whole), *(one for edge in edges for one in edge.stations)]
    return PeriodSums(times, stations)


def _next_start(moment: datetime, start: Callable[[datetime], datetime], length: timedelta) -> datetime:
    """Returns the first start of an hour or a day that is not before a time."""
    return start(moment - timedelta(microseconds=1)) + length


def _sum_times(connection: Connection, filters: Filters, periods: Sequence[Span]) -> Iterator[TimeSum]:
    """Sums whole hours, by period if there are any."""
    table = hour_totals if filters.station is None else hours
    kind = table.c.model, table.c.version, table.c.label
    sums = func.sum(table.c.count), func.sum(table.c.log_odds_sum), func.max(table.c.hour)
    time: ColumnElement[Any] = table.c.hour
    source: FromClause = table
    conditions = [table.c.count > 0, *in_period(table.c.hour, filters)]
    if periods and connection.dialect.name == "postgresql":
        begins = cast([period.begin for period in periods], ARRAY(DateTime(timezone=True)))
        time = (func.width_bucket(table.c.hour, begins) - 1).label("number")
    elif periods:
        # Without other bounds of the hour, SQLite reads the rows of each period from the index.
        time, source, conditions = _join_periods(table, filters, periods)
    statement = select(time, *kind, *sums).select_from(source).group_by(time, *kind).where(*conditions)
    statement = statement.where(*equal(table, station=filters.station, version=filters.version))
    for at, model, version, label, count, odds, last in connection.execute(statement):
        begin = periods[at].begin if periods else at
        yield TimeSum(begin, model, version, label, int(count), odds, last)


def _join_periods(
    table: Table, filters: Filters, periods: Sequence[Span]
) -> tuple[ColumnElement[int], FromClause, list[ColumnElement[bool]]]:
    """Returns the number of the period, a join of periods and hours, and its conditions, for SQLite."""
    assert filters.since is not None and filters.until is not None
    cut = ((max(one.begin, filters.since), min(one.end, filters.until)) for one in periods)
    texts = [[f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}.000000" for moment in span] for span in cut]
    period = func.json_each(json.dumps(texts)).table_valued("key", "value")
    begin, end = (func.json_extract(period.c.value, f"$[{place}]") for place in (0, 1))
    hour = type_coerce(table.c.hour, Text)
    return period.c.key, period.join(table, (hour >= begin) & (hour < end)), [table.c.count > 0]


def _sum_stations(connection: Connection, filters: Filters) -> Iterator[StationSum]:
    """Sums whole hours by station: whole days of UTC from their table, the hours before and after."""
    assert filters.since is not None and filters.until is not None
    first, last = _next_start(filters.since, start_of_day, DAY), start_of_day(filters.until)
    parts = [(hours, hours.c.hour, filters.since, filters.until)]
    if first < last:
        parts = [
            (hours, hours.c.hour, filters.since, first),
            (station_days, station_days.c.day, first, last),
            (hours, hours.c.hour, last, filters.until),
        ]
    for table, time, since, until in parts:
        if since == until:
            continue
        statement = select(table.c.station, table.c.label, func.sum(table.c.count))
        statement = statement.where(table.c.count > 0, time >= since, time < until)
        statement = statement.where(*equal(table, station=filters.station, version=filters.version))
        by_time = without_index(connection.dialect.name, table.c.station)
        for station, label, count in connection.execute(statement.group_by(by_time, table.c.label)):
            yield StationSum(station, label, int(count))


def _sum_rows(connection: Connection, filters: Filters) -> PeriodSums:
    times: dict[tuple[datetime, str, str, str], tuple[int, float]] = {}
    stations: dict[tuple[str, str], int] = {}
    with connection.execute(_select_rows(connection, filters), execution_options={"yield_per": ROWS}) as rows:
        for number, (at, station, model, version, label, odds) in enumerate(rows):
            if number == MAX_TAGGED:
                raise RequestError(
                    400,
                    "too_many_inspections",
                    "More than {limit:,} inspections match. Expected fewer: shorten the period.",
                    limit=MAX_TAGGED,
                )
            key = (_start_of_quarter(at), model, version, label)
            count, summed = times.get(key, (0, 0.0))
            times[key] = (count + 1, summed + odds)
            stations[station, label] = stations.get((station, label), 0) + 1
    return PeriodSums(
        [TimeSum(*key, count, summed, key[0]) for key, (count, summed) in times.items()],
        [StationSum(*key, count) for key, count in stations.items()],
    )


def _select_rows(connection: Connection, filters: Filters) -> Select[Any]:
    table = inspections.c
    columns = (table.inspected_at, table.station, table.model, table.version, table.label, table.log_odds)
    statement = select(*columns).where(table.label != NOT_INSPECTED, *in_period(table.inspected_at, filters))
    number = table.id
    if filters.tag is not None:
        number = tags.c.record_id
        statement = statement.join(tags, tags.c.record_id == table.id)
        statement = statement.where(tags.c.key == filters.tag[0], tags.c.value == filters.tag[1])
    statement = statement.where(number.between(*id_range(connection, filters)))
    statement = statement.where(*equal(inspections, version=filters.version))
    if filters.station is not None:
        statement = statement.where(without_index(connection.dialect.name, table.station) == filters.station)
    return statement


def _start_of_quarter(moment: datetime) -> datetime:
    return moment - timedelta(seconds=moment.timestamp() % QUARTER_S)
