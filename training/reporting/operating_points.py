"""Operating points as text: what the threshold rejects and misses, and the commands that apply others."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from segdec.artifact import ExpectedOutcomes, ExpectedParts, OperatingPoint, PartShare
from training.formatting import format_line, format_rate
from training.reporting.tables import align_rows

MANY_REJECTED = 0.2
"""Share of rejected good parts from which another point than the lowest cost is recommended."""


@dataclass(frozen=True)
class OfferedPoint:
    """A row of the table; `command` is None for the threshold in use."""

    goal: str
    threshold: float
    rejected: str
    missed: str
    command: str | None

    @property
    def name(self) -> str:
        """The goal, marked if the point is in use."""
        return self.goal if self.command else f"{self.goal} (in use)"


@dataclass(frozen=True)
class OperatingPointTable:
    """The operating points of a run as text.

    Attributes:
        statement: What the threshold in use rejects and misses, and what this is based on; empty if unknown.
        offered: The points to choose from.
        outcomes: What to expect of 1,000 parts; empty if unknown.
        notes: Sentences on goals that are not certain, and a recommendation.
    """

    statement: str = ""
    offered: tuple[OfferedPoint, ...] = ()
    notes: tuple[str, ...] = ()
    outcomes: str = ""

    @classmethod
    def of(
        cls, points: Sequence[OperatingPoint], chosen_by: str, run: Path, *, review: bool = False
    ) -> "OperatingPointTable":
        """Describes the points of the run in this folder, the threshold in use first; empty without points.

        They were measured on the images `chosen_by`. With `review`, the commands remove the review threshold.
        """
        if not points:
            return cls()
        chosen, *others = points
        command = calibrate_command(run)
        after = " --no-threshold.review" if review else ""
        offered = tuple(
            OfferedPoint(
                point.goal,
                point.threshold,
                format_share(point.rejected),
                format_share(point.missed),
                None if point.is_equivalent(chosen) else f"{command} {point.threshold!r}{after}",
            )
            for point in others
        )
        notes = tuple(point.note for point in others if point.note)
        basis = f"Based on {chosen_by}; a part counts by its worst photograph."
        outcomes = "" if chosen.expected is None else _describe_outcomes(chosen.expected)
        statement = f"{_state(chosen, review=review)} {basis}"
        return cls(statement, offered, (*_recommend(chosen, others), *notes), outcomes)

    def to_lines(self) -> Iterator[str]:
        """Yields lines for the terminal."""
        if self.statement:
            yield format_line("threshold", " ".join((self.statement, *self.notes)))
        if self.outcomes:
            yield format_line("expected", self.outcomes)
        if self.offered:
            yield "Operating points, in parts of 100 with 95 % intervals; export again after the command:"
            header = ("", "threshold", "good rejected", "defective missed")
            rows = [(each.name, f"{each.threshold:g}", each.rejected, each.missed) for each in self.offered]
            head, *lines = align_rows([header, *rows])
            yield head
            for line, point in zip(lines, self.offered, strict=True):
                yield line
                if point.command:
                    yield f"    {point.command}"


def calibrate_command(run: Path) -> str:
    """Returns the command that sets the threshold of the run in this folder, without the threshold."""
    return f"python -m training calibrate {shlex.quote(str(run))} --threshold.score"


def format_share(share: PartShare | None) -> str:
    """Formats a share as parts of 100 with its interval, `0.5 (0.01 to 2.8)`; a dash for None."""
    if share is None:
        return "–"
    return f"{_of_100(share.value)} ({_of_100(share.low)} to {_of_100(share.high)})"


def _of_100(share: float) -> str:
    return _format_number(100 * share)


def _format_number(number: float) -> str:
    return f"{number:.2g}" if number < 9.95 else f"{number:.0f}"


def _describe_outcomes(expected: ExpectedOutcomes) -> str:
    def describe(parts: ExpectedParts, outcome: str, interval: str = "") -> str:
        number, low, high = map(_format_number, (parts.value, parts.low, parts.high))
        return f"{number} {outcome} ({interval}{low} to {high})"

    return (
        f"Of 1,000 parts, {format_rate(expected.defect_rate)} of them defective, "
        f"{describe(expected.rejected, 'are rejected', '95 % interval ')}, "
        f"{describe(expected.review, 'are for review')} and "
        f"{describe(expected.missed, 'are missed')}."
    )


def _state(point: OperatingPoint, *, review: bool) -> str:
    parts: list[str] = []
    for share, kind, error in ((point.rejected, "good", "rejected"), (point.missed, "defective", "missed")):
        if share is not None:
            interval = f"{'' if parts else '95 % interval '}{_of_100(share.low)} to {_of_100(share.high)}"
            parts.append(f"{_of_100(share.value)} of 100 {kind} parts are {error} ({interval})")
    return f"At {'these thresholds' if review else 'this threshold'} {' and '.join(parts)}."


def _recommend(chosen: OperatingPoint, others: Sequence[OperatingPoint]) -> Iterator[str]:
    """Another point if the lowest cost is in use and rejects many good parts."""
    points = {point.goal: point for point in others}
    cheapest, strict = points.get("lowest cost"), points.get("at most 1 % rejected")
    if cheapest is None or strict is None or strict.missed is None or not cheapest.is_equivalent(chosen):
        return
    if chosen.rejected is not None and chosen.rejected.value > MANY_REJECTED:
        yield (
            "The scores of good and defective parts overlap, so the lowest cost rejects many good parts. "
            f"Consider 'at most 1 % rejected', which misses {_of_100(strict.missed.value)} of 100 defective "
            "ones."
        )
