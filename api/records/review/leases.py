"""Which of what waits a person has before him: nobody else gets it until he is done, or gone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, or_, select, update

from api.records.inspection import Row
from api.records.queries import with_pictures
from api.records.review.review_queue import Priority, dequeue
from api.records.tables import inspections, pictures, review_queue, shadows

LEASE = timedelta(seconds=300)
"""For so long what was not asked for again is kept for who asked for it."""
DELETE_BATCH = 100
"""Inspections without a picture that are taken out of the queue at once."""
STEPS = 10
"""How often that is done for one answer, so that none takes long however many there are."""
queue = review_queue.c


@dataclass(frozen=True)
class Task:
    """An inspection that somebody is asked about.

    Attributes:
        row: Of the inspection, without its mask.
        priority: Why it is put up.
        lease_until: When it may be given to another.
        shadows: What candidates say of it.
    """

    row: Row
    priority: Priority
    lease_until: datetime
    shadows: Sequence[Row]


def lease(
    connection: Connection, session: str, count: int, skip: Sequence[int], station: str | None, now: datetime
) -> list[Task]:
    """Gives a session up to `count` inspections to look at; those that it has already come first.

    Args:
        connection: Of a transaction that writes, so that no other one chooses meanwhile.
        session: Who asks.
        count: How many at most.
        skip: By id, what the session gives back and does not want now.
        station: Only of this one; None = of all.
        now: The time.
    """
    if skip:
        given_back = update(review_queue).where(queue.leased_to == session, queue.record_id.in_(skip))
        connection.execute(given_back.values(leased_to=None, leased_until=None))
    chosen = _choose(connection, session, count, skip, station, now)
    until = now + LEASE
    taken = update(review_queue).where(queue.record_id.in_(chosen))
    connection.execute(taken.values(leased_to=session, leased_until=until))
    return _describe(connection, chosen, until)


def lease_one(connection: Connection, session: str, record_id: int, now: datetime) -> None:
    """Gives a session one inspection, if that waits."""
    taken = update(review_queue).where(queue.record_id == record_id)
    connection.execute(taken.values(leased_to=session, leased_until=now + LEASE))


def is_leased_to_another(connection: Connection, record_id: int, session: str | None, now: datetime) -> bool:
    """Returns whether somebody else has an inspection before him."""
    held = select(queue.record_id).where(queue.record_id == record_id, ~_is_free(now))
    if session is not None:
        held = held.where(queue.leased_to != session)
    return connection.execute(held).first() is not None


def _is_free(now: datetime) -> ColumnElement[bool]:
    """A lease that lasts much longer than any can was given by a clock that was put back since.

    One that lasts a little longer was given while this one waited for its turn, or by another clock.
    """
    ended = or_(queue.leased_until <= now, queue.leased_until > now + 2 * LEASE)
    return or_(queue.leased_until.is_(None), ended)


def _choose(
    connection: Connection, session: str, count: int, skip: Sequence[int], station: str | None, now: datetime
) -> Sequence[int]:
    """Returns what can be looked at; what cannot any more is taken out of the queue."""
    limit = count
    for _ in range(STEPS):
        # Their station is looked at here: SQLite would go by its index, through all that wait there.
        mine = connection.execute(leased_by(session)).all()
        held = [record_id for record_id, place in mine if station in (None, place)][:limit]
        free = available_ids(skip, station, now).where(queue.record_id.not_in(held)).limit(limit - len(held))
        found = [*held, *_ids(connection, free)]
        seen = _with_picture(connection, found)
        dequeue(connection, [record_id for record_id in found if record_id not in seen])
        chosen = [record_id for record_id in found if record_id in seen][:count]
        if len(chosen) == count or len(seen) == len(found):
            break
        limit = DELETE_BATCH
    return chosen


def leased_by(session: str) -> Select[Any]:
    """Selects id and station of what a session has, its lease over or not, as long as no other took it."""
    ordered = queue.priority, queue.record_id
    return select(queue.record_id, queue.station).where(queue.leased_to == session).order_by(*ordered)


def available_ids(skip: Sequence[int], station: str | None, now: datetime) -> Select[Any]:
    """Selects the ids of what nobody has, in the order in which it is shown."""
    statement = select(queue.record_id).order_by(queue.priority, queue.record_id)
    statement = statement.where(_is_free(now), queue.record_id.not_in(skip))
    return statement if station is None else statement.where(queue.station == station)


def _ids(connection: Connection, statement: Select[Any]) -> Sequence[int]:
    return connection.execute(statement).scalars().all()


def _with_picture(connection: Connection, record_ids: Sequence[int]) -> set[int]:
    """Those of which the picture is there."""
    kept = select(inspections.c.id).join_from(inspections, pictures).where(pictures.c.state == "kept")
    return set(_ids(connection, kept.where(inspections.c.id.in_(record_ids))))


def _describe(connection: Connection, record_ids: Sequence[int], until: datetime) -> list[Task]:
    """In the order of the ids."""
    listed = (column for column in inspections.c if column is not inspections.c.mask)
    asked = with_pictures(listed).add_columns(queue.priority).join(review_queue)
    rows = connection.execute(asked.where(queue.record_id.in_(record_ids))).mappings()
    said = connection.execute(
        select(shadows).where(shadows.c.record_id.in_(record_ids)).order_by(shadows.c.id)
    ).mappings()
    candidates: dict[int, list[Row]] = {}
    for verdict in said:
        candidates.setdefault(verdict["record_id"], []).append(verdict)
    by_id = {row["id"]: row for row in rows}
    return [
        Task(by_id[number], Priority(by_id[number]["priority"]), until, candidates.get(number, []))
        for number in record_ids
    ]
