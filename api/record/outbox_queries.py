"""Queries of the outbox, used by senders and routes."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    case,
    delete,
    func,
    insert,
    literal,
    select,
    update,
)

from api.database.schema import UtcDateTime
from api.record.tables import deliveries, outbox

WAITING, DEAD = "waiting", "dead"
message = outbox.c
retry_at = case((message.next_at > message.created_at, message.next_at)).label("retry_at")
"""Time of the next attempt after a failure; None if there was none: clocks of replicas differ."""


def waiting_stations(
    connection: Connection, sink: str, after: str | None, limit: int
) -> Sequence[tuple[str, datetime | None]]:
    """Returns the stations with waiting messages after `after` (None = from the first), in order, each with
    `retry_at` of its oldest message.

    Reads one row per station.
    """
    first = _first_station(sink, None if after is None else message.station > after)
    stations = first.cte("stations", recursive=True)
    following = (
        _first_station(sink, message.station > stations.c.station).correlate(stations).scalar_subquery()
    )
    stations = stations.union_all(select(following).where(stations.c.station.is_not(None)))
    oldest = select(retry_at).where(message.sink == sink, message.state == WAITING)
    oldest = oldest.where(message.station == stations.c.station).order_by(message.id).limit(1)
    statement = select(stations.c.station, oldest.correlate(stations).scalar_subquery())
    rows = connection.execute(statement.where(stations.c.station.is_not(None)).limit(limit))
    return [(station, moment) for station, moment in rows]


def _first_station(sink: str, further: ColumnElement[bool] | None) -> Select[tuple[str]]:
    first = select(func.min(message.station).label("station"))
    first = first.where(message.sink == sink, message.state == WAITING)
    return first if further is None else first.where(further)


def waiting_messages(connection: Connection, sink: str, station: str, limit: int) -> Sequence[RowMapping]:
    """Returns the oldest waiting messages of a station for a sink, in order."""
    statement = _of(sink, WAITING).where(message.station == station).order_by(message.id).limit(limit)
    return connection.execute(statement).mappings().all()


def dead_letters(connection: Connection, sink: str, limit: int) -> Sequence[RowMapping]:
    """Returns dead letters for a sink, the newest first."""
    statement = _of(sink, DEAD).order_by(message.id.desc()).limit(limit)
    return connection.execute(statement).mappings().all()


def find_message(connection: Connection, message_id: int) -> RowMapping | None:
    """Returns a waiting or dead message; None if it does not exist any more."""
    return connection.execute(select(outbox).where(message.id == message_id)).mappings().first()


def _of(sink: str, state: str) -> Select[tuple[object, ...]]:
    return select(outbox, retry_at).where(message.sink == sink, message.state == state)


@dataclass(frozen=True)
class Backlog:
    """The number of messages of a sink in one state, and when the oldest was queued."""

    count: int = 0
    oldest: datetime | None = None


@dataclass(frozen=True)
class RecordMessage:
    """A message about an inspection; `state` is waiting, dead or delivered."""

    id: int
    sink: str
    kind: str
    state: str
    delivered_at: datetime | None
    error: str | None


def count_backlogs(connection: Connection) -> defaultdict[tuple[str, str], Backlog]:
    """Counts the messages of the outbox by sink and state."""
    counted = select(
        message.sink, message.state, func.count().label("count"), func.min(message.id).label("id")
    )
    backlogs = counted.group_by(message.sink, message.state).subquery()
    columns = (backlogs.c.sink, backlogs.c.state, backlogs.c.count, message.created_at)
    rows = connection.execute(select(*columns).join(outbox, message.id == backlogs.c.id))
    counted_backlogs = {(sink, state): Backlog(count, oldest) for sink, state, count, oldest in rows}
    return defaultdict(Backlog, counted_backlogs)


def messages_of(connection: Connection, record_id: int) -> list[RecordMessage]:
    """Returns the messages about an inspection, in the order of their events; those that were dropped or
    discarded are missing.
    """
    delivered = select(deliveries).where(deliveries.c.record_id == record_id)
    messages = [
        RecordMessage(row.message_id, row.sink, row.kind, "delivered", row.delivered_at, None)
        for row in connection.execute(delivered)
    ]
    waiting = select(outbox).where(message.record_id == record_id)
    messages += [
        RecordMessage(row.id, row.sink, row.kind, row.state, None, row.error)
        for row in connection.execute(waiting)
    ]
    return sorted(messages, key=lambda each: each.id)


# === Changes ===


def move_delivered(connection: Connection, ids: Sequence[int], now: datetime) -> None:
    """Deletes delivered messages; those about inspections are remembered."""
    names = ("record_id", "message_id", "sink", "kind", "delivered_at")
    moved = select(message.record_id, message.id, message.sink, message.kind, literal(now, UtcDateTime))
    moved = moved.where(message.id.in_(ids), message.record_id.is_not(None))
    connection.execute(insert(deliveries).from_select(names, moved))
    delete_messages(connection, ids)


def delete_messages(connection: Connection, ids: Sequence[int]) -> int:
    """Deletes messages; returns how many existed."""
    return connection.execute(delete(outbox).where(message.id.in_(ids))).rowcount


def save_failure(
    connection: Connection, message_id: int, attempts: int, next_at: datetime, error: str
) -> None:
    """Stores the error of a failed attempt and the time of the next one."""
    statement = update(outbox).where(message.id == message_id)
    connection.execute(statement.values(attempts=attempts, next_at=next_at, error=error))


def mark_dead(connection: Connection, message_id: int, attempts: int, error: str) -> None:
    """Marks a waiting message as dead."""
    statement = update(outbox).where(message.id == message_id, message.state == WAITING)
    connection.execute(statement.values(state=DEAD, attempts=attempts, error=error))


def mark_old_dead(
    connection: Connection, sink: str, station: str, before: datetime, error: str, limit: int
) -> int:
    """Marks a station's messages older than `before` as dead; returns how many."""
    old = select(message.id).where(message.sink == sink, message.state == WAITING)
    old = old.where(message.station == station, message.created_at < before)
    chosen = old.order_by(message.id).limit(limit)
    statement = update(outbox).where(message.id.in_(chosen.scalar_subquery()))
    return connection.execute(statement.values(state=DEAD, error=error)).rowcount


def requeue(connection: Connection, ids: Sequence[int], now: datetime) -> int:
    """Makes dead letters wait again with zero attempts; returns how many."""
    statement = update(outbox).where(message.id.in_(ids), message.state == DEAD)
    return connection.execute(statement.values(state=WAITING, attempts=0, next_at=now, error=None)).rowcount


def requeue_oldest(connection: Connection, sink: str, now: datetime, limit: int) -> int:
    """Requeues the oldest dead letters for a sink; returns how many."""
    oldest = select(message.id).where(message.sink == sink, message.state == DEAD)
    ids = connection.execute(oldest.order_by(message.id).limit(limit)).scalars().all()
    return requeue(connection, ids, now)


def drop_oldest(connection: Connection, sink: str, state: str, count: int) -> int:
    """Deletes the oldest messages of a sink in one state; returns how many."""
    oldest = select(message.id).where(message.sink == sink, message.state == state)
    chosen = oldest.order_by(message.id).limit(count).scalar_subquery()
    return connection.execute(delete(outbox).where(message.id.in_(chosen))).rowcount
