"""What the line's screen asks of the tables: sums of hours, and a few rows by their ids."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, func, select

from api.records.line.silent_stations import StationActivity
from api.records.queries import Filters, id_range, start_of_hour
from api.records.tables import hours, inspections, misses

MAX_STATIONS = 100
"""That are told of, the last to inspect first: whoever may inspect names as many as he likes."""
MAX_EDGES = 256
"""Beginnings of shifts and days, by station, of which it is remembered what their first hour had."""
TOLD = ("id", "inspected_at", "station", "part_id", "label", "score", "threshold", "model", "version")


def _at(station: str | None) -> list[ColumnElement[bool]]:
    return [] if station is None else [hours.c.station == station]


def last_inspection(connection: Connection, station: str | None) -> RowMapping | None:
    """Returns the newest inspection, of a station or of all."""
    statement = select(*(inspections.c[name] for name in TOLD)).order_by(inspections.c.id.desc()).limit(1)
    if station is not None:
        statement = statement.where(inspections.c.station == station)
    return connection.execute(statement).mappings().first()


def hour_sums(connection: Connection, since: datetime, station: str | None) -> Sequence[RowMapping]:
    """Returns what each hour had, by model, version and label, in the order of the hours."""
    keys = (hours.c.hour, hours.c.model, hours.c.version, hours.c.label)
    sums = [func.sum(hours.c[name]).label(name) for name in ("count", "log_odds_sum", "log_odds_squares")]
    statement = select(*keys, *sums).where(hours.c.hour >= since, *_at(station)).group_by(*keys)
    return connection.execute(statement.order_by(hours.c.hour)).mappings().all()


def last_defects(
    connection: Connection, since: datetime, station: str | None, others: Collection[str], limit: int
) -> Sequence[RowMapping]:
    """Returns the newest defects.

    Args:
        connection: To the database.
        since: Nothing older, to the hour.
        station: Of which; None = of all.
        others: Labels that are no defects.
        most: How many.
    """
    # The hours that had some tell between which ids they lie: no other rows are read.
    rows = connection.execute(
        select(hours.c.station, hours.c.label, hours.c.first_id, hours.c.last_id)
        .where(hours.c.hour >= since, hours.c.label.not_in(others), *_at(station))
        .order_by(hours.c.last_id.desc())
        .limit(limit)
    ).all()
    found: list[RowMapping] = []
    for at, label, first, last in rows:
        if len(found) >= limit and last < min(row["id"] for row in found[:limit]):
            break
        table = inspections.c
        statement = (
            select(*(table[name] for name in TOLD))
            .where(table.label == label, table.station == at, table.id.between(first, last))
            .order_by(table.id.desc())
            .limit(limit)
        )
        found = sorted([*found, *connection.execute(statement).mappings()], key=lambda row: -row["id"])
    return found[:limit]


# === Stations ===


def stations_since(connection: Connection, since: datetime) -> dict[str, int]:
    """Returns the id of the newest inspection of each station, the newest first."""
    newest = func.max(hours.c.last_id)
    statement = select(hours.c.station, newest).where(hours.c.hour >= since).group_by(hours.c.station)
    ordered = statement.order_by(newest.desc()).limit(MAX_STATIONS)
    return dict(connection.execute(ordered).all())


def station_activity(
    connection: Connection, since: datetime, newest: dict[str, int]
) -> dict[str, StationActivity]:
    """Returns what stations did since an hour.

    Args:
        connection: To the database.
        since: The hour.
        newest: Of `stations_since`.
    """
    table = inspections.c
    last = select(table.station, table.inspected_at).where(table.id.in_(newest.values()))
    moments = dict(connection.execute(last).all())
    statement = (
        select(hours.c.station, func.count(hours.c.hour.distinct()), func.sum(hours.c.count))
        .where(hours.c.hour >= since, hours.c.station.in_(newest.keys()))
        .group_by(hours.c.station)
    )
    return {
        station: StationActivity(station, active, int(count), moments[station])
        for station, active, count in connection.execute(statement)
        if station in moments
    }


def last_inspection_times(connection: Connection, stations: Collection[str]) -> dict[str, datetime]:
    """Returns when each of a few stations inspected last; those that never did are left out."""
    rows = (last_inspection(connection, station) for station in stations)
    return {row["station"]: row["inspected_at"] for row in rows if row is not None}


# === Counts ===


@dataclass
class _Edge:
    """What the first hour of a span had after the span began, up to an id."""

    up_to: int
    counts: Counter[str]


class LabelCounts:
    """Counts labels since any moment: whole hours by the table of hours, the first one's part by its rows.

    What was counted row by row is remembered, since rows never change.
    """

    def __init__(self) -> None:
        self._edges: OrderedDict[tuple[str | None, datetime], _Edge] = OrderedDict()
        self._lock = threading.Lock()

    def since(self, connection: Connection, moment: datetime, station: str | None) -> Counter[str]:
        """Returns how many inspections had each label."""
        first = start_of_hour(moment)
        if first == moment:
            return self._whole(connection, first, station)
        edge = self._edge(connection, moment, station)
        return edge + self._whole(connection, first + timedelta(hours=1), station)

    def _whole(self, connection: Connection, since: datetime, station: str | None) -> Counter[str]:
        statement = select(hours.c.label, func.sum(hours.c.count)).where(hours.c.hour >= since, *_at(station))
        rows = connection.execute(statement.group_by(hours.c.label))
        return Counter({label: int(count) for label, count in rows})

    def _edge(self, connection: Connection, moment: datetime, station: str | None) -> Counter[str]:
        end = start_of_hour(moment) + timedelta(hours=1)
        first, last = id_range(connection, Filters(station=station, since=moment, until=end))
        with self._lock:
            known = self._edges.pop((station, moment), _Edge(0, Counter()))
            if last > known.up_to:
                after = max(known.up_to, first - 1)
                found = _rows_between(connection, (after, last), (moment, end), station)
                known = _Edge(last, known.counts + found)
            self._edges[station, moment] = known
            while len(self._edges) > MAX_EDGES:
                self._edges.popitem(last=False)
            return known.counts


def _rows_between(
    connection: Connection, ids: tuple[int, int], moments: tuple[datetime, datetime], station: str | None
) -> Counter[str]:
    """Counts the labels of inspections row by row: after one id, up to another, between two moments."""
    table = inspections.c
    statement = select(table.label, func.count()).where(
        table.id > ids[0],
        table.id <= ids[1],
        table.inspected_at >= moments[0],
        table.inspected_at < moments[1],
    )
    if station is not None:
        statement = statement.where(table.station == station)
    return Counter(dict(connection.execute(statement.group_by(table.label)).all()))


# === Misses ===


def _missed(since: datetime, station: str | None) -> list[ColumnElement[bool]]:
    """What was missed since then; at a station, or perhaps there, since it is not known where."""
    at = [] if station is None else [misses.c.station.in_([station, ""])]
    return [misses.c.missed_at >= since, *at]


def count_uninspected(connection: Connection, since: datetime, station: str | None) -> int:
    """Returns how many photographs were not inspected, as far as they stand in rows."""
    statement = select(func.coalesce(func.sum(misses.c.count), 0)).where(*_missed(since, station))
    return int(connection.execute(statement).scalar_one())


def last_uninspected(
    connection: Connection, since: datetime, station: str | None
) -> Sequence[dict[str, Any]]:
    """Returns the last miss of each station, the newest first."""
    newest = select(func.max(misses.c.id)).where(*_missed(since, station)).group_by(misses.c.station)
    statement = select(misses).where(misses.c.id.in_(newest)).order_by(misses.c.id.desc()).limit(MAX_STATIONS)
    return [dict(row) for row in connection.execute(statement).mappings()]
