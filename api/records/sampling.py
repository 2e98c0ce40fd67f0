"""Which inspections a person is asked about, with what probability, and what their pictures are worth."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from api.records.storage.retention_class import RetentionClass
from api.settings import Settings
from segdec.config import REVIEW

PRECISION = 2**53


def secure_uniform() -> float:
    """Returns a number 0…1 that nobody can know beforehand."""
    return secrets.randbelow(PRECISION) / PRECISION


@dataclass(frozen=True)
class SamplingDecision:
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
    worth: RetentionClass


@dataclass(frozen=True)
class SamplingPolicy:
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
    def from_settings(cls, settings: Settings) -> "SamplingPolicy":
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
        uniform: Callable[[], float] = secure_uniform,
    ) -> SamplingDecision:
        """Draws one inspection."""
        number = uniform()
        if label != good:
            return SamplingDecision(
                number, self.defect_share, "review" if label == REVIEW else "defect", RetentionClass.DEFECT
            )
        if score >= self.near * threshold:
            return SamplingDecision(number, 1.0, "near", RetentionClass.TO_REVIEW)
        if number < self.good_share:
            worth = RetentionClass.TO_REVIEW
        else:
            worth = RetentionClass.GOOD_SAMPLE if number < self.sample_share else RetentionClass.GOOD
        return SamplingDecision(number, self.good_share, "chance", worth)
