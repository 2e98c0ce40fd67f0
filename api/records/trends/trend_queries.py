"""Counts by hour, label, version and station for the trends."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, func, select

from api.records.filters import Filters, equal, in_period, start_of_hour
from api.records.tables import hours, inspections, tags
from segdec.runtime.identifiers import NOT_INSPECTED

MAX_TAGGED = 200_000
"""Inspections that are counted for one value of the metadata, the newest ones."""


@dataclass(frozen=True)
class HourSum:
    """Inspections with a label and a model version in an hour; `log_odds` is their sum."""

    hour: datetime
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


def sum_hours(connection: Connection, filters: Filters) -> Sequence[HourSum]:
    """Returns the sums by hour, version and label; `filters` has a period, a station and a version."""
    keys = (hours.c.hour, hours.c.version, hours.c.label)
    sums = (func.sum(hours.c.count), func.sum(hours.c.log_odds_sum))
    statement = select(*keys, *sums).where(*_conditions(filters)).group_by(*keys)
    rows = connection.execute(statement)
    return [HourSum(hour, version, label, int(count), odds) for hour, version, label, count, odds in rows]


def sum_stations(connection: Connection, filters: Filters) -> Sequence[StationSum]:
    """Returns the sums by station and label; `filters` as for `sum_hours`."""
    keys = (hours.c.station, hours.c.label)
    statement = select(*keys, func.sum(hours.c.count)).where(*_conditions(filters)).group_by(*keys)
    rows = connection.execute(statement)
    return [StationSum(station, label, int(count)) for station, label, count in rows]


def _conditions(filters: Filters) -> Iterator[ColumnElement[bool]]:
    yield hours.c.count > 0
    yield from in_period(hours.c.hour, filters)
    yield from equal(hours, station=filters.station, version=filters.version)


def sum_tagged(connection: Connection, filters: Filters) -> tuple[Sequence[HourSum], Sequence[StationSum]]:
    """Returns both sums for one value of the metadata, `filters.tag`; of at most the newest `MAX_TAGGED`."""
    assert filters.tag is not None
    table, (key, value) = inspections.c, filters.tag
    columns = (table.inspected_at, table.version, table.label, table.log_odds, table.station)
    statement = select(*columns).join(tags, tags.c.record_id == table.id)
    statement = statement.where(tags.c.key == key, tags.c.value == value, table.label != NOT_INSPECTED)
    statement = statement.where(*in_period(table.inspected_at, filters))
    statement = statement.where(*equal(inspections, version=filters.version))
    if filters.station is not None:
        statement = statement.where(table.station == filters.station)
    rows = connection.execute(statement.order_by(tags.c.record_id.desc()).limit(MAX_TAGGED)).all()
    hourly = [HourSum(start_of_hour(at), version, label, 1, odds) for at, version, label, odds, _ in rows]
    return hourly, [StationSum(station, label, 1) for _, _, label, _, station in rows]
