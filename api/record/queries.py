"""Queries of the inspections, pictures and hours."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from operator import add
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    RowMapping,
    Select,
    Table,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from api.record.filters import start_of_day
from api.record.inspection import Row
from api.record.storage.retention_class import RetentionClass
from api.record.tables import audit, hour_totals, hours, inspections, pictures, station_days, store

LISTED_COLUMNS = [column for column in inspections.c if column.name not in ("mask", "heat_map")]
SUMMED = ("count", "log_odds_sum", "log_odds_squares")
"""Columns of the tables of hours and days that are added."""
SUMS: Mapping[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(SUMMED, add),
    "first_id": min,
    "last_id": max,
}
"""How two rows of these tables become one, by column."""
FIRST_SUMMED = 1000
"""Pictures that are summed at first."""
PICTURE_FACTS = ("bytes", "format", "state", "deleted_at", "deleted_by")
DIALECTS = {"postgresql": postgresql, "sqlite": sqlite}
"""SQLAlchemy has `ON CONFLICT` only in its dialects."""


def insert_into(dialect: str, table: Table) -> Any:
    """Returns an INSERT that supports `ON CONFLICT`.

    Callers cache such statements: building one takes longer than its execution.
    """
    return DIALECTS[dialect].insert(table)


kept_bytes_query = select(func.coalesce(func.sum(pictures.c.bytes), 0)).where(
    pictures.c.sha256.in_(bindparam("digests", expanding=True)), pictures.c.state.in_(("kept", "expiring"))
)
"""Bytes already in the table `store`. Those of expiring pictures are subtracted when the file is deleted."""
COUNT_NEW_BYTES = update(store).values(
    bytes=store.c.bytes + bindparam("size") - kept_bytes_query.scalar_subquery()
)


def upsert_pictures(connection: Connection, rows: Sequence[Row]) -> None:
    """Inserts or updates pictures with state `kept`; an existing one keeps its retention class if higher."""
    digests, size = [row["sha256"] for row in rows], sum(row["bytes"] for row in rows)
    connection.execute(COUNT_NEW_BYTES, {"digests": digests, "size": size})
    connection.execute(_upsert_pictures(connection.dialect.name), rows)


@cache
def _upsert_pictures(dialect: str) -> Any:
    insert = insert_into(dialect, pictures)
    new, worth = insert.excluded, pictures.c.worth
    return insert.on_conflict_do_update(
        index_elements=[pictures.c.sha256],
        set_={
            "state": "kept",
            "stored_at": new.stored_at,
            "deleted_at": None,
            "deleted_by": None,
            "worth": case((worth > new.worth, worth), else_=new.worth),
        },
    )


def add_inspections(connection: Connection, rows: Sequence[Row]) -> dict[bytes, int]:
    """Inserts inspections whose keys are new; returns new ids by `token` (the row's UUID)."""
    insert = insert_into(connection.dialect.name, inspections).on_conflict_do_nothing()
    added = connection.execute(insert.returning(inspections.c.token, inspections.c.id), rows)
    return {bytes(token): number for token, number in added}


def find_original(connection: Connection, row: Row) -> RowMapping:
    """Returns the inspection that prevented the insertion of `row`: the one with its token, or else with its
    `request_key`, or else with its `part_key`.
    """
    same = [inspections.c[name] == row[name] for name in ("token", "request_key", "part_key") if row[name]]
    order = case(*((condition, rank) for rank, condition in enumerate(same)))
    rows = connection.execute(select(inspections).where(or_(*same)).order_by(order).limit(1))
    return rows.mappings().one()


def add_hour_counts(connection: Connection, rows: Sequence[Row]) -> None:
    """Adds counts to the table `hours`, and to its sums over stations and days."""
    by_day = [{**row, "day": start_of_day(row["hour"])} for row in rows if row["count"]]
    for table, added in ((hours, rows), (hour_totals, rows), (station_days, by_day)):
        if added:
            summed = _sum_rows(table, added)
            connection.execute(_add_counts(connection.dialect.name, table), summed)


@cache
def _add_counts(dialect: str, table: Table) -> Any:
    insert = insert_into(dialect, table)
    new = insert.excluded
    changed = {name: table.c[name] + new[name] for name in SUMMED if name in table.c}
    changed |= {name: new[name] for name in ("last_id",) if name in table.c}
    return insert.on_conflict_do_update(index_elements=list(table.primary_key), set_=changed)


def _sum_rows(table: Table, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Sums rows that are the same row of `table`, with its columns only."""
    keys = [column.name for column in table.primary_key]
    names = [column.name for column in table.c if column.name not in keys]
    summed: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        if key not in summed:
            summed[key] = {name: row[name] for name in (*keys, *names)}
            continue
        for name in names:
            summed[key][name] = SUMS[name](summed[key][name], row[name])
    return list(summed.values())


def find_inspection(connection: Connection, record_id: int) -> RowMapping | None:
    """Returns an inspection with the facts of its picture; None if it does not exist."""
    statement = with_pictures(inspections.c).where(inspections.c.id == record_id)
    return connection.execute(statement).mappings().first()


def with_pictures(columns: Iterable[Column[Any]]) -> Select[Any]:
    """Selects columns of inspections, with facts of their pictures and `has_heat_map`."""
    facts = [pictures.c[name].label(f"picture_{name}") for name in PICTURE_FACTS]
    has_heat_map = inspections.c.heat_map.is_not(None).label("has_heat_map")
    return select(*columns, *facts, has_heat_map).join_from(inspections, pictures)


def picture_state(connection: Connection, sha256: bytes) -> str | None:
    """Returns the state of a picture; None if it has no row."""
    statement = select(pictures.c.state).where(pictures.c.sha256 == sha256)
    return connection.execute(statement).scalar()


def change_picture_states(
    connection: Connection, digests: Sequence[bytes], before: str, after: str, **values: object
) -> None:
    """Changes the state of those pictures that have the state `before`, and other columns to `values`."""
    statement = update(pictures).where(pictures.c.sha256.in_(digests), pictures.c.state == before)
    connection.execute(statement.values(state=after, **values))


def begin_deletion(
    connection: Connection, digests: Sequence[bytes], before: str, after: str, who: str | None
) -> None:
    """Changes states as `change_picture_states`, and stores when and by whom the pictures are deleted; None =
    by the retention rules.
    """
    change_picture_states(connection, digests, before, after, deleted_at=datetime.now(UTC), deleted_by=who)


def expire_unreferenced(connection: Connection, digests: Sequence[bytes]) -> None:
    """Marks as expiring those pictures that no inspection references."""
    if digests:
        referenced = select(inspections.c.picture).where(inspections.c.picture.in_(digests))
        orphaned = pictures.c.sha256.in_(digests) & pictures.c.sha256.not_in(referenced)
        connection.execute(update(pictures).where(orphaned).values(state="expiring"))


def delete_heat_maps(connection: Connection, digests: Sequence[bytes]) -> None:
    """Deletes the heat maps of all inspections of these pictures."""
    affected = inspections.c.picture.in_(digests), inspections.c.heat_map.is_not(None)
    connection.execute(update(inspections).where(*affected).values(heat_map=None))


def subtract_stored_bytes(connection: Connection, digests: Sequence[bytes]) -> None:
    """Subtracts the size of pictures from the total."""
    statement = select(func.sum(pictures.c.bytes)).where(pictures.c.sha256.in_(digests))
    size = int(connection.execute(statement).scalar() or 0)
    connection.execute(update(store).values(bytes=store.c.bytes - size))


def stored_bytes(connection: Connection) -> int:
    """Returns the total size of all kept pictures."""
    return int(connection.execute(select(store.c.bytes)).scalar() or 0)


def least_valuable_pictures(
    connection: Connection, classes: Sequence[RetentionClass], before: datetime | None, limit: int
) -> Sequence[bytes]:
    """Returns kept pictures stored before a time (None = any): the lowest class first, then the oldest."""
    statement = select(pictures.c.sha256).where(
        pictures.c.state == literal_column("'kept'"), pictures.c.worth.in_(classes)
    )
    if before is not None:
        statement = statement.where(pictures.c.stored_at < before)
    ordered = statement.order_by(pictures.c.worth, pictures.c.stored_at).limit(limit)
    return [bytes(sha256) for sha256 in connection.execute(ordered).scalars()]


def are_larger_than(connection: Connection, classes: Sequence[RetentionClass], size: int) -> bool:
    """Returns whether the kept pictures of these classes have at least `size` bytes; reads few rows if
    few suffice.
    """
    if stored_bytes(connection) < size:
        return False
    order = pictures.c.worth, pictures.c.stored_at
    kept = pictures.c.state == literal_column("'kept'"), pictures.c.worth.in_(classes)
    limit = FIRST_SUMMED
    while True:
        some = select(pictures.c.bytes).where(*kept).order_by(*order).limit(limit).subquery()
        total, count = connection.execute(select(func.sum(some.c.bytes), func.count())).one()
        if (total or 0) >= size or count < limit:
            return (total or 0) >= size
        limit *= 10


def expiring_pictures(connection: Connection, limit: int) -> Sequence[bytes]:
    """Returns pictures whose files are to be deleted."""
    statement = select(pictures.c.sha256).where(pictures.c.state == literal_column("'expiring'")).limit(limit)
    return [bytes(sha256) for sha256 in connection.execute(statement).scalars()]


def add_audit_entry(
    connection: Connection,
    who: str,
    what: str,
    *,
    record_id: int | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Adds an entry to the audit log, in the transaction of the change; see `AuditEntry`."""
    entry = {"at": datetime.now(UTC), "who": who, "what": what, "record_id": record_id}
    for name, state in (("before", before), ("after", after)):
        entry[name] = None if state is None else json.dumps(state)
    connection.execute(audit.insert(), entry)


def newest_hour(connection: Connection) -> datetime | None:
    """Returns the latest hour with an inspection."""
    return connection.execute(select(func.max(hours.c.hour))).scalar()


def has_kept_pictures(connection: Connection) -> bool:
    """Returns whether there is any kept picture."""
    kept = select(pictures.c.sha256).where(pictures.c.state == literal_column("'kept'")).limit(1)
    return connection.execute(kept).first() is not None
