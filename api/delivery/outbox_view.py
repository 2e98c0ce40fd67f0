"""The outbox as `/v1/outbox` shows it, and what an administrator can do with its messages."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import Connection

from api.delivery.schemas import OutboxEvent, OutboxSink, OutboxState
from api.errors import RequestError
from api.record import outbox_queries as queries
from api.record.inspection import Row
from api.record.outbox_queries import DEAD, WAITING
from api.record.queries import add_audit_entry

MAX_SHOWN = 50
"""Events in each list of an answer."""
RETRY_BATCH = 1000
"""Events that one request requeues."""
MAX_STATIONS = 200
"""Stations whose first event is checked."""


def show_outbox(connection: Connection, configured: Sequence[str], remarks: Mapping[str, str]) -> OutboxState:
    """Returns the backlog of each sink with its remark, those `configured` in the settings included."""
    backlogs = queries.count_backlogs(connection)
    names = sorted({*configured, *(sink for sink, _ in backlogs)})
    sinks = [
        OutboxSink(
            name=name,
            remark=remarks.get(name),
            configured=name in configured,
            waiting=backlogs[name, WAITING].count,
            oldest_at=backlogs[name, WAITING].oldest,
            dead=backlogs[name, DEAD].count,
            failing=_failing(connection, name),
            dead_letters=[_event(row) for row in queries.dead_letters(connection, name, MAX_SHOWN)],
        )
        for name in names
    ]
    return OutboxState(sinks=sinks)


def _failing(connection: Connection, sink: str) -> list[OutboxEvent]:
    stations = queries.waiting_stations(connection, sink, None, MAX_STATIONS)
    first = [row for one, _ in stations for row in queries.waiting_messages(connection, sink, one, 1)]
    return [_event(row) for row in first if row["error"] is not None][:MAX_SHOWN]


def _event(row: Row) -> OutboxEvent:
    return OutboxEvent.model_validate({**row, "event": json.loads(row["event"])})


def retry(connection: Connection, message_id: int, who: str) -> int:
    """Requeues a dead letter; returns 1.

    Raises:
        RequestError: 404 if it does not exist, 409 if it is waiting.
    """
    row = _find(connection, message_id)
    if row["state"] != DEAD:
        raise RequestError(409, "event_waits", f"Event {message_id} is still waiting, not given up.")
    changed = queries.requeue(connection, [message_id], datetime.now(UTC))
    _audit(connection, who, "retry an event", row)
    return changed


def retry_all(connection: Connection, sink: str, who: str) -> int:
    """Requeues the oldest dead letters for a sink; returns how many."""
    changed = queries.requeue_oldest(connection, sink, datetime.now(UTC), RETRY_BATCH)
    if changed:
        add_audit_entry(connection, who, "retry events", after={"sink": sink, "count": changed})
    return changed


def discard(connection: Connection, message_id: int, who: str) -> int:
    """Deletes a waiting or dead message; returns 1. Raises a RequestError, 404, if it does not exist."""
    row = _find(connection, message_id)
    changed = queries.delete_messages(connection, [message_id])
    _audit(connection, who, "discard an event", row)
    return changed


def _find(connection: Connection, message_id: int) -> Row:
    row = queries.find_message(connection, message_id)
    if row is None:
        detail = (
            f"There is no event {message_id} in the outbox. It was sent or discarded, or the number is wrong."
        )
        raise RequestError(404, "event_not_found", detail)
    return row


def _audit(connection: Connection, who: str, what: str, row: Row) -> None:
    event = json.loads(row["event"])
    record_id = event["data"]["record_id"]
    before = {"sink": row["sink"], "event": event["id"], "error": row["error"]}
    add_audit_entry(connection, who, what, record_id=record_id, before=before)
