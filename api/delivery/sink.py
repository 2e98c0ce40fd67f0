"""What a sink is, and what it is given."""

import json
from dataclasses import dataclass
from typing import Literal, Protocol

from api.records.events import TYPE_PREFIX
from api.records.inspection import Row

Blame = Literal["refused", "failed", "unreachable"]
"""Who is to blame: the event, which is never taken; perhaps the event; not the event, but the way."""


@dataclass(frozen=True)
class OutboxMessage:
    """An event on its way to one sink.

    Attributes:
        id: Of its row.
        event_id: By which a receiver knows it again.
        kind: Of the event.
        station: Where it happened; empty where none was named.
        event: The CloudEvent, JSON.
    """

    id: int
    event_id: str
    kind: str
    station: str
    event: str

    @classmethod
    def from_row(cls, row: Row) -> "OutboxMessage":
        """Makes it of a row of `tables.outbox`."""
        event = json.loads(row["event"])
        kind = event["type"].removeprefix(TYPE_PREFIX)
        return cls(row["id"], event["id"], kind, row["station"], row["event"])


class DeliveryError(Exception):
    """An event that was not delivered.

    Args:
        message: Why, in a few words, without secrets.
        blame: Whether it is tried again: what is `refused` is not, `failed` a few times, `unreachable` for
            long.
        retry_after_s: Seconds for which the receiver asks to be left alone.
    """

    def __init__(self, message: str, blame: Blame, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.blame, self.retry_after_s = blame, retry_after_s


class Sink(Protocol):
    """Takes events. Used in one event loop; several stations are delivered at the same time."""

    name: str

    async def deliver(self, message: OutboxMessage) -> None:
        """Returns when the receiver has taken it.

        Raises:
            DeliveryError: If it has not, as far as is known.
        """

    async def close(self) -> None:
        """Gives back what it holds."""
