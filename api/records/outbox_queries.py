"""What senders and routes ask of the outbox, each by a function of a connection."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    delete,
    func,
    select,
    update,
)

from api.records.tables import outbox

WAITING, DEAD = "waiting", "dead"
letters = outbox.c


def waiting_stations(connection: Connection, sink: str, after: str | None, limit: int) -> Sequence[str]:
    """Returns stations of which something waits, in order, without reading all that does.

    Args:
        connection: To the database.
        sink: For whom it waits.
        after: Only stations behind this one; None = from the first.
        most: How many.
    """
    first = _first_station(sink, None if after is None else letters.station > after)
    found = first.cte("stations", recursive=True)
    following = _first_station(sink, letters.station > found.c.station).correlate(found).scalar_subquery()
    found = found.union_all(select(following).where(found.c.station.is_not(None)))
    statement = select(found.c.station).where(found.c.station.is_not(None)).limit(limit)
    return connection.execute(statement).scalars().all()


def _first_station(sink: str, further: ColumnElement[bool] | None) -> Select[tuple[str]]:
    first = select(func.min(letters.station).label("station"))
    first = first.where(letters.sink == sink, letters.state == WAITING)
    return first if further is None else first.where(further)


def waiting_messages(connection: Connection, sink: str, station: str, limit: int) -> Sequence[RowMapping]:
    """Returns what waits longest for a sink, of one station, in order."""
    statement = _of(sink, WAITING).where(letters.station == station).order_by(letters.id).limit(limit)
    return connection.execute(statement).mappings().all()


def dead_letters(connection: Connection, sink: str, limit: int) -> Sequence[RowMapping]:
    """Returns what was given up, the newest first."""
    statement = _of(sink, DEAD).order_by(letters.id.desc()).limit(limit)
    return connection.execute(statement).mappings().all()


def find_message(connection: Connection, message_id: int) -> RowMapping | None:
    """Returns what waits, or was given up, by its id; None if there is no such thing any more."""
    return connection.execute(select(outbox).where(letters.id == message_id)).mappings().first()


def _of(sink: str, state: str) -> Select[tuple[object, ...]]:
    return select(outbox).where(letters.sink == sink, letters.state == state)


@dataclass(frozen=True)
class Backlog:
    """What lies in the outbox for a sink, in one state.

    Attributes:
        count: How many.
        oldest: When the first of them was written.
    """

    count: int
    oldest: datetime


def count_backlogs(connection: Connection) -> dict[tuple[str, str], Backlog]:
    """Counts what lies in the outbox, by sink and state."""
    counted = select(
        letters.sink, letters.state, func.count().label("count"), func.min(letters.id).label("id")
    )
    backlogs = counted.group_by(letters.sink, letters.state).subquery()
    columns = (backlogs.c.sink, backlogs.c.state, backlogs.c.count, letters.created_at)
    rows = connection.execute(select(*columns).join(outbox, letters.id == backlogs.c.id))
    return {(sink, state): Backlog(count, oldest) for sink, state, count, oldest in rows}


# === Changes ===


def delete_messages(connection: Connection, ids: Sequence[int]) -> int:
    """Removes what was delivered, or is not wanted any more; returns how many there were."""
    return connection.execute(delete(outbox).where(letters.id.in_(ids))).rowcount


def save_failure(
    connection: Connection, message_id: int, attempts: int, next_at: datetime, error: str
) -> None:
    """Says why something waits still, and until when."""
    statement = update(outbox).where(letters.id == message_id)
    connection.execute(statement.values(attempts=attempts, next_at=next_at, error=error))


def mark_dead(connection: Connection, message_id: int, attempts: int, error: str) -> None:
    """Gives one up."""
    statement = update(outbox).where(letters.id == message_id, letters.state == WAITING)
    connection.execute(statement.values(state=DEAD, attempts=attempts, error=error))


def mark_old_dead(
    connection: Connection, sink: str, station: str, before: datetime, error: str, limit: int
) -> int:
    """Gives up what has been waiting since before a time, of one station; returns how many."""
    old = select(letters.id).where(letters.sink == sink, letters.state == WAITING)
    old = old.where(letters.station == station, letters.created_at < before)
    chosen = old.order_by(letters.id).limit(limit)
    statement = update(outbox).where(letters.id.in_(chosen.scalar_subquery()))
    return connection.execute(statement.values(state=DEAD, error=error)).rowcount


def requeue(connection: Connection, ids: Sequence[int], now: datetime) -> int:
    """Lets what was given up wait again, as if it had never been tried; returns how many."""
    statement = update(outbox).where(letters.id.in_(ids), letters.state == DEAD)
    return connection.execute(statement.values(state=WAITING, attempts=0, next_at=now, error=None)).rowcount


def requeue_oldest(connection: Connection, sink: str, now: datetime, limit: int) -> int:
    """Lets the oldest of a sink wait again that were given up; returns how many."""
    oldest = select(letters.id).where(letters.sink == sink, letters.state == DEAD)
    ids = connection.execute(oldest.order_by(letters.id).limit(limit)).scalars().all()
    return requeue(connection, ids, now)


def drop_oldest(connection: Connection, sink: str, state: str, count: int) -> int:
    """Removes the oldest of a sink in one state, unread; returns how many."""
    oldest = select(letters.id).where(letters.sink == sink, letters.state == state)
    chosen = oldest.order_by(letters.id).limit(count).scalar_subquery()
    return connection.execute(delete(outbox).where(letters.id.in_(chosen))).rowcount
