"""Counts by time, model version, label and station, for trends and reports."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select

from api.errors import RequestError
from api.records.filters import (
    Filters,
    equal,
    id_range,
    in_period,
    start_of_hour,
    without_index,
)
from api.records.tables import hours, inspections, tags
from segdec.runtime.identifiers import NOT_INSPECTED

HOUR = timedelta(hours=1)
QUARTER_S = 900
"""Every time zone differs from UTC by a multiple of 15 minutes."""
MAX_TAGGED = 1_000_000
"""Inspections that are counted one by one for a value of the metadata."""
ROWS = 10_000
"""Rows that are in memory while they are counted."""


@dataclass(frozen=True)
class TimeSum:
    """Inspections with a label by a model version, from a time on: of an hour or a quarter of it.

    `log_odds` is their sum.
    """

    at: datetime
    model: str
    version: str
    label: str
    count: int
    log_odds: float


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


def sum_period(connection: Connection, filters: Filters) -> PeriodSums:
    """Sums the inspections of a period; `filters` may also have a station, a version and a tag.

    Whole hours are read from the table `hours`, the rest from the inspections.

    Raises:
        RequestError: 400 if more than `MAX_TAGGED` inspections have the tag.
    """
    assert filters.since is not None and filters.until is not None
    if filters.tag is not None:
        return _sum_rows(connection, filters)
    first, last = (
        start_of_hour(filters.since - timedelta(microseconds=1)) + HOUR,
        start_of_hour(filters.until),
    )
    if first >= last:
        return _sum_rows(connection, filters)
    whole = replace(filters, since=first, until=last)
    edges = [
        _sum_rows(connection, replace(filters, since=since, until=until))
        for since, until in ((filters.since, first), (last, filters.until))
        if since < until
    ]
    times = [*_sum_hours(connection, whole), *(one for edge in edges for one in edge.times)]
    stations = [*_sum_stations(connection, whole), *(one for edge in edges for one in edge.stations)]
    return PeriodSums(times, stations)


def _sum_hours(connection: Connection, filters: Filters) -> Iterator[TimeSum]:
    keys = (hours.c.hour, hours.c.model, hours.c.version, hours.c.label)
    sums = (func.sum(hours.c.count), func.sum(hours.c.log_odds_sum))
    statement = select(*keys, *sums).where(*_conditions(filters)).group_by(*keys)
    for at, model, version, label, count, odds in connection.execute(statement):
        yield TimeSum(at, model, version, label, int(count), odds)


def _sum_stations(connection: Connection, filters: Filters) -> Iterator[StationSum]:
    keys = (hours.c.station, hours.c.label)
    statement = select(*keys, func.sum(hours.c.count)).where(*_conditions(filters)).group_by(*keys)
    for station, label, count in connection.execute(statement):
        yield StationSum(station, label, int(count))


def _conditions(filters: Filters) -> Iterator[ColumnElement[bool]]:
    yield hours.c.count > 0
    yield from in_period(hours.c.hour, filters)
    yield from equal(hours, station=filters.station, version=filters.version)


def _sum_rows(connection: Connection, filters: Filters) -> PeriodSums:
    """Sums inspections one by one."""
    times: dict[tuple[datetime, str, str, str], tuple[int, float]] = {}
    stations: dict[tuple[str, str], int] = {}
    with connection.execute(_select_rows(connection, filters), execution_options={"yield_per": ROWS}) as rows:
        for number, (at, station, model, version, label, odds) in enumerate(rows):
            if number == MAX_TAGGED:
                raise RequestError(
                    400,
                    "too_many_inspections",
                    f"More than {MAX_TAGGED:,} inspections match. Expected fewer: shorten the period.",
                )
            key = (_start_of_quarter(at), model, version, label)
            count, summed = times.get(key, (0, 0.0))
            times[key] = (count + 1, summed + odds)
            stations[station, label] = stations.get((station, label), 0) + 1
    return PeriodSums(
        [TimeSum(*key, count, summed) for key, (count, summed) in times.items()],
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
