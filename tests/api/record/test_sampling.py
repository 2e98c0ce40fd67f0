"""Which inspections are queued, why, and the retention class of their pictures."""

import pytest

from api.record.sampling import SamplingDecision, SamplingPolicy
from api.record.storage.retention_class import RetentionClass

POLICY = SamplingPolicy(defect_share=0.5, good_share=0.02, near=0.5, sample_share=0.1)


@pytest.mark.parametrize(
    ("label", "score", "number", "probability", "reason", "worth"),
    [
        ("scratch", 0.9, 0.7, 0.5, "defect", RetentionClass.DEFECT),
        ("review", 0.06, 0.1, 0.5, "review", RetentionClass.DEFECT),
        ("good", 0.045, 0.9, 1.0, "near", RetentionClass.TO_REVIEW),
        ("good", 0.044, 0.9, 0.02, "chance", RetentionClass.GOOD),
        ("good", 0.044, 0.05, 0.02, "chance", RetentionClass.GOOD_SAMPLE),
        ("good", 0.044, 0.01, 0.02, "chance", RetentionClass.TO_REVIEW),
    ],
)
def test_the_verdict_and_the_score_decide_the_sampling(label, score, number, probability, reason, worth):
    draw = POLICY.draw(label, "good", score, 0.09, lambda: number)
    assert draw == SamplingDecision(number, probability, reason, worth)
