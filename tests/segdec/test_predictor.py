from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.predictor import Predictor
from tests.segdec.first_pixel_engine import FirstPixelEngine

NATIVE = InputConfig()
RESIZE = InputConfig(policy="resize", height=32, width=16)
LETTERBOX = InputConfig(policy="letterbox", height=32, width=16)
TILE = InputConfig(policy="tile", height=16, width=24, overlap_px=8)
POLICIES = pytest.mark.parametrize(
    "config", [NATIVE, RESIZE, LETTERBOX, TILE], ids=lambda config: config.policy
)


def predictor(config: InputConfig = NATIVE, channels: int = 1) -> tuple[Predictor, FirstPixelEngine]:
    engine = FirstPixelEngine()
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


@pytest.mark.parametrize("config", [NATIVE, RESIZE], ids=["native", "resize"])
def test_steps_equal_predict(config: InputConfig) -> None:
    model, engine = predictor(config)
    photographs = [flat(99, 13, 20), flat(102, 16, 24)]
    prepared = np.stack([model.prepare(photograph) for photograph in photographs])
    assert prepared.shape == ((2, 16, 24, 1) if config is NATIVE else (2, 32, 16, 1))
    logits = model.infer(prepared)
    assert engine.shapes == [prepared.shape]
    steps = [
        model.interpret(logits, row, size, unlike=False) for row, size in enumerate([(13, 20), (16, 24)])
    ]
    for found, expected in zip(steps, model.predict(photographs), strict=True):
        assert (found.label, found.score) == (expected.label, expected.score)
        np.testing.assert_array_equal(found.mask_scores, expected.mask_scores)
    assert [step.label for step in steps] == ["good", "defect"]
    assert model.interpret(logits, 1, (16, 24), unlike=False, threshold=0.9).label == "good"
    assert model.interpret(logits, 1, (16, 24), unlike=True, threshold=0.9).label == "review"


@pytest.mark.parametrize("config", [NATIVE, LETTERBOX, TILE], ids=lambda config: config.policy)
@pytest.mark.parametrize("refine", [False, True])
def test_masks_are_refined_by_the_networks_input(config: InputConfig, refine: bool) -> None:
    model, _ = predictor(config)
    model = model.with_config(model.config.with_mask_refinement(0.0, refine=refine))
    photograph = flat(120, 24, 40)
    photograph[6:12, 10:30] = 40
    prepared = model.prepare(photograph)[None]
    logits = model.infer(prepared)
    assert (logits.photographs is prepared) == refine
    logits.mask[:] = -2
    logits.mask[:, 1, 1] = 2
    found = model.interpret(logits, 0, (24, 40), unlike=False)
    assert found.mask_scores.shape == (24, 40)
    coarse = model.interpret(replace(logits, photographs=None), 0, (24, 40), unlike=False)
    assert np.array_equal(found.mask_scores, coarse.mask_scores) == (not refine)
