"""Filters for inspections, and their conditions on columns of several tables."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Select, Table, func, select

from api.record.events import Verdict
from api.record.tables import hour_totals, hours, inspections


@dataclass(frozen=True)
class Filters:
    """Filters for inspections; None = any. The period contains `since` and ends before `until`.

    Attributes:
        label: The verdict with the class of a defect.
        verdict: The verdict; `defect` is any class.
        reviewed: Whether there is a review; `reviewer` wrote it.
        model: Name of the model; `version` of any model.
        tag: Key and value of the metadata.
        with_picture: Only those whose photograph is kept.
        min_distance: Only photographs that are so far from those of the training, see `UNUSUAL_DISTANCE`.
    """

    station: str | None = None
    part_id: str | None = None
    label: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    reviewed: bool | None = None
    model: str | None = None
    min_distance: float | None = None
    verdict: Verdict | None = None
    version: str | None = None
    reviewer: str | None = None
    tag: tuple[str, str] | None = None
    with_picture: bool = False


def id_range(connection: Connection, filters: Filters) -> tuple[int, int]:
    """Returns the lowest and the highest id in the hours that the filters touch; (0, -1) if there is none.

    Ids are in the order of storing, but the clock may jump, so ids are read from the tables of hours.
    """
    touched = replace(filters, since=filters.since and start_of_hour(filters.since))
    table = hour_totals if filters.station is None else hours
    statement = select(func.min(table.c.first_id), func.max(table.c.last_id)).where(
        *in_period(table.c.hour, touched),
        *equal(table, station=filters.station, label=filters.label, version=filters.version),
    )
    first, last = connection.execute(statement).one()
    return (0, -1) if first is None else (first, last)


def in_period(column: Column[datetime], filters: Filters) -> Iterator[ColumnElement[bool]]:
    """Yields the conditions for a time in the period of the filters."""
    if filters.since is not None:
        yield column >= filters.since
    if filters.until is not None:
        yield column < filters.until


def equal(table: Table, **values: object) -> Iterator[ColumnElement[bool]]:
    """Yields the conditions for columns with these values; None = any."""
    return (table.c[name] == value for name, value in values.items() if value is not None)


def in_period_and_station(connection: Connection, statement: Select[Any], filters: Filters) -> Select[Any]:
    """Restricts a statement about inspections to the period and the station of the filters."""
    table = inspections.c
    statement = statement.where(table.id.between(*id_range(connection, filters)))
    statement = statement.where(*in_period(table.inspected_at, filters))
    if filters.station is None:
        return statement
    return statement.where(without_index(connection.dialect.name, table.station) == filters.station)


def start_of_hour(moment: datetime) -> datetime:
    """Returns the start of the hour in UTC."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def start_of_day(moment: datetime) -> datetime:
    """Returns the start of the day in UTC."""
    return start_of_hour(moment).replace(hour=0)


def without_index(dialect: str, column: Column[Any]) -> ColumnElement[Any]:
    """Returns an expression with the column's value for which SQLite does not use the column's index.

    SQLite has no statistics about rare values and would use the index of any named column.
    """
    return column.concat("") if dialect == "sqlite" else column
