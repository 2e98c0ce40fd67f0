"""The protocol of sinks, and the messages that they deliver."""

import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, Self

from api.delivery.settings import DeliverySettings
from api.record.events import TYPE_PREFIX
from api.record.inspection import Row
from segdec.errors import ConfigError

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

    @classmethod
    def from_settings(cls, settings: DeliverySettings) -> Self | None:
        """Creates the sink without connecting; None: the settings have none.

        Raises:
            ConfigError: If an address or a file cannot be used.
        """

    async def deliver(self, message: OutboxMessage) -> None:
        """Returns when the receiver has acknowledged the message.

        Raises:
            DeliveryError: If no acknowledgement arrived; the receiver may have the message nevertheless.
        """

    async def close(self) -> None:
        """Releases connections and files."""


def make_tls_context(file: Path | None) -> ssl.SSLContext:
    """Returns what verifies receivers by the certificates in `file`; None: by those of the system.

    Raises:
        ConfigError: If the file cannot be used.
    """
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:  # includes invalid certificates
        raise ConfigError(f"--outbox-ca {file} cannot be read ({error}). Expected a PEM file.") from error
