"""Queries for the line screen: sums over hours, and few rows by id."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, func, select

from api.line.silent_stations import StationActivity
from api.record.filters import Filters, equal, in_period_and_station, start_of_hour, without_index
from api.record.tables import hour_totals, hours, inspections, uninspected
from segdec.runtime.identifiers import NOT_INSPECTED

HOUR = timedelta(hours=1)
MAX_STATIONS = 100
"""Stations in an answer, the most recent first: clients choose the names, so their number is unlimited."""
COLUMN_NAMES = (
    *("id", "inspected_at", "station", "part_id", "label", "score", "threshold", "model", "version"),
    *("plan", "plan_version", "plan_severity", "plan_finding"),
)
COLUMNS = tuple(inspections.c[name] for name in COLUMN_NAMES)
is_inspected, has_inspections = inspections.c.label != NOT_INSPECTED, hours.c.count > 0
"""Conditions that exclude photographs without a verdict, which are kept for review."""


def last_inspection(connection: Connection, station: str | None) -> RowMapping | None:
    """Returns the newest inspection of a station; None = of all."""
    statement = select(*COLUMNS).where(is_inspected, *equal(inspections, station=station))
    return connection.execute(statement.order_by(inspections.c.id.desc()).limit(1)).mappings().first()


def hour_sums(connection: Connection, since: datetime, station: str | None) -> Sequence[RowMapping]:
    """Returns sums per hour, model, version and label, ordered by hour."""
    table = hour_totals if station is None else hours
    keys = (table.c.hour, table.c.model, table.c.version, table.c.label)
    sums = [func.sum(table.c[name]).label(name) for name in ("count", "log_odds_sum", "log_odds_squares")]
    statement = (
        select(*keys, *sums)
        .where(table.c.hour >= since, table.c.count > 0, *equal(table, station=station))
        .group_by(*keys)
    )
    return connection.execute(statement.order_by(table.c.hour)).mappings().all()


def last_defects(
    connection: Connection, since: datetime, station: str | None, others: Collection[str], limit: int
) -> Sequence[RowMapping]:
    """Returns up to `limit` defects from the hour `since` on, newest first; `others`: non-defect labels."""
    # The table of hours bounds the ids, so that few other rows are read.
    ranges = select(hours.c.station, hours.c.label, hours.c.first_id, hours.c.last_id)
    ranges = ranges.where(hours.c.hour >= since, hours.c.label.not_in(others), *equal(hours, station=station))
    rows = connection.execute(ranges.order_by(hours.c.last_id.desc()).limit(limit)).all()
    defects: list[RowMapping] = []
    for at, label, first, last in rows:
        if len(defects) >= limit and last < min(row["id"] for row in defects[:limit]):
            break
        table = inspections.c
        statement = select(*COLUMNS).order_by(table.id.desc()).limit(limit)
        statement = statement.where(table.label == label, table.station == at, table.id.between(first, last))
        defects = sorted([*defects, *connection.execute(statement).mappings()], key=lambda row: -row["id"])
    return defects[:limit]


# === Stations ===


def by_hour(connection: Connection) -> ColumnElement[str]:
    """Returns the station of hours as an expression, so that their rows are found by hour."""
    return without_index(connection.dialect.name, hours.c.station)


def stations_since(connection: Connection, since: datetime) -> dict[str, int]:
    """Returns the id of the newest inspection of each station, inspected or not; the newest first."""
    newest, station = func.max(hours.c.last_id), by_hour(connection)
    statement = select(hours.c.station, newest).where(hours.c.hour >= since).group_by(station)
    ordered = statement.order_by(newest.desc()).limit(MAX_STATIONS)
    return dict(connection.execute(ordered).all())


def station_activity(
    connection: Connection, since: datetime, newest: dict[str, int]
) -> dict[str, StationActivity]:
    """Returns the activity, from the hour `since` on, of each station that `stations_since` found."""
    table = inspections.c
    last = select(table.station, table.inspected_at).where(table.id.in_(newest.values()))
    moments = dict(connection.execute(last).all())
    statement = (
        select(hours.c.station, func.count(hours.c.hour.distinct()), func.sum(hours.c.count))
        .where(hours.c.hour >= since, has_inspections, by_hour(connection).in_(newest.keys()))
        .group_by(by_hour(connection))
    )
    return {
        station: StationActivity(station, active, int(count), moments[station])
        for station, active, count in connection.execute(statement)
        if station in moments
    }


def last_inspection_times(connection: Connection, stations: Collection[str]) -> dict[str, datetime]:
    """Returns the time of the last inspection of each station that has one."""
    rows = (last_inspection(connection, station) for station in stations)
    return {row["station"]: row["inspected_at"] for row in rows if row is not None}


# === Counts ===


def count_labels(
    connection: Connection, since: datetime, station: str | None = None
) -> Counter[tuple[str, str]]:
    """Counts inspections since a time by station and label.

    Whole hours come from the table of hours; only a partial first hour is counted row by row.
    """
    counts: Counter[tuple[str, str]] = Counter()
    first = start_of_hour(since)
    if first < since:
        first += HOUR
        counts += _count_rows(connection, since, first, station)
    keys = hours.c.station, hours.c.label
    statement = select(*keys, func.sum(hours.c.count)).where(
        hours.c.hour >= first, has_inspections, *equal(hours, station=station)
    )
    for at, label, count in connection.execute(statement.group_by(by_hour(connection), hours.c.label)):
        counts[at, label] += int(count)
    return counts


def _count_rows(
    connection: Connection, since: datetime, until: datetime, station: str | None
) -> Counter[tuple[str, str]]:
    table = inspections.c
    statement = select(table.station, table.label, func.count()).where(is_inspected)
    statement = in_period_and_station(connection, statement, Filters(station, since=since, until=until))
    rows = connection.execute(statement.group_by(table.station, table.label))
    return Counter({(at, label): count for at, label, count in rows})


# === Uninspected photographs ===


def _uninspected(since: datetime, station: str | None) -> list[ColumnElement[bool]]:
    """Conditions for photographs since a time at a station, or at an unknown one."""
    at = [] if station is None else [uninspected.c.station.in_([station, ""])]
    return [uninspected.c.at >= since, *at]


def count_uninspected(
    connection: Connection, since: datetime, station: str | None, until: datetime | None = None
) -> int:
    """Returns the number of stored uninspected photographs of a period."""
    statement = select(func.coalesce(func.sum(uninspected.c.count), 0)).where(*_uninspected(since, station))
    if until is not None:
        statement = statement.where(uninspected.c.at < until)
    return int(connection.execute(statement).scalar_one())


def last_uninspected(
    connection: Connection, since: datetime, station: str | None
) -> Sequence[dict[str, Any]]:
    """Returns the last uninspected photograph of each station, the newest first."""
    newest = select(func.max(uninspected.c.id)).where(*_uninspected(since, station))
    chosen = uninspected.c.id.in_(newest.group_by(uninspected.c.station))
    statement = select(uninspected).where(chosen).order_by(uninspected.c.id.desc()).limit(MAX_STATIONS)
    return [dict(row) for row in connection.execute(statement).mappings()]
