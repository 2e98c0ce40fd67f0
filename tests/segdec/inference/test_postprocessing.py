import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from segdec.config import Calibration, InputConfig, ModelConfig, NetworkConfig, Thresholds
from segdec.engines import Logits
from segdec.errors import ConfigError, SegdecError
from segdec.inference.postprocessing import Prediction, find_regions, interpret

CONFIG = ModelConfig(
    network=NetworkConfig(preset="compact", num_classes=3),
    input=InputConfig(),
    classes=("good", "scratch", "spot"),
    thresholds=Thresholds(score=0.6, mask=0.75),
)
NO_DEFECT = np.full((2, 3, 1), -20.0, np.float32)


def answer(p_good: float, p_scratch: float, threshold: float | None = None) -> Prediction:
    logits = np.log([p_good, p_scratch, 1 - p_good - p_scratch]).astype(np.float32) + 3
    return interpret(NO_DEFECT, logits, (16, 24), CONFIG, threshold=threshold)


def test_probabilities_score_and_label() -> None:
    prediction = answer(0.5, 0.2)
    assert prediction.probabilities == pytest.approx({"good": 0.5, "scratch": 0.2, "spot": 0.3}, abs=1e-6)
    assert prediction.score == pytest.approx(0.5, abs=1e-6)
    assert [prediction.label, answer(0.3, 0.2).label, answer(0.3, 0.6).label] == ["good", "spot", "scratch"]


def test_given_threshold_replaces_the_models() -> None:
    prediction = answer(0.9, 0.08, threshold=0.05)
    assert (prediction.label, prediction.threshold) == ("scratch", 0.05)
    assert answer(0.01, 0.5, threshold=1.0).label == "good"


def test_very_low_scores_stay_in_order() -> None:
    logits = [np.array([good, 0, 0], np.float32) for good in (40, 50, 60)]
    scores = [interpret(NO_DEFECT, each, (16, 24), CONFIG).score for each in logits]
    assert scores[0] > scores[1] > scores[2] > 0


@pytest.mark.parametrize("threshold", [-0.1, 1.5, math.nan])
def test_threshold_outside_0_to_1_is_rejected(threshold: float) -> None:
    with pytest.raises(ConfigError, match="Expected a number from 0 to 1"):
        answer(0.5, 0.2, threshold=threshold)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_logits_that_are_not_finite_are_rejected(value: float) -> None:
    with pytest.raises(SegdecError, match="not finite"):
        interpret(NO_DEFECT, np.array([0, value, 0], np.float32), (16, 24), CONFIG)
    with pytest.raises(SegdecError, match="not finite"):
        interpret(NO_DEFECT + np.float32(value), np.zeros(3, np.float32), (16, 24), CONFIG)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_surface_that_is_not_finite_is_rejected_for_its_photograph_alone(value: float) -> None:
    """No comparison with the training could show that it is unlike it."""
    surface = np.array([[0.1, 0.2], [0.1, value]], np.float32)
    logits = Logits(np.zeros((2, 2, 3, 1), np.float32), np.zeros((2, 3), np.float32), surface)
    assert logits.surface_of(0) is not None
    with pytest.raises(SegdecError, match="not finite"):
        logits.surface_of(1)


def test_mask_is_cut_at_the_mask_threshold_at_the_size_of_the_photograph() -> None:
    logits = NO_DEFECT.copy()
    logits[:, 2] = 20.0
    prediction = interpret(logits, np.zeros(3, np.float32), (13, 21), CONFIG)
    assert prediction.mask.shape == prediction.mask_scores.shape == (13, 21)
    # Score (x + 0.5) / 8 − 1.5 between the centres 12 and 20: at x = 17 it is 0.6875, at 18 0.8125.
    np.testing.assert_allclose(prediction.mask_scores[0, 17:19], [0.6875, 0.8125], atol=1e-6)
    assert (prediction.mask[:, :18] == 0).all()
    assert (prediction.mask[:, 18:] == 255).all()
    assert prediction.mask_threshold == 0.75
    assert [region.bbox for region in prediction.regions] == [(18, 0, 3, 13)]


