"""Decides which inspections are queued for review and how long their pictures are kept."""

from collections.abc import Callable
from dataclasses import dataclass
from random import SystemRandom
from typing import Literal

from api.record.settings import RecordSettings
from api.record.storage.retention_class import RetentionClass
from segdec.runtime.identifiers import REVIEW

SamplingReason = Literal["defect", "review", "tolerated", "near", "chance"]
"""`tolerated`: the inspection plan accepts what the model calls a defect or uncertain."""
secure_uniform = SystemRandom().random


@dataclass(frozen=True)
class SamplingDecision:
    """Whether an inspection is queued for review: if `number` is below `probability`."""

    number: float
    probability: float
    reason: SamplingReason
    retention_class: RetentionClass


@dataclass(frozen=True)
class SamplingPolicy:
    """Shares of inspections, 0…1, that are queued for review.

    Attributes:
        defect_share: Of defects and uncertain parts.
        good_share: Of good parts.
        near: Fraction of the threshold; good parts with a score above it are always queued.
        sample_share: Share of good parts whose pictures are kept longer as a sample.
    """

    defect_share: float
    good_share: float
    near: float
    sample_share: float

    @classmethod
    def from_settings(cls, settings: RecordSettings) -> "SamplingPolicy":
        """Reads the policy from the settings."""
        shares = settings.record_defect_share, settings.record_good_share
        return cls(*shares, settings.record_near, settings.record_sample_share)

    def draw(
        self,
        label: str,
        good: str,
        score: float,
        threshold: float,
        uniform: Callable[[], float] = secure_uniform,
        *,
        model_label: str | None = None,
    ) -> SamplingDecision:
        """Decides about one inspection; `model_label` is that of the model if a plan may have decided."""
        number = uniform()
        if label != good:
            reason: SamplingReason = "review" if label == REVIEW else "defect"
            return SamplingDecision(number, self.defect_share, reason, RetentionClass.DEFECT)
        if model_label not in (None, good):
            return SamplingDecision(number, self.good_share, "tolerated", RetentionClass.DEFECT)
        if score >= self.near * threshold:
            return SamplingDecision(number, 1.0, "near", RetentionClass.TO_REVIEW)
        retention_class = RetentionClass.GOOD
        if number < self.good_share:
            retention_class = RetentionClass.TO_REVIEW
        elif number < self.sample_share:
            retention_class = RetentionClass.GOOD_SAMPLE
        return SamplingDecision(number, self.good_share, "chance", retention_class)
