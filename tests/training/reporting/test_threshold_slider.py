import pytest

from training.reporting.charts import to_log10_odds
from training.reporting.threshold_slider import Counts, count_at, embed_row, make_slider

CLASSES = ("good", "defect")


@pytest.fixture
def results(make_result):
    return [make_result(*each) for each in (("a", 0, 0.1), ("b", 0, 0.6), ("c", 1, 0.2), ("d", 1, 0.9))]


@pytest.mark.parametrize(
    ("threshold", "counts"),
    [
        (0.2, Counts(found=2, missed=0, alarms=1, passed=1)),  # a score at the threshold is detected
        (0.7, Counts(found=1, missed=1, alarms=0, passed=2)),
        (None, Counts(found=1, missed=1, alarms=1, passed=1)),  # each at its own, 0.5
    ],
)
def test_counts_at_a_threshold(results, threshold, counts):
    assert count_at(results, threshold) == counts


def test_marks_are_on_the_slider_in_log_odds(results):
    slider = make_slider(results, CLASSES, 0.5)
    assert (slider.low, slider.high) == (to_log10_odds(0.1) - 0.5, to_log10_odds(0.9) + 0.5)
    chosen, hindsight = slider.marks
    assert (chosen.threshold, chosen.place, chosen.kind) == (0.5, pytest.approx(0.5), "chosen")
    assert (hindsight.threshold, hindsight.kind) == (0.2, "hindsight")
    place = (to_log10_odds(0.2) - slider.low) / (slider.high - slider.low)
    assert hindsight.place == pytest.approx(float(place))


@pytest.mark.parametrize(
    ("threshold", "counts"),
    [
        # Below the review limit, 0.2, nothing is for review; from there on, what is between the two.
        (0.15, Counts(found=2, missed=0, alarms=1, passed=1)),
        (0.5, Counts(found=1, missed=0, alarms=1, passed=1, good_reviews=0, defective_reviews=1)),
        (1.0, Counts(found=0, missed=0, alarms=0, passed=1, good_reviews=1, defective_reviews=2)),
        (None, Counts(found=1, missed=0, alarms=1, passed=1, good_reviews=0, defective_reviews=1)),
    ],
)
def test_review_is_between_its_own_limit_and_the_threshold(make_result, threshold, counts):
    photographs = (("a", 0, 0.1), ("b", 0, 0.6), ("c", 1, 0.2), ("d", 1, 0.9))
    results = [make_result(*each, review=0.2) for each in photographs]
    assert count_at(results, threshold) == counts
    assert counts.reviews == counts.good_reviews + counts.defective_reviews


def test_review_limit_is_marked_and_its_photographs_have_no_class(make_result):
    results = [make_result("a", 0, 0.2, review=0.1), make_result("b", 1, 0.9, review=0.1)]
    slider = make_slider(results, CLASSES, 0.5, 0.1)
    assert slider.low == to_log10_odds(0.1) - 0.5  # the limit is below every score
    assert [(mark.kind, mark.threshold) for mark in slider.marks] == [
        ("chosen", 0.5),
        ("review", 0.1),
        ("hindsight", 0.9),
    ]
    assert slider.data["review"] == 0.1
    assert [embed_row(result, CLASSES) for result in results] == [["a", 0, 0, 0.2, 0], ["b", 1, 1, 0.9, 0]]
