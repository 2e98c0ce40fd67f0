"""Sentences on evaluations made by hand: every number in them can be counted in the results."""

from dataclasses import replace

import pytest

from training.metrics.evaluation import Evaluation
from training.metrics.metrics import compute_metrics
from training.metrics.pixel_counts import PixelCounts
from training.metrics.pixel_histogram import PixelHistogram
from training.metrics.regions import Overlap
from training.reporting.summary import describe, describe_reliability, list_doubts, list_remarks

CLASSES = ("good", "scratch", "spot")


@pytest.fixture
def evaluate_results():
    def run(results, classes=("good", "defect"), resamples=200):
        metrics = compute_metrics(results, classes, None, threshold=0.5, resamples=resamples)
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
    evaluation = evaluate_results(
        [*many(8, 5), make_result("missed", 1, 0.395), make_result("alarm", 0, 0.7)]
    )
    assert describe(evaluation) == "2 of 15 images are labelled wrong: 1 missed defect, 1 false alarm."
    assert list_remarks(evaluation) == [
        "The model finds 5 of 6 defective photographs and passes 8 of 9 good ones.",
        # 0.4, 0.399 … 0.395 and the alarm reach 0.395.
        "To miss none of these defects, the threshold would have to be 0.395, with 7 false alarms among 9 "
        "good photographs.",
    ]


def test_worst_class_and_confusion_are_named(evaluate_results, make_result):
    def result(place, truth, score, predicted):
        correct = make_result(f"{truth}/{place}", int(truth > 0), score)
        return replace(correct, truth=truth, true_label=CLASSES[truth], predicted_label=CLASSES[predicted])

    results = [result(place, 1, 0.9, 1) for place in range(4)]
    results += [result(0, 2, 0.9, 1), result(1, 2, 0.9, 2), result(2, 2, 0.1, 0), result(3, 0, 0.1, 0)]
    sentences = list_remarks(evaluate_results(results, CLASSES))
    assert "It misses 1 of 3 photographs of the class 'spot', a larger share than of any other." in sentences
    assert (
        "Of the 2 photographs of the class 'spot' that it finds, 1 is given another class; see the table "
        "below." in sentences
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
        "pixels are defect (pixel F1 0.750, intersection over union 0.600).",
        "1 defective photograph has a label or boxes only, no mask: it is excluded from all metrics of "
        "pixels and regions.",
        "Of the true regions below 64 px it finds 1 of 2, a smaller share than of any other size.",
    ]


@pytest.mark.parametrize(
    ("marked_px", "sentence"),
    [
        (
            1,
            "Every true region is found: at least 10 % of it is marked, beside 0.5 % of the area without a "
            "defect.",
        ),
        (
            180,
            "In defective photographs the masks mark 90 % of the area without a defect. They cover true "
            "regions by chance, so the number of found regions says nothing.",
        ),
    ],
)
def test_regions_under_a_mask_of_nearly_everything_do_not_count_as_found(
    evaluate_results, make_result, marked_px, sentence
):
    overlaps = (Overlap(50, 50, 0, 0, 200, marked_px), Overlap(300, 300, 0, 0, 200, marked_px))
    results = [make_result("bad", 1, 0.9, overlaps=overlaps), make_result("good", 0, 0.1)]
    assert sentence.replace(" %", "\N{NO-BREAK SPACE}%") in list_remarks(evaluate_results(results))


def test_few_items_are_doubted(evaluate_results, many, make_result):
    (doubt,) = list_doubts(evaluate_results(many(2, 2)).metrics)
    assert "too few items for a 95 % interval" in doubt
    wide = evaluate_results([*many(10, 4), make_result("missed", 1, 0.1)]).metrics
    (doubt,) = list_doubts(wide)
    ends = wide.intervals["average_precision"]
    assert f"anywhere from {ends.low:.2f} to {ends.high:.2f}" in doubt
    (doubt,) = list_doubts(evaluate_results(many(30, 10)).metrics)
    # Clopper and Pearson for 0 of 10: 1 − 0.025^(1/10) = 0.308.
    assert "be up to 31\N{NO-BREAK SPACE}%" in doubt

    for results, lacking in ((many(6, 0), "defective"), (many(0, 6), "good")):
        (doubt,) = list_doubts(evaluate_results(results).metrics)
        assert doubt.startswith(f"There is no {lacking} photograph")


def test_photographs_for_review_are_neither_right_nor_wrong(evaluate_results, make_result):
    """Forty photographs at 0.3 and 0.7: four good and one defective for review, one of each wrong."""
    scores = {("good", 0): [0.1] * 30 + [0.4] * 4 + [0.9], ("bad", 1): [0.9] * 3 + [0.5, 0.2]}
    results = [
        make_result(f"{kind} {n}", label, score, threshold=0.7, review=0.3)
        for (kind, label), own in scores.items()
        for n, score in enumerate(own)
    ]
    evaluation = evaluate_results(results)
    assert describe(evaluation) == (
        "2 of 40 images are labelled wrong: 1 missed defect, 1 false alarm; 5 are left for review."
    )
    assert list_remarks(evaluation)[:2] == [
        "The model finds 3 of 5 defective photographs and passes 30 of 35 good ones.",
        "It leaves 5 of 40 photographs for review, 1 of them defective.",
    ]
    assert list_remarks(evaluation)[-1] == (
        # 0.2 is below four good ones and the alarm.
        "To miss none of these defects, the review threshold would have to be 0.200; 5 of 35 good "
        "photographs score as high."
    )
    reviews = ["bad 3", "good 30", "good 31", "good 32", "good 33"]
    assert [result.name for result in evaluation.reviews()] == reviews


def test_reliability_in_words(evaluate_results, make_result, many):
    # Four photographs at 0.3, one defective: 0.25 of them, 0.05 off.
    results = [make_result(str(place), int(place == 0), 0.3, log_odds=0.0) for place in range(4)]
    plain = compute_metrics(results, ("good", "defect"))
    assert describe_reliability(plain, None) == (
        "The score is not calibrated: it ranks photographs by how likely they are "
        "defective, but it is not a probability. Here score and share of defective photographs differ by "
        "0.050 on average. With 1 defective photograph this value is rough."
    )
    # A twentieth of the weight on the defective one: 0.05 against 0.3, and against 0.5 before.
    weighted = compute_metrics(results, ("good", "defect"), defect_rate=0.05)
    assert describe_reliability(weighted, 0.05) == (
        "The score is calibrated to be a probability where 5\N{NO-BREAK SPACE}% of the photographs are "
        "defective: of 100 with a score of 0.2, 20 should be defective. Here score and share of defective "
        "photographs differ by 0.250 on average, 0.450 without calibration; these photographs are weighted "
        "as if that share of them were defective. With 1 defective photograph this value is rough."
    )
    alone = evaluate_results(many(6, 0)).metrics
    assert describe_reliability(alone, 0.125).endswith(
        "This cannot be measured here: there is no defective photograph."
    )
    enough = compute_metrics(many(60, 50), ("good", "defect"), defect_rate=0.05)
    assert "rough" not in describe_reliability(enough, 0.05)
