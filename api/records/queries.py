"""What is asked of the tables, each by a function of a connection."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
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

from api.records.inspection import Row
from api.records.storage.retention_class import RetentionClass
from api.records.tables import audit, hours, inspections, pictures, store

DIALECTS = {"postgresql": postgresql, "sqlite": sqlite}
"""Both say `ON CONFLICT` alike, but SQLAlchemy has no common word for it."""


def insert_into(dialect: str, table: Table) -> Any:
    """Begins an INSERT in the words of a database, which can say what happens to a row that is there.

    Such a statement is made once: making it takes longer than what the database does.
    """
    return DIALECTS[dialect].insert(table)


kept_bytes_query = select(func.coalesce(func.sum(pictures.c.bytes), 0)).where(
    pictures.c.sha256.in_(bindparam("digests", expanding=True)), pictures.c.state.in_(("kept", "expiring"))
)
"""Those whose bytes are counted: of what is expiring, they are forgotten with its file."""
COUNT_NEW_BYTES = update(store).values(
    bytes=store.c.bytes + bindparam("size") - kept_bytes_query.scalar_subquery()
)


def upsert_pictures(connection: Connection, rows: Sequence[Row]) -> None:
    """Says of pictures that they are kept. One that was there keeps the higher worth of the two."""
    digests, size = [row["sha256"] for row in rows], sum(row["bytes"] for row in rows)
    connection.execute(COUNT_NEW_BYTES, {"digests": digests, "size": size})
    connection.execute(_keep_pictures(connection.dialect.name), rows)


@cache
def _keep_pictures(dialect: str) -> Any:
    insert = insert_into(dialect, pictures)
    new, worth = insert.excluded, pictures.c.worth
    return insert.on_conflict_do_update(
        index_elements=[pictures.c.sha256],
        set_={
            "state": "kept",
            "stored_at": new.stored_at,
            "worth": case((worth > new.worth, worth), else_=new.worth),
        },
    )


def add_inspections(connection: Connection, rows: Sequence[Row]) -> dict[bytes, int]:
    """Adds inspections but those of which a key is there already; returns the ids of the added by token."""
    added = connection.execute(_add_inspections(connection.dialect.name), rows)
    return {bytes(token): number for token, number in added}


@cache
def _add_inspections(dialect: str) -> Any:
    insert = insert_into(dialect, inspections).on_conflict_do_nothing()
    return insert.returning(inspections.c.token, inspections.c.id)


def find_original(connection: Connection, row: Row) -> RowMapping:
    """Returns the inspection because of which `row` was not added: it has its token or one of its keys."""
    same = [inspections.c[name] == row[name] for name in ("token", "request_key", "part_key") if row[name]]
    found = connection.execute(select(inspections).where(or_(*same)).order_by(inspections.c.id).limit(1))
    return found.mappings().one()


def add_hour_counts(connection: Connection, rows: Sequence[Row]) -> None:
    """Adds rows of the table `hours` to those that are there."""
    connection.execute(_count_hours(connection.dialect.name), rows)


@cache
def _count_hours(dialect: str) -> Any:
    insert = insert_into(dialect, hours)
    new = insert.excluded
    added = {name: hours.c[name] + new[name] for name in ("count", "log_odds_sum", "log_odds_squares")}
    return insert.on_conflict_do_update(
        index_elements=list(hours.primary_key), set_={**added, "last_id": new.last_id}
    )


def find_inspection(connection: Connection, record_id: int) -> RowMapping | None:
    """Returns an inspection with what is known of its picture; None if there is none."""
    statement = with_pictures(inspections.c).where(inspections.c.id == record_id)
    return connection.execute(statement).mappings().first()


def with_pictures(columns: Iterable[Column[Any]]) -> Select[Any]:
    """Selects these columns of inspections, with what is known of their pictures."""
    known = [pictures.c[name].label(f"picture_{name}") for name in ("bytes", "format", "state")]
    return select(*columns, *known).join_from(inspections, pictures)


def picture_state(connection: Connection, sha256: bytes) -> str | None:
    """Returns what a row says of a picture; None if there is no row."""
    state: str | None = connection.execute(
        select(pictures.c.state).where(pictures.c.sha256 == sha256)
    ).scalar()
    return state


def picture_is_kept(connection: Connection, sha256: bytes) -> bool:
    """Returns whether a row says that a picture is there."""
    return picture_state(connection, sha256) == "kept"


def change_picture_states(connection: Connection, digests: Sequence[bytes], before: str, after: str) -> None:
    """Changes the state of those pictures that are in the state `before`."""
    statement = update(pictures).where(pictures.c.sha256.in_(digests), pictures.c.state == before)
    connection.execute(statement.values(state=after))


def expire_unreferenced(connection: Connection, digests: Sequence[bytes]) -> None:
    """Lets those pictures go that no inspection shows."""
    if digests:
        shown = select(inspections.c.picture).where(inspections.c.picture.in_(digests))
        gone = pictures.c.sha256.in_(digests) & pictures.c.sha256.not_in(shown)
        connection.execute(update(pictures).where(gone).values(state="expiring"))


def subtract_stored_bytes(connection: Connection, digests: Sequence[bytes]) -> None:
    """Takes pictures out of the sum of what is stored."""
    statement = select(func.sum(pictures.c.bytes)).where(pictures.c.sha256.in_(digests))
    size = int(connection.execute(statement).scalar() or 0)
    connection.execute(update(store).values(bytes=store.c.bytes - size))


def stored_bytes(connection: Connection) -> int:
    """Returns the size of all pictures that are kept."""
    return int(connection.execute(select(store.c.bytes)).scalar() or 0)


def least_valuable_pictures(
    connection: Connection, worths: Sequence[RetentionClass], before: datetime | None, limit: int
) -> Sequence[bytes]:
    """Returns the pictures that are worth least, the oldest first.

    Args:
        connection: To the database.
        worths: Only of these.
        before: Only older ones; None = of any age.
        most: How many.
    """
    statement = select(pictures.c.sha256).where(
        pictures.c.state == literal_column("'kept'"), pictures.c.worth.in_(worths)
    )
    if before is not None:
        statement = statement.where(pictures.c.stored_at < before)
    ordered = statement.order_by(pictures.c.worth, pictures.c.stored_at).limit(limit)
    return [bytes(sha256) for sha256 in connection.execute(ordered).scalars()]


def expiring_pictures(connection: Connection, limit: int) -> Sequence[bytes]:
    """Returns pictures that are to be deleted."""
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
    """Writes down a change.

    Args:
        connection: Of the change's own transaction.
        who: Name of a key, or of a part of the service.
        what: Happened.
        record_id: To which inspection; None where it is to none alone.
        before: What was there; None where that says nothing.
        after: What is there now.
    """
    told = {
        name: None if values is None else json.dumps(values)
        for name, values in (("before", before), ("after", after))
    }
    line = {"at": datetime.now(UTC), "who": who, "what": what, "record_id": record_id, **told}
    connection.execute(audit.insert(), line)


def parse_audit_values(told: str) -> dict[str, Any]:
    """Reads what a line of the audit says was there before or after."""
    values: dict[str, Any] = json.loads(told)
    return values


def newest_hour(connection: Connection) -> datetime | None:
    """Returns the latest hour in which something was inspected, by the clock of then."""
    return connection.execute(select(func.max(hours.c.hour))).scalar()


def has_kept_pictures(connection: Connection) -> bool:
    """Returns whether any picture is there."""
    kept = select(pictures.c.sha256).where(pictures.c.state == literal_column("'kept'")).limit(1)
    return connection.execute(kept).first() is not None


# === Pages ===


@dataclass(frozen=True)
class Filters:
    """Which inspections are meant; None = any.

    Attributes:
        station: Where.
        part_id: Which part.
        label: The verdict.
        since: Inspected then or later.
        until: Inspected before then.
        reviewed: Whether a person has said something of it.
    """

    station: str | None = None
    part_id: str | None = None
    label: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    reviewed: bool | None = None


def list_inspections(
    connection: Connection, filters: Filters, before: int | None, limit: int
) -> Sequence[RowMapping]:
    """Returns up to `limit` inspections without their masks, the newest first.

    Args:
        connection: To the database.
        filters: Which ones.
        before: Only what was kept before the inspection of this id; None = the newest.
        most: How many.
    """
    table = inspections.c
    listed = (column for column in table if column is not table.mask)
    statement = with_pictures(listed).order_by(table.id.desc()).limit(limit)
    statement = statement.where(*_equal(connection.dialect.name, filters))
    if filters.reviewed is not None:
        is_missing = table.reviewed_label.is_(None)
        statement = statement.where(~is_missing if filters.reviewed else is_missing)
    if filters.since is not None or filters.until is not None:
        first, last = id_range(connection, filters)
        statement = statement.where(table.id >= first)
        before = min(last + 1, before or last + 1)  # of two bounds, SQLite would go by one and try the other
        if filters.since is not None:
            statement = statement.where(table.inspected_at >= filters.since)
        if filters.until is not None:
            statement = statement.where(table.inspected_at < filters.until)
    if before is not None:
        statement = statement.where(table.id < before)
    return connection.execute(statement).mappings().all()


def _equal(dialect: str, filters: Filters) -> Iterator[ColumnElement[bool]]:
    """Yields what columns have to be; a part, and what was reviewed, is rarer than all else that is named."""
    names = ("station", "part_id", "label")
    found_by = ("part_id",) if filters.part_id is not None else () if filters.reviewed else names
    for name in names:
        if (value := getattr(filters, name)) is not None:
            column = inspections.c[name]
            yield (column if name in found_by else without_index(dialect, column)) == value


def without_index(dialect: str, column: Column[Any]) -> ColumnElement[Any]:
    """Returns the text of a column in words that keep SQLite from the column's own index.

    SQLite keeps no figures of what is rare, and would take the index of any column that is named.
    """
    return column.concat("") if dialect == "sqlite" else column


def id_range(connection: Connection, filters: Filters) -> tuple[int, int]:
    """Returns the lowest and the highest id of the hours that a time touches.

    Ids have the order in which inspections were kept, times that of the clock, which may jump: the hours know
    the ids that they really had.
    """
    statement = select(func.min(hours.c.first_id), func.max(hours.c.last_id))
    if filters.since is not None:
        statement = statement.where(hours.c.hour >= start_of_hour(filters.since))
    if filters.until is not None:
        statement = statement.where(hours.c.hour < filters.until)
    if filters.station is not None:
        statement = statement.where(hours.c.station == filters.station)
    if filters.label is not None:
        statement = statement.where(hours.c.label == filters.label)
    first, last = connection.execute(statement).one()
    return (0, -1) if first is None else (first, last)


def start_of_hour(moment: datetime) -> datetime:
    """Returns the beginning of its hour, in UTC."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
