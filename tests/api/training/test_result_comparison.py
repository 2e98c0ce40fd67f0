import pytest
from scipy.stats import binomtest

from api.errors import RequestError
from api.training.result_comparison import Prediction, compare_results, mcnemar_p_value, read_predictions


def predictions(*labels):
    """Photographs 0, 1, … with true and predicted label."""
    return {str(number): Prediction(*pair) for number, pair in enumerate(labels)}


@pytest.mark.parametrize(
    "counts", [(0, 0), (1, 0), (3, 9), (9, 3), (10, 10), (0, 6), (120, 80), (200_000, 199_000)]
)
def test_the_p_value_is_that_of_the_exact_test(counts):
    expected = binomtest(counts[0], sum(counts)).pvalue if sum(counts) else 1.0
    assert mcnemar_p_value(*counts) == pytest.approx(expected)


def test_only_common_photographs_with_the_same_label_count():
    first = predictions(
        ("good", "good"), ("scratch", "good"), ("good", "dent"), ("dent", "review"), ("good", "good")
    )
    second = predictions(("good", "good"), ("scratch", "scratch"), ("good", "dent"), ("dent", "scratch"))
    second |= {"4": Prediction("scratch", "good"), "5": Prediction("good", "good")}
    found = compare_results(first, second)
    assert (found.photographs, found.left_out) == (4, 3)
    assert (found.only_first_correct, found.only_second_correct, found.both_wrong) == (0, 1, 2)
    rates = found.first.missed, found.first.false_alarms, found.second.missed, found.second.correct
    assert [(rate.count, rate.total) for rate in rates] == [(1, 2), (1, 2), (0, 2), (2, 4)]
    half = found.second.correct  # Clopper-Pearson for 2 of 4
    assert (half.low, half.high) == (pytest.approx(0.0676, abs=1e-3), pytest.approx(0.9324, abs=1e-3))


def test_a_training_without_common_photographs_is_not_compared():
    with pytest.raises(RequestError, match="no common photograph"):
        compare_results(predictions(("good", "good")), predictions(("scratch", "good")))


def test_texts_of_the_file_are_restored():
    content = b"name,split,true_label,predicted_label\n'=a,,good,good\n"
    assert read_predictions(content) == {"=a": Prediction("good", "good")}


@pytest.mark.parametrize(
    "content", [b"\xff", b"name,true_label\na,b\n", b"name,true_label,predicted_label\na\n"]
)
def test_a_damaged_file_is_rejected(content):
    with pytest.raises(RequestError, match="damaged file"):
        read_predictions(content)
