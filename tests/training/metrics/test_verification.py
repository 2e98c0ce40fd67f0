from pathlib import Path

import numpy as np
import pytest

from datasets.sample import DataSetItem, Sample
from segdec.artifact.variants import Variant
from segdec.config import InputConfig, ModelConfig, NetworkConfig, Thresholds
from segdec.engines import Logits
from segdec.errors import ArtifactError
from segdec.predictor import Predictor
from training.metrics.verification import Verifier, describe_variant

MODEL = ModelConfig(
    network=NetworkConfig(),
    input=InputConfig(),
    classes=("good", "defect"),
    thresholds=Thresholds(score=0.5, mask=0.5),
)


class TableEngine:
    """Answers a photograph of grey level i with the i-th score, on all of the mask too."""

    batch_pixels = 2**24

    def __init__(self, scores):
        self.logits = np.log(np.array(scores) / (1 - np.array(scores))).astype(np.float32)

    def infer(self, images):
        defect = self.logits[images[:, 0, 0, 0]]
        mask = np.broadcast_to(defect[:, None, None, None], (len(images), 1, 1, 1))
        return Logits(mask, np.stack([np.zeros_like(defect), defect], axis=1))


def predictor(*scores):
    return Predictor(TableEngine(scores), MODEL)


def verifier(labels, *scores, force=False):
    items = [DataSetItem(str(n), Path(f"{n}.png"), None, label, str(n)) for n, label in enumerate(labels)]

    def read(item):
        return Sample(item.name, np.full((8, 8, 1), int(item.name), np.uint8), None, item.label)

    return Verifier(predictor(*scores), items, read, force=force)


def test_difference_is_measured_on_every_photograph():
    verification = verifier([0, 0, 1, 1], 0.1, 0.6, 0.4, 0.9)("engine", predictor(0.1, 0.62, 0.4, 0.85))
    assert verification.photographs == 4
    assert verification.score_difference == pytest.approx(0.05, abs=1e-6)
    assert verification.mask_difference == pytest.approx(0.05, abs=1e-6)
    assert verification.decisions_changed == 0
    # Ranks 0.9 defective, 0.6 good, 0.4 defective: (1/1 + 2/3) / 2.
    assert verification.before.average_precision == pytest.approx(5 / 6)
    assert verification.after == verification.before
    assert (verification.before.missed, verification.before.false_alarms) == (1, 1)
    assert not verification.forced


@pytest.mark.parametrize(
    ("labels", "scores", "engine_scores", "message"),
    [
        ([0, 1], (0.1, 0.6), (0.1, 0.4), r"'fast' gives 1 of 2 .*another label and loses 0\.00 points"),
        ([0, 1, 1], (0.6, 0.7, 0.8), (0.75, 0.7, 0.8), r"gives 0 of 3 .*loses 16\.67 points .*at most 0\.2"),
    ],
)
def test_engine_that_changes_a_decision_or_ranks_worse_is_refused(labels, scores, engine_scores, message):
    with pytest.raises(ArtifactError, match=message):
        verifier(labels, *scores)("fast", predictor(*engine_scores))


def test_variant_is_described_in_a_line():
    verification = verifier([0, 1], 0.1, 0.6, force=True)("fast", predictor(0.1, 0.4))
    assert describe_variant("openvino-int8", Variant(precision="int8", verification=verification)) == (
        "openvino-int8: int8, AP 1.0000 → 1.0000, 1 of 2 photographs with another label, "
        "scores by 0.2, masks by 0.2 at most, forced"
    )
    assert describe_variant("openvino", Variant()).endswith("not compared with the network on photographs")
