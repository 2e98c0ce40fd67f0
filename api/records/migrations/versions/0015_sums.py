"""Adds sums of the table `hours` over stations and days, and indexes."""

from typing import Any

from alembic import op
from sqlalchemy import Column, ColumnElement, Text, func, insert, select, text

from api.records.tables import hour_totals, hours, station_days

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Creates the indexes and tables, and fills the tables."""
    reviewed = text("reviewer IS NOT NULL")
    op.create_index(
        "inspections_by_reviewer_and_label",
        "inspections",
        ["reviewer", "label", "id"],
        sqlite_where=reviewed,
        postgresql_where=reviewed,
    )
    op.create_index("hours_by_station", "hours", ["station", "hour"])
    connection = op.get_bind()
    day = (
        func.substr(hours.c.hour, 1, 10, type_=Text).concat(" 00:00:00.000000")
        if connection.dialect.name == "sqlite"
        else func.date_trunc("day", hours.c.hour, "UTC")
    )
    for table, time in ((hour_totals, hours.c.hour), (station_days, day)):
        table.create(connection)
        keys = [time, *(hours.c[key.name] for key in list(table.primary_key)[1:])]
        names = [column.name for column in table.columns]
        sums = [_sum(hours.c[name]) for name in names[len(keys) :]]
        summed = select(*keys, *sums).group_by(*keys)
        if table is station_days:
            summed = summed.where(hours.c.count > 0)
        connection.execute(insert(table).from_select(names, summed))


def _sum(column: Column[Any]) -> ColumnElement[Any]:
    """Returns what rows of `hours` have together: the first or the last id, or a sum."""
    if column.name == "first_id":
        return func.min(column)
    return func.max(column) if column.name == "last_id" else func.sum(column)
