from dataclasses import replace

import numpy as np
import pytest

from training.metrics.classification import (
    auroc,
    average_precision,
    average_precision_trapezoid,
    count_errors,
    false_positives_at_full_recall,
)
from training.metrics.metrics import compute_metrics
from training.metrics.pixel_counts import PixelCounts, count_pixels

LABELS = [1, 0, 2, 0]
SCORES = [0.9, 0.8, 0.7, 0.1]


def test_average_precision_is_step_wise():
    # Recall 1/2 at precision 1/1, recall 2/2 at precision 2/3.
    assert average_precision(LABELS, SCORES) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)


def test_trapezoid_joins_the_points_of_the_curve():
    # Points (recall, precision): (1/2, 1), (1/2, 1/2), (1, 2/3), from (0, 1) on.
    assert average_precision_trapezoid(LABELS, SCORES) == pytest.approx(0.5 * 1 + 0.5 * (1 / 2 + 2 / 3) / 2)


@pytest.mark.parametrize("labels", [[], [0, 0], [1, 2]])
def test_ranking_figures_need_both_kinds(labels):
    scores = [0.5] * len(labels)
    assert average_precision(labels, scores) is average_precision_trapezoid(labels, scores) is None
    assert auroc(labels, scores) is None


@pytest.mark.parametrize(("threshold", "expected"), [(0.1, (2, 0)), (0.8, (1, 1)), (0.85, (0, 1))])
def test_errors_at_a_threshold_count_equality_as_defective(threshold, expected):
    assert count_errors(LABELS, SCORES, threshold) == expected


@pytest.mark.parametrize(
    ("labels", "scores", "expected"),
    [
        (LABELS, SCORES, 1),
        ([0, 0, 1], [0.2, 0.3, 0.3], 1),  # a good image as high as the defective one is an alarm
        ([0, 0, 1], [0.2, 0.3, 0.4], 0),
        ([1, 1], [0.2, 0.3], 0),
        ([0, 0], [0.2, 0.3], None),
        ([], [], None),
    ],
)
def test_false_positives_at_full_recall(labels, scores, expected):
    assert false_positives_at_full_recall(labels, scores) == expected


