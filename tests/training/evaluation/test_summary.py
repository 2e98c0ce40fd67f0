"""Sentences on evaluations made by hand: every number in them can be counted in the results."""

from dataclasses import replace

import pytest

from training.evaluation.evaluation import Evaluation
from training.evaluation.metrics import measure
from training.evaluation.pixel_counts import PixelCounts
from training.evaluation.pixel_histogram import PixelHistogram
from training.evaluation.summary import describe, list_doubts, list_remarks
from training.evaluation.true_regions import Overlap

CLASSES = ("good", "scratch", "spot")


@pytest.fixture
def evaluate_results():
    def run(results, classes=("good", "defect"), resamples=200):
        metrics = measure(results, classes, None, threshold=0.5, resamples=resamples)
        return Evaluation(classes, tuple(results), metrics, PixelHistogram())

    return run


@pytest.fixture
def many(make_result):
    """Good photographs below 0.4, and defective ones above 0.6."""

    def make(good, defective):
        results = [make_result(f"good {place}", 0, 0.4 - place / 1000) for place in range(good)]
        return results + [make_result(f"bad {place}", 1, 0.6 + place / 1000) for place in range(defective)]

    return make


def test_decisions_and_the_price_of_full_recall(evaluate_results, many, make_result):
    found = evaluate_results([*many(8, 5), make_result("missed", 1, 0.395), make_result("alarm", 0, 0.7)])
    assert describe(found) == "2 of 15 images are labelled wrong: 1 missed defect, 1 false alarm."
    assert list_remarks(found) == [
        "The model finds 5 of 6 defective photographs and it lets 8 of 9 good ones pass.",
        # 0.4, 0.399 … 0.395 and the alarm reach 0.395.
        "To miss none of these defects the threshold would have to be 0.395, with 7 false alarms among 9 "
        "good photographs.",
    ]


def test_worst_class_and_confusion_are_named(evaluate_results, make_result):
    def result(place, truth, score, predicted):
        found = make_result(f"{truth}/{place}", int(truth > 0), score)
        return replace(found, truth=truth, true_label=CLASSES[truth], predicted_label=CLASSES[predicted])

    results = [result(place, 1, 0.9, 1) for place in range(4)]
    results += [result(0, 2, 0.9, 1), result(1, 2, 0.9, 2), result(2, 2, 0.1, 0), result(3, 0, 0.1, 0)]
    sentences = list_remarks(evaluate_results(results, CLASSES))
    assert "It misses 1 of 3 photographs of the class 'spot', a larger share than of any other." in sentences
    assert (
        "Of the 2 photographs of the class 'spot' that it finds, 1 is given another class; the table below "
        "tells which." in sentences
    )


def test_masks_sizes_and_photographs_without_pixels(evaluate_results, make_result):
    results = [
        make_result(
            "small", 1, 0.9, pixels=PixelCounts(0, 5, 10), overlaps=(Overlap(10, 0), Overlap(20, 10))
        ),
        make_result("large", 1, 0.9, pixels=PixelCounts(75, 20, 15), overlaps=(Overlap(2000, 900),)),
        make_result("boxed", 1, 0.9, pixels=None),
        make_result("good", 0, 0.1),
    ]
    sentences = list_remarks(evaluate_results(results))
    assert sentences[1:] == [
        # 75 of 100 true and of 100 predicted pixels.
        "Of the defect pixels 75\N{NO-BREAK SPACE}% are marked, and 75\N{NO-BREAK SPACE}% of the marked "
        "pixels are defect (pixel F1 0.750).",
        "1 defective photograph has a label or boxes only, no drawn defect: it is not counted in any figure "
        "of pixels or regions.",
        "Of the true regions below 64 px it finds 1 of 2, a smaller share than of any other size.",
    ]


def test_few_items_are_doubted(evaluate_results, many, make_result):
    (doubt,) = list_doubts(evaluate_results(many(2, 2)).metrics)
    assert "too few for a 95 % interval" in doubt
    wide = evaluate_results([*many(10, 4), make_result("missed", 1, 0.1)]).metrics
    (doubt,) = list_doubts(wide)
    ends = wide.intervals["average_precision"]
    assert f"anywhere from {ends.low:.2f} to {ends.high:.2f}" in doubt
    (doubt,) = list_doubts(evaluate_results(many(30, 10)).metrics)
    # Clopper and Pearson for 0 of 10: 1 − 0.025^(1/10) = 0.308.
    assert "still be up to 31\N{NO-BREAK SPACE}%" in doubt


def test_sets_of_one_kind_cannot_be_measured(evaluate_results, many):
    for results, lacking in ((many(6, 0), "defective"), (many(0, 6), "good")):
        (doubt,) = list_doubts(evaluate_results(results).metrics)
        assert doubt.startswith(f"There is no {lacking} photograph")


def test_nothing_is_said_of_nothing(evaluate_results):
    empty = evaluate_results([])
    assert (list_remarks(empty), list_doubts(empty.metrics)) == ([], [])
