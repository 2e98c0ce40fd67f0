"""Decides which inspections are queued for review and how long their pictures are kept."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from api.records.storage.retention_class import RetentionClass
from api.settings import Settings
from segdec.config import REVIEW

PRECISION = 2**53


def secure_uniform() -> float:
    """Returns an unpredictable random number in [0, 1)."""
    return secrets.randbelow(PRECISION) / PRECISION


@dataclass(frozen=True)
class SamplingDecision:
    """Whether an inspection is queued for review.

    Attributes:
        number: Random number; the inspection is queued if it is below `probability`.
        probability: Sampling probability, 0…1.
        reason: `defect`, `review`, `near` (score near the threshold) or `chance`.
        retention_class: Retention class of its picture before a review.
    """

    number: float
    probability: float
    reason: str
    retention_class: RetentionClass


@dataclass(frozen=True)
class SamplingPolicy:
    """Sampling probabilities.

    Attributes:
        defect_share: Share of defects and uncertain parts that are queued, 0…1.
        good_share: Share of good parts that are queued, 0…1.
        near: Fraction of the threshold, 0…1; good parts with a score above it are always queued.
        sample_share: Share of good parts whose pictures are kept longer as a sample, 0…1.
    """

    defect_share: float
    good_share: float
    near: float
    sample_share: float

    @classmethod
    def from_settings(cls, settings: Settings) -> "SamplingPolicy":
        """Reads the policy from the settings."""
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
        """Decides about one inspection."""
        number = uniform()
        if label != good:
            return SamplingDecision(
                number, self.defect_share, "review" if label == REVIEW else "defect", RetentionClass.DEFECT
            )
        if score >= self.near * threshold:
            return SamplingDecision(number, 1.0, "near", RetentionClass.TO_REVIEW)
        if number < self.good_share:
            retention_class = RetentionClass.TO_REVIEW
        else:
            sampled = number < self.sample_share
            retention_class = RetentionClass.GOOD_SAMPLE if sampled else RetentionClass.GOOD
        return SamplingDecision(number, self.good_share, "chance", retention_class)
