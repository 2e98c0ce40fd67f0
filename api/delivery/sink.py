"""The protocol of sinks, and the messages that they deliver."""

import json
from dataclasses import dataclass
from typing import Literal, Protocol

from api.record.events import TYPE_PREFIX
from api.record.inspection import Row

FailureCause = Literal["refused", "failed", "unreachable"]
"""Cause of a failure: the event, maybe the event, or connection and receiver."""


@dataclass(frozen=True)
class OutboxMessage:
    """An event for one sink; receivers detect repeats by `event_id`. The station is empty if not given."""

    id: int
    event_id: str
    kind: str
    station: str
    event: str

    @classmethod
    def from_row(cls, row: Row) -> "OutboxMessage":
        event = json.loads(row["event"])
        kind = event["type"].removeprefix(TYPE_PREFIX)
        return cls(row["id"], event["id"], kind, row["station"], row["event"])


class DeliveryError(Exception):
    """An event was not delivered.

    Args:
        message: The reason in a few words, without secrets.
        cause: `refused`: not retried; `failed`: retried a few times; `unreachable`: retried until too old.
        retry_after_s: Delay that the receiver requests.
    """

    def __init__(self, message: str, cause: FailureCause, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.cause, self.retry_after_s = cause, retry_after_s


class Sink(Protocol):
    """Delivers events, of several stations at the same time, in one event loop.

    Attributes:
        name: Name of the receiver.
        remark: What an administrator should know about the connection; empty: nothing.
    """

    name: str
    remark: str

    async def deliver(self, message: OutboxMessage) -> None:
        """Returns when the receiver has acknowledged the message.

        Raises:
            DeliveryError: If no acknowledgement arrived; the receiver may have the message nevertheless.
        """

    async def close(self) -> None:
        """Releases connections and files."""
