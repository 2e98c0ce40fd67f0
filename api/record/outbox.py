"""Queues events for other systems, in the transaction that stores what they are about."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, insert

from api.record.events import EventType, inspected_event, not_inspected_event, reviewed_event
from api.record.inspection import Row
from api.record.tables import outbox
from api.record.uninspected_photograph import UninspectedPhotograph


@dataclass(frozen=True)
class Outbox:
    """The queue of events, with a row for each of the receivers in `sinks`.

    Events link to the pages at `public_url`.

    An event and what it is about are in one transaction: both are stored, or neither.
    """

    sinks: tuple[str, ...] = ()
    public_url: str | None = None

    def enqueue_inspected(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Queues the events of new rows of `tables.inspections`."""
        if self.sinks:
            self._add(
                connection,
                "inspected",
                [(row["station"], row["id"], inspected_event(row, self.public_url)) for row in rows],
            )

    def enqueue_reviewed(self, connection: Connection, row: Row) -> None:
        """Queues the event of a review or of its withdrawal; `row` is the inspection after it."""
        if self.sinks:
            event = reviewed_event(row, datetime.now(UTC), self.public_url)
            self._add(connection, "reviewed", [(row["station"], row["id"], event)])

    def enqueue_not_inspected(
        self, connection: Connection, photographs: Sequence[UninspectedPhotograph]
    ) -> None:
        """Queues the events of photographs without a verdict."""
        if self.sinks:
            events = [(each.station, None, not_inspected_event(each)) for each in photographs]
            self._add(connection, "not_inspected", events)

    def _add(
        self, connection: Connection, kind: EventType, events: Sequence[tuple[str, int | None, str]]
    ) -> None:
        """Queues events, each with its station and the inspection that it is about."""
        now = datetime.now(UTC)
        state = {"created_at": now, "next_at": now, "state": "waiting", "attempts": 0, "kind": kind}
        for sink in self.sinks:
            rows = [
                {"sink": sink, "station": station, "record_id": record_id, "event": event, **state}
                for station, record_id, event in events
            ]
            connection.execute(insert(outbox), rows)