def test_pixel_counts_by_hand():
    mask = np.array([[255, 255, 0], [0, 255, 0]], np.uint8)
    truth = np.array([[255, 0, 0], [0, 1, 255]], np.uint8)  # any value above 0 is defect
    counts = count_pixels(mask, truth)
    assert counts == PixelCounts(tp=2, fp=1, fn=1)
    assert (counts.iou, counts.f1) == (pytest.approx(2 / 4), pytest.approx(4 / 6))
    assert (counts.precision, counts.recall) == (pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_pixel_figures_without_pixels_are_undefined():
    nothing, missed, no_truth = PixelCounts(), PixelCounts(fn=5), PixelCounts(fp=5)
    assert [no_truth.iou, no_truth.f1, no_truth.precision, no_truth.recall] == [None] * 4
    assert [nothing.iou, nothing.f1, nothing.precision, nothing.recall] == [None] * 4
    assert [missed.iou, missed.f1, missed.precision, missed.recall] == [0, 0, None, 0]


CLASSES = ("good", "scratch", "stain")


@pytest.fixture
def measure(make_result):
    def measure(truth, predicted, scores, pixels, threshold):
        results = [
            replace(
                make_result(str(place), min(label, 1), score, threshold=threshold, pixels=counts),
                truth=label,
                true_label=CLASSES[label],
                predicted_label=CLASSES[answer],
            )
            for place, (label, answer, score, counts) in enumerate(
                zip(truth, predicted, scores, pixels, strict=True)
            )
        ]
        return compute_metrics(results, CLASSES)

    return measure


def test_measure_gathers_all_figures(measure):
    pixels = [PixelCounts(6, 1, 2), PixelCounts(fp=1), None, PixelCounts()]
    metrics = measure(LABELS, [1, 1, 0, 0], SCORES, pixels, 0.75)
    assert (metrics.images, metrics.good, metrics.defective) == (4, 2, 2)
    assert (metrics.false_positives, metrics.false_negatives, metrics.errors) == (1, 1, 2)
    assert (metrics.false_positive_rate, metrics.false_negative_rate) == (0.5, 0.5)
    assert (metrics.fp_at_full_recall, metrics.label_accuracy, metrics.threshold) == (1, 0.5, 0.75)
    assert metrics.confusion == ((1, 1, 0), (0, 1, 0), (1, 0, 0))
    assert (metrics.pixels, metrics.pixel_images) == (PixelCounts(6, 2, 2), 3)
    figures = metrics.to_dict()
    assert figures["pixel_iou"] == pytest.approx(0.6)
    assert figures["pixel_f1"] == pytest.approx(0.75)


def test_classes_stand_against_the_good_ones_each(measure):
    truth, predicted = [0, 0, 1, 1, 2, 2], [0, 1, 1, 0, 1, 0]
    pixels = [PixelCounts(fp=9), PixelCounts(), PixelCounts(6, 2, 2), None, PixelCounts(fn=5), None]
    scores = [0.2, 0.6, 0.9, 0.4, 0.7, 0.1]
    metrics = measure(truth, predicted, scores, pixels, 0.5)
    scratch, stain = metrics.classes
    # 0.9 is a hit at rank 1, 0.4 one at rank 3 behind the good 0.6; stains: ranks 1 and 4.
    assert scratch.average_precision == pytest.approx((1 + 2 / 3) / 2)
    assert stain.average_precision == pytest.approx((1 + 2 / 4) / 2)
    assert (scratch.false_negatives, scratch.recall, scratch.accuracy) == (1, 0.5, 0.5)
    assert (stain.false_negatives, stain.recall, stain.accuracy) == (1, 0.5, 0.0)
    assert (scratch.pixels.f1, stain.pixels.f1) == (0.75, 0.0)
    assert (scratch.images, scratch.pixel_images) == (2, 1)


def test_review_has_a_column_and_is_no_error(make_result):
    photographs = ((0, 0.1), (0, 0.4), (0, 0.6), (1, 0.2), (1, 0.3), (1, 0.5))
    results = [make_result(str(n), *each, review=0.3) for n, each in enumerate(photographs)]
    metrics = compute_metrics(results, ("good", "defect"))
    assert metrics.confusion == ((1, 1, 1), (1, 1, 1))
    assert (metrics.threshold, metrics.review_threshold) == (0.5, 0.3)
    assert (metrics.false_positives, metrics.false_negatives, metrics.errors) == (1, 1, 2)
    assert (metrics.reviews, metrics.defective_reviews) == (2, 1)
    assert (metrics.label_accuracy, metrics.false_negative_rate) == (2 / 6, 1 / 3)
    mixed = [*results, make_result("other", 0, 0.1, review=0.2)]
    assert compute_metrics(mixed, ("good", "defect")).review_threshold is None


def test_calibration_is_measured_for_the_share_it_is_made_for(make_result):
    """Three good photographs at 0.1, a defective one at 0.9; before calibration all at 0.5."""
    results = [make_result(str(n), n // 3, 0.1 + 0.8 * (n // 3), log_odds=0.0) for n in range(4)]
    metrics = compute_metrics(results, ("good", "defect"), defect_rate=0.2)
    assert (metrics.calibration_error, metrics.brier) == (pytest.approx(0.1), pytest.approx(0.01))
    assert metrics.calibration_error_before == pytest.approx(0.3)  # a fifth is defective, not a half
    assert metrics.brier_before == pytest.approx(0.25)
    as_they_are = compute_metrics(results, ("good", "defect"))
    assert as_they_are.calibration_error_before == pytest.approx(0.25)
