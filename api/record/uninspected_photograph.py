"""A photograph that arrived and was not inspected."""

from dataclasses import dataclass, field
from datetime import UTC, datetime


@dataclass(frozen=True)
class UninspectedPhotograph:
    """A photograph that was not inspected, or `count` similar ones.

    Attributes:
        station: Where it was taken; empty if unknown.
        part_id: Which part it shows; None if unknown.
        client: Name of the API key; empty without one.
        status: HTTP status of the answer.
        code: Code of the problem.
        detail: Its message.
        at: When it was rejected; the last time if there are several.
    """

    station: str
    part_id: str | None
    client: str
    status: int
    code: str
    detail: str
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    count: int = 1
