"""What happens in training jobs: states, metrics and printed lines, in their order."""

import json
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

from sqlalchemy import Connection, func, insert, select

from api.training.schemas import EventKind, JobEvent, JobEventPage, SentEvent
from api.training.tables import training_events

MAX_EVENTS, MAX_CHARACTERS = 20_000, 2**24
"""Of a job; later metrics and output are not stored."""
MAX_PAGE_CHARACTERS = 2**19
"""JSON of the events in a page, unless one event has more."""
MAX_STATES = 1000
"""Sentences about the state of a job; later ones about leases are not stored."""
table = training_events.c


def add_state_event(
    connection: Connection, job_id: int, text: str, now: datetime, *, is_limited: bool = False
) -> None:
    """Adds a sentence about the state of a job; with `is_limited`, not if there are too many already."""
    if is_limited:
        count = select(func.count()).where(table.job_id == job_id, table.kind == "state")
        if connection.execute(count).scalar_one() >= MAX_STATES:
            return
    _insert(connection, job_id, [("state", text)], now)


def add_events(connection: Connection, job_id: int, events: Sequence[SentEvent], now: datetime) -> None:
    """Adds events of a worker as far as the job has room for them."""
    sums = select(func.count(), func.coalesce(func.sum(func.length(table.content)), 0))
    count, characters = connection.execute(sums.where(table.job_id == job_id, table.kind != "state")).one()
    if not events or count >= MAX_EVENTS or characters >= MAX_CHARACTERS:
        return
    stored = events[: MAX_EVENTS - count]
    _insert(connection, job_id, [(event.kind, event.content) for event in stored], now)
    added = sum(len(json.dumps(event.content)) for event in stored)
    if count + len(events) >= MAX_EVENTS or characters + added >= MAX_CHARACTERS:
        text = "Later metrics and output are not stored: there are too many."
        add_state_event(connection, job_id, text, now)


def _insert(
    connection: Connection, job_id: int, events: Sequence[tuple[EventKind, Any]], now: datetime
) -> None:
    rows = [
        {"job_id": job_id, "at": now, "kind": kind, "content": json.dumps(content)}
        for kind, content in events
    ]
    if rows:
        connection.execute(insert(training_events), rows)


def list_events(connection: Connection, job_id: int, after: int, limit: int) -> JobEventPage:
    """Returns up to `limit` events with ids above `after`, fewer if they have more than
    `MAX_PAGE_CHARACTERS`, but at least one.
    """
    following = select(table.id, func.length(table.content)).where(table.job_id == job_id, table.id > after)
    sizes = connection.execute(following.order_by(table.id).limit(limit + 1)).all()
    totals = accumulate(length for _, length in sizes[:limit])
    count = max(bisect_right(list(totals), MAX_PAGE_CHARACTERS), 1)
    statement = select(training_events).where(table.id.in_([number for number, _ in sizes[:count]]))
    events = [
        JobEvent(id=row["id"], at=row["at"], kind=row["kind"], content=json.loads(row["content"]))
        for row in connection.execute(statement.order_by(table.id)).mappings()
    ]
    return JobEventPage(events=events, next_after=events[-1].id if len(sizes) > count else None)
