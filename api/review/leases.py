"""Leases queued inspections to review sessions, so that no two reviewers get the same."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Select, or_, select, update

from api.record.review_queue import dequeue
from api.record.tables import inspections, pictures, review_queue

LEASE_DURATION = timedelta(seconds=300)
"""Each request of the session renews its leases."""
DELETE_BATCH = 100
"""Inspections without a picture that are removed from the queue at once."""
MAX_STEPS = 10
"""Batches removed per request, so that no request takes long."""
MAX_PER_PERSON = 10
"""Inspections leased to all sessions of one reviewer."""
MAX_PER_CLIENT = 50
"""Inspections leased to all reviewers with one key, or without keys at one address."""
queue = review_queue.c


@dataclass(frozen=True)
class LeaseHolder:
    """Who leases: the session (of one tab), the client (key or address) and the name of the reviewer."""

    session: str
    client: str
    reviewer: str = ""

    @property
    def person(self) -> str:
        """The reviewer; the same name with another key is another person."""
        return f"{self.client}\n{self.reviewer}"


def lease(
    connection: Connection,
    holder: LeaseHolder,
    count: int,
    skip: Sequence[int],
    station: str | None,
    now: datetime,
) -> Sequence[int]:
    """Leases up to `count` inspections, first those that the session already holds; returns their ids.

    Beyond the limits, leases of other sessions of the same person or client end.

    Args:
        connection: In a writing transaction, so that sessions choose one after the other.
        holder: The session, and whose it is.
        count: Maximum number.
        skip: Ids that the session releases and does not want now.
        station: Only inspections of this station; None = of all stations.
        now: The time.
    """
    session = holder.session
    if skip:
        released = update(review_queue).where(queue.leased_to == session, queue.record_id.in_(skip))
        connection.execute(released.values(leased_to=None, leased_until=None))
    chosen = _choose(connection, session, count, skip, station, now)
    renew(connection, holder, chosen, now)
    return chosen


def renew(connection: Connection, holder: LeaseHolder, record_ids: Sequence[int], now: datetime) -> None:
    """Leases queued inspections to a session, or renews their leases; then applies the limits."""
    taken = update(review_queue).where(queue.record_id.in_(record_ids))
    owner = {"leased_to": holder.session, "lease_client": holder.client, "lease_person": holder.person}
    connection.execute(taken.values(leased_until=now + LEASE_DURATION, **owner))
    for column, value, limit in (
        (queue.lease_person, holder.person, MAX_PER_PERSON),
        (queue.lease_client, holder.client, MAX_PER_CLIENT),
    ):
        _release_excess(connection, holder.session, column == value, limit, now)


def _release_excess(
    connection: Connection, session: str, owned: ColumnElement[bool], limit: int, now: datetime
) -> None:
    """Ends leases of other sessions beyond `limit`: first those loaded ahead, then the oldest."""
    statement = select(queue.priority, queue.record_id, queue.leased_to, queue.leased_until)
    statement = statement.where(queue.leased_to.is_not(None), owned, ~is_free(queue.leased_until, now))
    places: Counter[str] = Counter()
    others, total = [], 0
    # Sorted here: to sort, SQLite would read the whole queue by another index.
    for _, record_id, holder, until in sorted(map(tuple, connection.execute(statement))):
        total, places[holder] = total + 1, places[holder] + 1
        if holder != session:
            others.append((-places[holder], until, record_id))
    excess = [record_id for *_, record_id in sorted(others)[: max(0, total - limit)]]
    released = update(review_queue).where(queue.record_id.in_(excess))
    connection.execute(released.values(leased_to=None, leased_until=None))


def is_leased_to_another(connection: Connection, record_id: int, session: str | None, now: datetime) -> bool:
    """Returns whether another session holds an inspection."""
    held = select(queue.record_id).where(queue.record_id == record_id, ~is_free(queue.leased_until, now))
    if session is not None:
        held = held.where(queue.leased_to != session)
    return connection.execute(held).first() is not None


def is_free(leased_until: Column[datetime], now: datetime) -> ColumnElement[bool]:
    """True if there is no valid lease; `leased_until` is the column with its end.

    A lease that lasts more than two durations was made before the clock was set back. One that lasts slightly
    more than one was made by another clock, or while this request waited.
    """
    ended = or_(leased_until <= now, leased_until > now + 2 * LEASE_DURATION)
    return or_(leased_until.is_(None), ended)


def _choose(
    connection: Connection, session: str, count: int, skip: Sequence[int], station: str | None, now: datetime
) -> Sequence[int]:
    """Returns reviewable inspections; removes those without a picture from the queue."""
    limit = count
    for _ in range(MAX_STEPS):
        # The station is compared here: SQLite would use its index and read all queued inspections there.
        mine = connection.execute(leased_by(session)).all()
        held = [record_id for record_id, at in mine if station in (None, at)][:limit]
        free = available_ids(skip, station, now).where(queue.record_id.not_in(held)).limit(limit - len(held))
        considered = [*held, *connection.execute(free).scalars()]
        reviewable = _with_picture(connection, considered)
        dequeue(connection, [record_id for record_id in considered if record_id not in reviewable])
        chosen = [record_id for record_id in considered if record_id in reviewable][:count]
        if len(chosen) == count or len(reviewable) == len(considered):
            break
        limit = DELETE_BATCH
    return chosen


def leased_by(session: str) -> Select[Any]:
    """Selects id and station of what a session holds, expired leases included."""
    ordered = queue.priority, queue.record_id
    return select(queue.record_id, queue.station).where(queue.leased_to == session).order_by(*ordered)


def available_ids(skip: Sequence[int], station: str | None, now: datetime) -> Select[Any]:
    """Selects ids that no session holds, in the order of review."""
    statement = select(queue.record_id).order_by(queue.priority, queue.record_id)
    statement = statement.where(is_free(queue.leased_until, now), queue.record_id.not_in(skip))
    return statement if station is None else statement.where(queue.station == station)


def _with_picture(connection: Connection, record_ids: Sequence[int]) -> set[int]:
    kept = select(inspections.c.id).join_from(inspections, pictures).where(pictures.c.state == "kept")
    return set(connection.execute(kept.where(inspections.c.id.in_(record_ids))).scalars())
