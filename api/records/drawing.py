"""Which inspections a person is asked about, and how probable it was that just these were drawn."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from segdec.config import REVIEW

PRECISION = 2**53


def draw_uniform() -> float:
    """Returns a number 0…1 that nobody can know beforehand."""
    return secrets.randbelow(PRECISION) / PRECISION


@dataclass(frozen=True)
class Draw:
    """Whether an inspection is put up for review.

    Attributes:
        number: 0…1; the inspection is drawn where it lies below `probability`.
        probability: That such an inspection is drawn, whatever the reasons for it.
        reason: Why such a one is: its verdict, a score near the threshold, or by chance.
    """

    number: float
    probability: float
    reason: str

    @property
    def drawn(self) -> bool:
        """Whether it is put up."""
        return self.number < self.probability


@dataclass(frozen=True)
class DrawPolicy:
    """What share of what is put up for review.

    Attributes:
        defect_share: Of what was called defective or sent to review, 0…1.
        good_share: Of what was called good, 0…1.
        near: Distance to the threshold, of scores, within which all that was called good are put up.
    """

    defect_share: float
    good_share: float
    near: float

    def draw(
        self,
        label: str,
        good: str,
        score: float,
        threshold: float,
        uniform: Callable[[], float] = draw_uniform,
    ) -> Draw:
        """Draws one inspection."""
        if label == REVIEW:
            return Draw(uniform(), self.defect_share, "review")
        if label != good:
            return Draw(uniform(), self.defect_share, "defect")
        if threshold - score <= self.near:
            return Draw(uniform(), 1.0, "near")
        return Draw(uniform(), self.good_share, "chance")
