"""Choosing limits on validation; see test_thresholds.py for the limits themselves."""

import numpy as np
import pytest

from segdec.config import InputConfig, ModelConfig, NetworkConfig, Thresholds
from training.config import ThresholdConfig
from training.metrics.pixel_histogram import PixelHistogram
from training.metrics.thresholds import ScoredPhotographs, log_odds_at
from training.metrics.validation import Validation, choose_thresholds

MODEL = ModelConfig(
    network=NetworkConfig(),
    input=InputConfig(),
    classes=("good", "defect"),
    thresholds=Thresholds(score=0.5, mask=0.75),
)


def histogram(*scores, truth):
    """The histogram of a photograph of a row of pixels, the last of which are defective."""
    pixels = PixelHistogram()
    mask = np.zeros((1, len(scores)), np.uint8)
    mask[0, len(scores) - truth :] = 255
    pixels.add(np.array([scores], np.float32), mask)
    return pixels


def validation(good, defective, pixels, judged_pixels=None):
    odds = np.array([*good, *defective], np.float64)
    labels = np.repeat([0, 1], [len(good), len(defective)])
    groups = tuple(str(place) for place in range(len(odds)))
    return Validation(ScoredPhotographs(labels, odds, groups), np.zeros(len(odds)), pixels, judged_pixels)


def test_metrics_are_those_at_the_chosen_limits():
    pixels = histogram(0.25, 0.75, truth=1)
    scored = validation([-4.0, -3.0, -3.5], np.linspace(3, 4, 15), pixels)
    chosen = choose_thresholds(MODEL, scored, ThresholdConfig())
    assert chosen.model.thresholds.mask == 65 / 256
    assert chosen.validation["false_positives"] == chosen.validation["false_negatives"] == 0
    assert chosen.validation["average_precision"] == chosen.validation["pixel_f1"] == 1
    assert chosen.chosen_by == "3 good and 15 defective photographs of validation"
    assert chosen.notes == ()


def test_synthetic_defects_choose_the_mask_threshold_and_no_figure():
    real, synthetic = histogram(0.25, 0.5, truth=0), histogram(0.25, 0.75, truth=1)
    chosen = choose_thresholds(MODEL, validation([-4.0, -3.0, -3.5], [], real, synthetic), ThresholdConfig())
    assert chosen.model.thresholds.mask == 65 / 256
    assert chosen.validation["pixel_f1"] is None
    assert chosen.validation["average_precision"] is None
    assert len(chosen.notes) == 1
    assert "no defective one" in chosen.notes[0]


@pytest.mark.parametrize("pixels", [histogram(0.25, 0.5, truth=0), histogram(0.0, 0.0, truth=1)])
def test_without_a_defect_pixel_that_is_found_the_mask_threshold_stays(pixels):
    chosen = choose_thresholds(MODEL, validation([-4.0, -3.0], [3.0], pixels), ThresholdConfig())
    assert chosen.model.thresholds.mask == 0.75
    assert "so the mask threshold 0.75 is used" in chosen.notes[0]


def test_a_memory_marks_the_pixels_of_parts_for_review():
    network = NetworkConfig(preset="mobilenet", heads=0, memory=100)
    model = MODEL.model_copy(update={"network": network})
    generator = np.random.default_rng(0)
    scored = validation(generator.normal(-2, 1, 60), generator.normal(1, 1, 30), histogram(0.25, truth=0))
    chosen = choose_thresholds(model, scored, ThresholdConfig()).model
    lower = log_odds_at(chosen.calibration, chosen.thresholds.review)
    assert chosen.thresholds.mask == pytest.approx(1 / (1 + np.exp(-lower)))
    single = choose_thresholds(model, scored, ThresholdConfig(max_rejected=1.0)).model
    cut = log_odds_at(single.calibration, single.thresholds.score)
    assert single.thresholds.mask == pytest.approx(1 / (1 + np.exp(-cut)))


def test_the_operating_point_in_use_has_the_expected_reviews():
    generator = np.random.default_rng(0)
    scored = validation(generator.normal(-2, 1, 60), generator.normal(1, 1, 30), histogram(0.25, truth=0))
    chosen = choose_thresholds(MODEL, scored, ThresholdConfig())
    assert chosen.model.thresholds.review is not None
    in_use, cheapest, *_ = chosen.points
    assert in_use.expected.review.value > 0
    assert in_use.rejected.value <= 0.02 < cheapest.rejected.value


@pytest.mark.parametrize("heads", [0, 1])
def test_without_annotated_masks_regions_are_called_approximate(heads):
    """Labels, boxes and good photographs do not show which pixels are defective."""
    network = NetworkConfig(preset="mobilenet", heads=heads, memory=0 if heads else 8)
    model = MODEL.model_copy(update={"network": network})
    scored = validation([-4.0, -3.0], [3.0], histogram(0.25, 0.5, truth=0))
    chosen = choose_thresholds(model, scored, ThresholdConfig())
    assert "regions are approximate" in chosen.notes[-1]
    assert f"the mask threshold {chosen.model.thresholds.mask:.3g} is used" in chosen.notes[-1]
    assert "validation split" not in chosen.notes[-1]
