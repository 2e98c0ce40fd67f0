"""Operating points of a model: thresholds of the score to choose from, with what they reject and miss."""

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from segdec.config import Config, Fraction

MAX_CURVE_POINTS = 200
"""Maximum number of thresholds in an `OutcomeCurve`."""

PerThousand = Annotated[float, Field(ge=0, le=1000)]

Goal = Literal["chosen", "lowest cost", "at most 1 % rejected", "at most 1 % missed"]


class PartShare(Config):
    """A share of parts with its exact 95 % interval. A part counts by its worst photograph."""

    count: Annotated[int, Field(ge=0)]
    parts: Annotated[int, Field(ge=1)]
    low: Fraction
    high: Fraction

    @property
    def value(self) -> float:
        """The share, 0 to 1."""
        return self.count / self.parts

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.count > self.parts:
            raise ValueError(f"count={self.count} of parts={self.parts}; expected at most that many")
        return self


class ExpectedParts(Config):
    """Expected number of parts among 1,000, with its 95 % interval."""

    value: PerThousand
    low: PerThousand
    high: PerThousand


class ExpectedOutcomes(Config):
    """What to expect of 1,000 parts.

    Attributes:
        defect_rate: Share of defective parts for which this holds.
        rejected: Parts that are called defective, good and defective ones.
        review: Parts that a person must check.
        missed: Defective parts that are called good.
    """

    defect_rate: Fraction
    rejected: ExpectedParts
    review: ExpectedParts
    missed: ExpectedParts


class OperatingPoint(Config):
    """A threshold of the score, and its errors.

    Attributes:
        goal: `chosen`: the threshold of the model. The others are offered, without review.
        rejected: Share of the good parts at or above the threshold; None without good parts.
        missed: Share of the defective parts that pass as good; None without defective parts.
        note: Why the goal is uncertain.
        expected: Outcomes of 1,000 parts; None without good or defective parts, or if unknown.
    """

    goal: Goal
    threshold: Fraction
    rejected: PartShare | None
    missed: PartShare | None
    note: str | None = None
    expected: ExpectedOutcomes | None = None

    def is_equivalent(self, other: "OperatingPoint") -> bool:
        """Returns whether both reject, miss and leave for review equally many parts."""
        return self._errors == other._errors

    @property
    def _errors(self) -> tuple[PartShare | None, PartShare | None, float]:
        return self.rejected, self.missed, self.expected.review.value if self.expected else 0.0


Counts = tuple[Annotated[int, Field(ge=0)], ...]


class OutcomeCurve(Config):
    """Rejected and missed parts at different thresholds. A part counts by its worst photograph.

    Attributes:
        scores: Thresholds, ascending.
        rejected: Number of good parts at or above each of them.
        missed: Number of defective parts below each of them.
        good: Number of good parts.
        defective: Number of defective parts.
    """

    scores: Annotated[tuple[Fraction, ...], Field(min_length=1, max_length=MAX_CURVE_POINTS)]
    rejected: Counts
    missed: Counts
    good: Annotated[int, Field(ge=1)]
    defective: Annotated[int, Field(ge=1)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        lengths = {len(self.scores), len(self.rejected), len(self.missed)}
        if len(lengths) > 1:
            raise ValueError(f"lists of the lengths {sorted(lengths)}; expected equal ones")
        for name, values in (
            ("scores", self.scores),
            ("rejected", tuple(reversed(self.rejected))),
            ("missed", self.missed),
        ):
            if any(low > high for low, high in pairwise(values)):
                raise ValueError(f"{name} in the wrong order; expected the order of ascending thresholds")
        if self.rejected[0] > self.good or self.missed[-1] > self.defective:
            raise ValueError("more rejected or missed parts than there are; expected at most as many")
        return self


class OperatingPoints(Config):
    """The operating points in the manifest of a model."""

    measured_on: str = Field(description="photographs on which they were measured, as text")
    points: tuple[OperatingPoint, ...] = Field(min_length=1, description="the threshold of the model first")
    curve: OutcomeCurve | None = Field(
        None, description="errors at other thresholds; absent: unknown, or no good or no defective parts"
    )
