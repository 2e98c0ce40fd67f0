"""Queues events for other systems, in the transaction that stores the inspection, review or miss."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, insert

from api.records.events import inspected_event, not_inspected_event, reviewed_event
from api.records.inspection import Row
from api.records.line.uninspected_photograph import UninspectedPhotograph
from api.records.tables import outbox


@dataclass(frozen=True)
class Outbox:
    """The queue of events, with a row for each of the receivers in `sinks`.

    Events link to the pages at `public_url`.

    An event and its inspection, review or miss are in one transaction: both are stored, or neither.
    """

    sinks: tuple[str, ...] = ()
    public_url: str | None = None

    def enqueue_inspected(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Queues the events of new rows of `tables.inspections`."""
        if self.sinks:
            self._add(connection, [(row["station"], inspected_event(row, self.public_url)) for row in rows])

    def enqueue_reviewed(self, connection: Connection, row: Row) -> None:
        """Queues the event of a review or of its withdrawal; `row` is the inspection after it."""
        if self.sinks:
            self._add(connection, [(row["station"], reviewed_event(row, datetime.now(UTC), self.public_url))])

    def enqueue_not_inspected(
        self, connection: Connection, photographs: Sequence[UninspectedPhotograph]
    ) -> None:
        """Queues the events of photographs without a verdict."""
        if self.sinks:
            self._add(connection, [(each.station, not_inspected_event(each)) for each in photographs])

    def _add(self, connection: Connection, events: Sequence[tuple[str, str]]) -> None:
        now = datetime.now(UTC)
        state = {"created_at": now, "next_at": now, "state": "waiting", "attempts": 0}
        for sink in self.sinks:
            rows = [{"sink": sink, "station": station, "event": event, **state} for station, event in events]
            connection.execute(insert(outbox), rows)
