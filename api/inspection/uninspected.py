"""A photograph that was sent to be inspected and was not."""

from dataclasses import dataclass, field
from datetime import UTC, datetime


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class UninspectedPhotograph:
    """A photograph without an inspection, or several with the same reason.

    Attributes:
        station: Where it was taken; empty if unknown.
        part_id: The part that it shows; None if unknown.
        client: Name of the API key; empty without one.
        status: HTTP status of the answer.
        code: Code of the problem.
        detail: What arrived, what was expected, what to do.
        missed_at: Time of the answer; of several, the last.
        count: Number of photographs.
    """

    station: str
    part_id: str | None
    client: str
    status: int
    code: str
    detail: str
    missed_at: datetime = field(default_factory=_now)
    count: int = 1
