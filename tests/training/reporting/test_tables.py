import pytest

from training.metrics.evaluation import Evaluation
from training.metrics.metrics import compute_metrics
from training.metrics.pixel_histogram import PixelHistogram
from training.metrics.regions import Overlap
from training.reporting.tables import evaluation_table, format_number


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (3, "3"), (0.12345, "0.1235"), (0.99999, "0.9999"), (1.0, "1.0000")]
)
def test_numbers_never_round_up_to_one(value, text):
    assert format_number(value) == text


def test_table_lists_intervals_classes_and_region_sizes(make_result):
    results = [
        make_result(
            str(place),
            place % 2,
            0.1 + 0.8 * (place % 2),
            overlaps=(Overlap(70, 35, 0, 0, 80, 8),) * (place % 2),
        )
        for place in range(10)
    ]
    classes = ("good", "defect", "stain")
    evaluation = Evaluation(
        classes, tuple(results), compute_metrics(results, classes, resamples=100), PixelHistogram()
    )
    lines = [line.split() for line in evaluation_table(evaluation).splitlines()]
    assert ["false_negative_rate", "0.0000", "(0.0000", "to", "0.5218)"] in lines  # 1 − 0.025^(1/5)
    assert ["defect", "5", "1.0000", "1.0000", "0", "1.0000", "–"] in lines
    assert ["stain", "0", "–", "–", "0", "–", "–"] in lines
    assert ["64", "to", "255", "px", "5", "5", "0.5000", "0.1000"] in lines


def test_table_counts_review(make_result):
    results = [make_result("a", 0, 0.1, review=0.3), make_result("b", 1, 0.4, review=0.3)]
    results += [make_result("c", 1, 0.9, review=0.3)]
    classes = ("good", "defect", "stain")
    evaluation = Evaluation(classes, tuple(results), compute_metrics(results, classes), PixelHistogram())
    lines = [line.split() for line in evaluation_table(evaluation).splitlines()]
    assert [line for line in lines if line and "review" in line[0]] == [
        ["review_threshold", "0.3000"],
        ["reviews", "1"],
        ["defective_reviews", "1"],
    ]
    assert ["class", "images", "AP", "recall", "FN", "review", "accuracy", "pixel", "F1"] in lines
    assert ["defect", "2", "1.0000", "0.5000", "0", "1", "0.5000", "–"] in lines
    # Ten bins: 0.1 → 0, 0.4 → 1, 0.9 → 1, each a third.
    assert ["calibration_error", f"{(0.1 + 0.6 + 0.1) / 3:.4f}"] in lines
    assert ["brier", f"{(0.01 + 0.36 + 0.01) / 3:.4f}"] in lines
