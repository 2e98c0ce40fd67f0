"""The tables of all features: each has a module `tables`; this is what they share."""

from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect, Index, Integer, MetaData, TypeDecorator, text

metadata = MetaData()
TABLES = ("api.record", "api.accounts", "api.reports", "api.data_sets", "api.jobs", "api.training")
"""Packages with a module `tables`."""

Identity = BigInteger().with_variant(Integer, "sqlite")
"""SQLite increments only INTEGER columns automatically."""


class UtcDateTime(TypeDecorator[datetime]):
    """A time in UTC: `timestamp with time zone`, or for SQLite a text that sorts in order of time."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Converts a time with a zone to UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Adds the zone that SQLite does not store."""
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def partial_index(name: str, condition: str, *columns: str) -> Index:
    """Returns an index of the rows that fulfil an SQL condition."""
    where = text(condition)
    return Index(name, *columns, sqlite_where=where, postgresql_where=where)


def all_tables() -> MetaData:
    """Returns the tables of all features."""
    for package in TABLES:
        import_module(f"{package}.tables")
    return metadata