@pytest.mark.parametrize(
    ("p_good", "highest", "threshold", "boxes"),
    [
        (0.3, 0.9, 0.75, [(0, 0, 5, 16)]),
        (0.3, 0.6, 0.3, [(0, 0, 8, 16)]),  # half of the highest score
        (0.3, 0.015, 0.01, [(0, 0, 7, 16)]),
        (0.3, 0.005, 0.75, []),  # nothing stands out
        (0.5, 0.6, 0.75, []),  # good
    ],
)
def test_a_defective_photograph_has_a_region(
    p_good: float, highest: float, threshold: float, boxes: list[tuple[int, ...]]
) -> None:
    """Between the centres 4 and 12 the score falls from the highest to 0."""
    mask_logits = NO_DEFECT.copy()
    mask_logits[:, 0] = math.log(highest / (1 - highest))
    logits = np.log([p_good, 0.2, 0.8 - p_good]).astype(np.float32)
    prediction = interpret(mask_logits, logits, (16, 24), CONFIG)
    assert prediction.mask_threshold == pytest.approx(threshold)
    assert [region.bbox for region in prediction.regions] == boxes
    grid = prediction.grid_scores >= prediction.mask_threshold
    assert grid.any() == bool(boxes)


def test_grid_scores_are_those_of_the_network() -> None:
    logits = np.array([[[0.0], [math.log(3)], [-math.log(3)]], [[1000.0], [-1000.0], [0.0]]], np.float32)
    prediction = interpret(logits, np.zeros(3, np.float32), (13, 21), CONFIG)
    expected = [[0.5, 0.75, 0.25], [1.0, 0.0, 0.5]]
    np.testing.assert_allclose(prediction.grid_scores, expected, atol=1e-6)
    assert prediction.grid_scores.dtype == np.float32


# === Regions ===


def drawing() -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """A 3 × 2 block, and two pixels that touch at a corner."""
    mask = np.zeros((8, 10), np.uint8)
    mask[1:3, 2:5] = 255
    mask[5, 7] = mask[6, 8] = 255
    scores = np.where(mask, np.float32(0.8), np.float32(0.1))
    scores[2, 3] = 0.85
    scores[6, 8] = 0.9
    return mask, scores


def test_regions_by_hand() -> None:
    diagonal, block = find_regions(*drawing())
    assert (block.bbox, block.area_px) == ((2, 1, 3, 2), 6)
    assert block.score_max == pytest.approx(0.85)
    assert block.polygon == ((2, 1), (2, 3), (5, 3), (5, 1))
    assert (diagonal.bbox, diagonal.area_px) == ((7, 5, 2, 2), 2)
    assert diagonal.score_max == pytest.approx(0.9)
    assert diagonal.polygon == ((7, 5), (7, 6), (8, 6), (8, 7), (9, 7), (9, 6), (8, 6), (8, 5))


def test_score_of_a_region_excludes_regions_inside_its_box() -> None:
    mask = np.full((7, 7), 255, np.uint8)
    mask[1:6, 1:6] = 0
    mask[3, 3] = 255
    scores = np.full((7, 7), 0.6, np.float32)
    scores[3, 3] = 0.9
    inner, ring = find_regions(mask, scores)
    assert (inner.bbox, inner.area_px) == ((3, 3, 1, 1), 1)
    assert (ring.bbox, ring.area_px) == ((0, 0, 7, 7), 24)
    assert ring.score_max == pytest.approx(0.6)
    assert set(ring.polygon) == {(0, 0), (7, 0), (7, 7), (0, 7)}
    assert [set(hole) for hole in ring.holes] == [{(1, 1), (6, 1), (6, 6), (1, 6)}]


def calibrated_model(slope: float, intercept: float, review: float | None = None) -> ModelConfig:
    thresholds = Thresholds(score=0.6, mask=0.75, review=review)
    calibration = Calibration(slope=slope, intercept=intercept, defect_rate=0.1)
    return CONFIG.model_copy(update={"calibration": calibration, "thresholds": thresholds})


def test_calibration_is_a_line_in_log_odds() -> None:
    logits = np.array([0.0, math.log(2), 0.0], np.float32)  # 3 to 1 for a defect, 2 to 1 for a scratch
    found = interpret(NO_DEFECT, logits, (16, 24), calibrated_model(2.0, -math.log(3)))
    assert found.log_odds == pytest.approx(math.log(3), abs=1e-6)
    assert found.score == pytest.approx(0.75, abs=1e-6)  # 2 · ln 3 − ln 3
    expected = {"good": 0.25, "scratch": 0.5, "spot": 0.25}
    assert found.probabilities == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("score", "label"), [(0.19, "good"), (0.21, "review"), (0.59, "review"), (0.61, "scratch")]
)
def test_score_between_the_thresholds_needs_review(score: float, label: str) -> None:
    logits = np.log([1 - score, 0.7 * score, 0.3 * score]).astype(np.float32)
    found = interpret(NO_DEFECT, logits, (16, 24), calibrated_model(1.0, 0.0, review=0.2))
    assert (found.label, found.threshold, found.review_threshold) == (label, 0.6, 0.2)


