"""What people see of the outbox, and what they can do about what was given up."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import Connection

from api.errors import RequestError
from api.records import outbox_queries as queries
from api.records.inspection import Row
from api.records.outbox_queries import DEAD, WAITING, Backlog
from api.records.queries import add_audit_entry
from api.records.schemas import OutboxEvent, OutboxSink, OutboxState

SHOWN = 50
"""Events of each list of an answer."""
DELETE_BATCH = 1000
"""Events that are tried again by one request."""
LOOKED_AT = 200
"""Stations whose first event is looked at."""


def show_outbox(connection: Connection, configured: Sequence[str]) -> OutboxState:
    """Returns what lies in the outbox, by sink.

    Args:
        connection: To the database.
        configured: Names of the sinks that are sent to.
    """
    backlogs = queries.count_backlogs(connection)
    names = sorted({*configured, *(sink for sink, _ in backlogs)})
    return OutboxState(sinks=[_show(connection, name, name in configured, backlogs) for name in names])


def _show(
    connection: Connection, sink: str, configured: bool, backlogs: dict[tuple[str, str], Backlog]
) -> OutboxSink:
    waiting, dead = backlogs.get((sink, WAITING)), backlogs.get((sink, DEAD))
    return OutboxSink(
        name=sink,
        configured=configured,
        waiting=waiting.count if waiting else 0,
        oldest_at=waiting.oldest if waiting else None,
        dead=dead.count if dead else 0,
        failing=_failing(connection, sink),
        dead_letters=[_event(row) for row in queries.dead_letters(connection, sink, SHOWN)],
    )


def _failing(connection: Connection, sink: str) -> list[OutboxEvent]:
    stations = queries.waiting_stations(connection, sink, None, LOOKED_AT)
    first = [row for one in stations for row in queries.waiting_messages(connection, sink, one, 1)]
    return [_event(row) for row in first if row["error"] is not None][:SHOWN]


def _event(row: Row) -> OutboxEvent:
    named = ("id", "station", "created_at", "attempts", "next_at", "error")
    return OutboxEvent(**{name: row[name] for name in named}, event=json.loads(row["event"]))


def retry(connection: Connection, message_id: int, who: str) -> int:
    """Lets an event that was given up wait again; returns 1.

    Raises:
        RequestError: 404 if there is none, 409 if it waits.
    """
    row = _find(connection, message_id)
    if row["state"] != DEAD:
        raise RequestError(409, "event_waits", f"Event {message_id} was not given up: it waits still.")
    changed = queries.requeue(connection, [message_id], datetime.now(UTC))
    _note(connection, who, "retry an event", row)
    return changed


def retry_all(connection: Connection, sink: str, who: str) -> int:
    """Lets those wait again that were given up first; returns how many, 0 where there are none."""
    changed = queries.requeue_oldest(connection, sink, datetime.now(UTC), DELETE_BATCH)
    if changed:
        add_audit_entry(connection, who, "retry events", after={"sink": sink, "count": changed})
    return changed


def discard(connection: Connection, message_id: int, who: str) -> int:
    """Removes an event, whether it waits or was given up; returns 1.

    Raises:
        RequestError: 404 if there is none.
    """
    row = _find(connection, message_id)
    changed = queries.delete_messages(connection, [message_id])
    _note(connection, who, "discard an event", row)
    return changed


def _find(connection: Connection, message_id: int) -> Row:
    row = queries.find_message(connection, message_id)
    if row is None:
        raise RequestError(
            404, "event_not_found", f"There is no event {message_id} in the outbox. See GET /v1/outbox."
        )
    return row


def _note(connection: Connection, who: str, what: str, row: Row) -> None:
    event = json.loads(row["event"])
    record_id = event["data"]["record_id"]
    before = {"sink": row["sink"], "event": event["id"], "error": row["error"]}
    add_audit_entry(connection, who, what, record_id=record_id, before=before)
