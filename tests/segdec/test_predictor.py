import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.engines import Logits
from segdec.errors import ConfigError, MissingExtraError
from segdec.predictor import Predictor

NATIVE = InputConfig()
RESIZE = InputConfig(policy="resize", height=32, width=16)
LETTERBOX = InputConfig(policy="letterbox", height=32, width=16)
TILE = InputConfig(policy="tile", height=16, width=24, overlap_px=8)
POLICIES = pytest.mark.parametrize(
    "config", [NATIVE, RESIZE, LETTERBOX, TILE], ids=lambda config: config.policy
)


class StubEngine:
    """Returns the first pixel of each image as its defect logit, and records its inputs."""

    batch_pixels = 2**24

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        self.shapes.append(images.shape)
        batch, height, width, _ = images.shape
        defect = images[:, 0, 0, 0].astype(np.float32)
        return Logits(
            mask=np.zeros((batch, height // 8, width // 8, 1), np.float32),
            classes=np.stack([np.zeros_like(defect), defect - 100], axis=1),
        )


def predictor(config: InputConfig = NATIVE, channels: int = 1) -> tuple[Predictor, StubEngine]:
    engine = StubEngine()
    network = NetworkConfig(preset="compact", input_channels=channels)
    return Predictor(engine, ModelConfig(network=network, input=config, classes=("good", "defect"))), engine


def flat(value: int, height: int = 16, width: int = 24) -> NDArray[np.uint8]:
    return np.full((height, width, 1), value, np.uint8)


@POLICIES
def test_mask_has_the_size_of_the_photograph(config: InputConfig) -> None:
    images = [flat(1, 61, 83), flat(2, 64, 88), flat(3, 5, 9)]
    predictions = predictor(config)[0].predict(images)
    assert [prediction.mask.shape for prediction in predictions] == [(61, 83), (64, 88), (5, 9)]


def test_equal_prepared_sizes_share_a_batch_and_answers_keep_their_order() -> None:
    model, engine = predictor()
    images = [flat(90, 16, 24), flat(95, 8, 8), flat(100, 15, 23), flat(105, 8, 8), flat(110, 16, 17)]
    scores = [prediction.score for prediction in model.predict(images)]
    assert engine.shapes == [(3, 16, 24, 1), (2, 8, 8, 1)]
    np.testing.assert_allclose(scores, 1 / (1 + np.exp(-np.array([-10.0, -5.0, 0.0, 5.0, 10.0]))))


def test_tiles_of_photographs_of_one_size_share_batches() -> None:
    model, engine = predictor(TILE)
    photographs = [flat(90, 24, 40), flat(5, 8, 8), flat(95, 20, 40), flat(100, 24, 40)]
    photographs[2][12:, 30:] = 110  # seen by the first pixel of no tile
    photographs[3][8, 16] = 120  # the first pixel of the last tile, and of the defect logit
    scores = [prediction.score for prediction in model.predict(photographs)]
    assert engine.shapes == [(12, 16, 24, 1), (1, 16, 24, 1)]  # three of 24 × 40 px, one of a tile
    np.testing.assert_allclose(scores, 1 / (1 + np.exp(-np.array([-10.0, -95.0, -5.0, 20.0]))))


@pytest.mark.parametrize(
    ("config", "shape"), [(LETTERBOX, (32, 16, 1)), (TILE, (256, 256, 1)), (NATIVE, (256, 256, 1))]
)
def test_the_likely_shape_is_known(config: InputConfig, shape: tuple[int, int, int]) -> None:
    assert predictor(config)[0].warmup_shape() == shape


@pytest.mark.parametrize("config", [NATIVE, RESIZE], ids=["native", "resize"])
def test_steps_equal_predict(config: InputConfig) -> None:
    model, engine = predictor(config)
    photographs = [flat(99, 13, 20), flat(102, 16, 24)]
    prepared = np.stack([model.prepare(photograph) for photograph in photographs])
    assert prepared.shape == ((2, 16, 24, 1) if config is NATIVE else (2, 32, 16, 1))
    logits = model.infer(prepared)
    assert engine.shapes == [prepared.shape]
    steps = [model.interpret(logits, row, size) for row, size in enumerate([(13, 20), (16, 24)])]
    for found, expected in zip(steps, model.predict(photographs), strict=True):
        assert (found.label, found.score) == (expected.label, expected.score)
        np.testing.assert_array_equal(found.mask_scores, expected.mask_scores)
    assert [step.label for step in steps] == ["good", "defect"]
    assert model.interpret(logits, 1, (16, 24), threshold=0.9).label == "good"


# === Loading ===


def test_unknown_engine_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"engine 'onnx' is unknown\. Expected one of: tensorflow"):
        Predictor.load(tmp_path, engine="onnx")


def test_missing_tensorflow_names_its_extra(tiny_artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    monkeypatch.delitem(sys.modules, "segdec.engines.tensorflow", raising=False)
    with pytest.raises(MissingExtraError, match=r"'tensorflow'.*extra 'tensorflow'.*'\.\[tensorflow\]'"):
        Predictor.load(tiny_artifact)


def test_predict_many_equals_predict(tiny_artifact: Path) -> None:
    model = Predictor.load(tiny_artifact)
    photographs = [np.random.default_rng(seed).integers(0, 256, (40, 56, 1), np.uint8) for seed in range(9)]
    with model.predict_many(photographs) as predictions:
        for photograph, found in zip(photographs, predictions, strict=True):
            expected = model.predict([photograph])[0]
            assert found.score == pytest.approx(expected.score, abs=1e-5)
            np.testing.assert_allclose(found.mask_scores, expected.mask_scores, atol=1e-5)
