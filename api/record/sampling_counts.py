"""Counts all inspections by sampling stratum, the population of the review statistics."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, func, select

from api.record.filters import Filters, equal, in_period, in_period_and_station, start_of_hour
from api.record.inspection import Row
from api.record.queries import insert_into
from api.record.tables import draws, inspections

HOUR = timedelta(hours=1)


class Stratum(NamedTuple):
    """Sampling reason and probability."""

    reason: str
    probability: float


def add_sampling_counts(connection: Connection, rows: Iterable[Row]) -> None:
    """Adds new inspections to the counts, sampled or not."""
    names = ("station", "draw_reason", "draw_probability")
    counts = Counter((start_of_hour(row["inspected_at"]), *(row[name] for name in names)) for row in rows)
    columns = ("hour", *names, "count")
    added = [dict(zip(columns, (*key, count), strict=True)) for key, count in sorted(counts.items())]
    connection.execute(_add(connection.dialect.name), added)


@cache
def _add(dialect: str) -> Any:
    insert = insert_into(dialect, draws)
    return insert.on_conflict_do_update(
        index_elements=list(draws.primary_key), set_={"count": draws.c.count + insert.excluded.count}
    )


def count_strata(connection: Connection, filters: Filters) -> Mapping[Stratum, int]:
    """Counts inspections by stratum: whole hours from `draws`, partial hours row by row."""
    since, until = filters.since, filters.until
    first = None if since is None else start_of_hour(since + HOUR - timedelta.resolution)
    last = None if until is None else start_of_hour(until)
    if first is not None and last is not None and first > last:  # within one hour
        return _count(connection, filters)
    totals = _whole_hours(connection, replace(filters, since=first, until=last))
    if since is not None and first != since:
        totals += _count(connection, replace(filters, until=first))
    if until is not None and last != until:
        totals += _count(connection, replace(filters, since=last))
    return totals


def _whole_hours(connection: Connection, filters: Filters) -> Counter[Stratum]:
    by = draws.c.draw_reason, draws.c.draw_probability
    statement = select(*by, func.sum(draws.c.count)).group_by(*by)
    conditions = *in_period(draws.c.hour, filters), *equal(draws, station=filters.station)
    return _by_draw(connection, statement.where(*conditions))


def _count(connection: Connection, filters: Filters) -> Counter[Stratum]:
    by = inspections.c.draw_reason, inspections.c.draw_probability
    statement = in_period_and_station(connection, select(*by, func.count()), filters).group_by(*by)
    return _by_draw(connection, statement.where(inspections.c.draw_reason.is_not(None)))


def _by_draw(connection: Connection, statement: Select[Any]) -> Counter[Stratum]:
    rows = connection.execute(statement)
    return Counter({Stratum(reason, probability): int(count) for reason, probability, count in rows})
