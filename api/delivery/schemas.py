"""Answers about messages to other systems, as JSON."""

from datetime import datetime
from typing import Any

from pydantic import Field

from segdec.schemas import AnswerPart


class OutboxEvent(AnswerPart):
    """A waiting event or dead letter."""

    id: int
    station: str = Field(description="empty if not given")
    created_at: datetime
    attempts: int = Field(description="failed attempts that may be the event's fault")
    next_at: datetime = Field(description="earliest time of the next attempt")
    error: str | None = Field(description="of the last attempt; null: none failed")
    event: dict[str, Any] = Field(description="the CloudEvent")


class OutboxSink(AnswerPart):
    """The queue of a receiver."""

    name: str
    remark: str | None = Field(
        None, description="about the connection of this process, for example that a broker has no MQTT 5"
    )
    configured: bool = Field(description="false: not in the settings any more; its events stay queued")
    waiting: int
    oldest_at: datetime | None = Field(description="of the waiting events; null: none")
    dead: int = Field(description="number of dead letters")
    failing: list[OutboxEvent] = Field(description="first waiting event of each station whose sending fails")
    dead_letters: list[OutboxEvent] = Field(description="events that were given up, newest first")


class OutboxState(AnswerPart):
    """The events that are still to be sent."""

    sinks: list[OutboxSink]


class OutboxChange(AnswerPart):
    """Number of requeued or discarded events."""

    changed: int
