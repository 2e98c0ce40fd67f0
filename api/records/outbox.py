"""Writes down what is to be told to others, in the transaction of what it tells: both are there, or none."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, insert

from api.records.events import inspected_event, reviewed_event
from api.records.inspection import Row
from api.records.tables import outbox


@dataclass(frozen=True)
class Outbox:
    """Takes what is to be told.

    Attributes:
        sinks: Names of those who are told, each by a row of its own.
    """

    sinks: tuple[str, ...] = ()

    def enqueue_inspected(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Tells of inspections.

        Args:
            connection: Of the transaction in which they are kept.
            rows: Of `tables.inspections`, with their ids.
        """
        if self.sinks:
            self._add(connection, [(row["station"], inspected_event(row)) for row in rows])

    def enqueue_reviewed(self, connection: Connection, row: Row) -> None:
        """Tells of a review, or that one was taken back.

        Args:
            connection: Of the transaction in which the inspection is changed.
            row: Of `tables.inspections`, as it is after the change.
        """
        if self.sinks:
            self._add(connection, [(row["station"], reviewed_event(row, datetime.now(UTC)))])

    def _add(self, connection: Connection, events: Sequence[tuple[str, str]]) -> None:
        now = datetime.now(UTC)
        fresh = {"created_at": now, "next_at": now, "state": "waiting", "attempts": 0}
        rows = [
            {"sink": sink, "station": station, "event": event, **fresh}
            for station, event in events
            for sink in self.sinks
        ]
        connection.execute(insert(outbox), rows)
