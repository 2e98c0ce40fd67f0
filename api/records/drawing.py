"""Which inspections a person is asked about, with what probability, and what their pictures are worth."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from api.records.storage.worth import Worth
from api.settings import Settings
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
        worth: Of its picture, until a person has looked at it.
    """

    number: float
    probability: float
    reason: str
    worth: Worth


@dataclass(frozen=True)
class DrawPolicy:
    """What share of what is put up for review, and what share of the rest is kept for longer.

    Attributes:
        defect_share: Of what was called defective or sent to review, 0…1.
        good_share: Of what was called good, 0…1.
        near: Share of the threshold, 0…1, from which all that was called good are put up.
        sample_share: Of what was called good, 0…1: what is kept as a sample of them.
    """

    defect_share: float
    good_share: float
    near: float
    sample_share: float

    @classmethod
    def from_settings(cls, settings: Settings) -> "DrawPolicy":
        """Reads it from what the operator set."""
        return cls(
            settings.record_defect_share,
            settings.record_good_share,
            settings.record_near,
            settings.record_sample_share,
        )

    def draw(
        self,
        label: str,
        good: str,
        score: float,
        threshold: float,
        uniform: Callable[[], float] = draw_uniform,
    ) -> Draw:
        """Draws one inspection."""
        number = uniform()
        if label != good:
            return Draw(number, self.defect_share, "review" if label == REVIEW else "defect", Worth.DEFECT)
        if score >= self.near * threshold:
            return Draw(number, 1.0, "near", Worth.TO_REVIEW)
        if number < self.good_share:
            worth = Worth.TO_REVIEW
        else:
            worth = Worth.GOOD_SAMPLE if number < self.sample_share else Worth.GOOD
        return Draw(number, self.good_share, "chance", worth)
