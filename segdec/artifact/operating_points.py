"""Operating points of a model: thresholds of the score to choose from, with what they reject and miss."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from segdec.config import Config, Fraction

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


class OperatingPoint(Config):
    """A threshold of the score, and its errors.

    Attributes:
        goal: `chosen`: the threshold of the model. The others are offered, without review.
        rejected: Share of the good parts at or above the threshold; None without good parts.
        missed: Share of the defective parts that pass as good; None without defective parts.
        note: Why the goal is uncertain.
    """

    goal: Goal
    threshold: Fraction
    rejected: PartShare | None
    missed: PartShare | None
    note: str | None = None

    def is_equivalent(self, other: "OperatingPoint") -> bool:
        """Returns whether both reject and miss equally many parts."""
        return (self.rejected, self.missed) == (other.rejected, other.missed)


class OperatingPoints(Config):
    """The operating points in the manifest of a model."""

    measured_on: str = Field(description="photographs on which they were measured, as text")
    points: tuple[OperatingPoint, ...] = Field(min_length=1, description="the threshold of the model first")
