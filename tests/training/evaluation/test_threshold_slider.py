import pytest

from training.evaluation.charts import to_odds
from training.evaluation.threshold_slider import Counts, count_at, full_recall_threshold, make_slider

CLASSES = ("good", "defect")


@pytest.fixture
def results(make_result):
    return [make_result(*each) for each in (("a", 0, 0.1), ("b", 0, 0.6), ("c", 1, 0.2), ("d", 1, 0.9))]


@pytest.mark.parametrize(
    ("threshold", "counts"),
    [
        (0.0, Counts(found=2, missed=0, alarms=2, passed=0)),
        (0.2, Counts(found=2, missed=0, alarms=1, passed=1)),  # a score at the threshold is detected
        (0.5, Counts(found=1, missed=1, alarms=1, passed=1)),
        (0.7, Counts(found=1, missed=1, alarms=0, passed=2)),
        (1.0, Counts(found=0, missed=2, alarms=0, passed=2)),
        (None, Counts(found=1, missed=1, alarms=1, passed=1)),  # each at its own, 0.5
    ],
)
def test_counts_at_a_threshold(results, threshold, counts):
    assert count_at(results, threshold) == counts


def test_shares_of_nothing_are_none(results):
    assert (count_at(results, 1.0).precision, count_at([], 0.5).recall) == (None, None)
    assert count_at(results, 0.2).precision == pytest.approx(2 / 3)


def test_marks_lie_on_the_slider_in_log_odds(results):
    slider = make_slider(results, CLASSES, 0.5)
    assert (slider.low, slider.high) == (to_odds(0.1) - 0.5, to_odds(0.9) + 0.5)
    chosen, hindsight = slider.marks
    assert (chosen.threshold, chosen.place, chosen.kind) == (0.5, pytest.approx(0.5), "chosen")
    assert (hindsight.threshold, hindsight.kind) == (0.2, "hindsight")
    place = (to_odds(0.2) - slider.low) / (slider.high - slider.low)
    assert hindsight.place == pytest.approx(float(place))


def test_scores_of_0_and_1_stay_on_the_slider(make_result):
    slider = make_slider([make_result("a", 0, 0.0), make_result("b", 1, 1.0)], CLASSES, 0.5)
    assert all(0 < mark.place < 1 for mark in slider.marks)


def test_without_defects_there_is_no_threshold_to_look_back_on(make_result):
    results = [make_result("a", 0, 0.3)]
    assert full_recall_threshold(results) is None
    assert [mark.kind for mark in make_slider(results, CLASSES, 0.5).marks] == ["chosen"]


def test_no_slider_without_rows_or_a_common_threshold(results):
    assert make_slider([], CLASSES, 0.5) is None
    assert make_slider(results, CLASSES, None) is None