def test_review_is_below_the_threshold_and_no_class() -> None:
    with pytest.raises(ValidationError, match=r"review=0\.5 is not below score=0\.5; expected a lower one"):
        Thresholds(score=0.5, review=0.5)
    with pytest.raises(ValidationError, match="a class has the name 'review'"):
        ModelConfig(network=NetworkConfig(preset="compact"), input=InputConfig(), classes=("good", "review"))


# === Threshold of a photograph, refinement ===

FOUND = np.log(np.array([0.1, 0.8, 0.1], np.float32))
GOOD = np.log(np.array([0.8, 0.1, 0.1], np.float32))


def model_with(share: float, *, refine: bool, **changes: Any) -> ModelConfig:
    thresholds = Thresholds(score=0.95 if "review" in changes else 0.6, mask=0.5, **changes)
    return CONFIG.model_copy(update={"thresholds": thresholds}).with_mask_refinement(share, refine=refine)


@pytest.mark.parametrize(
    ("highest", "share", "threshold"),
    [(4.0, 0.25, 1.0), (4.0, 0.0, 0.0), (40.0, 0.25, 2.0), (-2.0, 0.25, None), (0.0, 1.0, 0.0)],
)
def test_the_mask_threshold_is_raised_by_a_share_of_the_log_odds(highest, share, threshold) -> None:
    """Up to log-odds of 8; below the model's threshold half of the highest score is used."""
    logits = np.full((2, 3, 1), highest, np.float32)
    found = interpret(logits, FOUND, (16, 24), model_with(share, refine=False))
    expected = 0.5 / (1 + math.exp(2)) if threshold is None else 1 / (1 + math.exp(-threshold))
    assert found.mask_threshold == pytest.approx(expected, abs=1e-6)
    assert found.mask.all() and found.regions[0].area_px == 16 * 24


def marked_cell(size: tuple[int, int]) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Mask logits with one cell of a defect, and a photograph that has a dark line there."""
    logits = np.full((size[0] // 8, size[1] // 8, 1), -3, np.float32)
    logits[4, 5] = 3
    photograph = np.full((*size, 1), 120, np.uint8)
    photograph[34:38, 38:50] = 20
    return logits, photograph


@pytest.mark.parametrize("review", [None, 0.5])
def test_refined_masks_scores_and_regions_agree(review: float | None) -> None:
    logits, photograph = marked_cell((80, 96))
    config = model_with(0.2, refine=True, **({} if review is None else {"review": review}))
    found = interpret(logits, FOUND, (80, 96), config, photograph=photograph)
    coarse = interpret(logits, FOUND, (80, 96), config)
    assert found.label == coarse.label == ("scratch" if review is None else "review")
    assert (found.score, found.mask_threshold) == (coarse.score, coarse.mask_threshold)
    truth = photograph[..., 0] < 120
    assert np.count_nonzero((found.mask > 0) ^ truth) < 0.5 * np.count_nonzero((coarse.mask > 0) ^ truth)
    assert np.array_equal(found.mask > 0, found.mask_scores >= found.mask_threshold)
    assert sum(region.area_px for region in found.regions) == np.count_nonzero(found.mask)
    assert np.array_equal(found.grid_scores, coarse.grid_scores)


def test_masks_of_good_photographs_stay() -> None:
    logits, photograph = marked_cell((80, 96))
    found, plain = (
        interpret(logits, GOOD, (80, 96), model_with(share, refine=refine), photograph=photograph)
        for share, refine in ((0.2, True), (0.0, False))
    )
    assert found.label == "good"
    assert found.mask_threshold == 0.5
    assert np.array_equal(found.mask_scores, plain.mask_scores)


def test_a_refined_mask_has_the_size_of_the_photograph() -> None:
    """The network sees 80 × 96 px of a photograph of 160 × 144 px, whose left half is not inspected."""
    logits, photograph = marked_cell((80, 96))
    left = ((0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0))
    resized = InputConfig(policy="resize", height=80, width=96, ignored_areas=(left,))
    config = model_with(0.0, refine=True).model_copy(update={"input": resized})
    found = interpret(logits, FOUND, (160, 144), config, photograph=photograph)
    assert found.mask.shape == found.mask_scores.shape == (160, 144)
    assert found.mask.any() and not found.mask[:, :72].any() and not found.mask_scores[:, :72].any()
