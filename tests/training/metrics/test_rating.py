"""Ratings of evaluations made by hand."""

import re
from dataclasses import replace

import pytest

from training.metrics.evaluation import Evaluation
from training.metrics.metrics import compute_metrics
from training.metrics.pixel_counts import PixelCounts
from training.metrics.pixel_histogram import PixelHistogram
from training.metrics.rating import TrainingFacts, rate

TRAINED = TrainingFacts(steps=2000, defective=60, unlocalized=0)
CLASSES = ("good", "scratch", "spot")


@pytest.fixture
def rated(make_result):
    """Rates a model by the photographs that it found, missed, passed and rejected, and left for review."""

    def run(found, missed, passed, rejected, training=TRAINED, *, reviews=(0, 0), parts=999, split="test"):
        kinds = ((1, 0.9, found), (1, 0.1, missed), (1, 0.4, reviews[0]))
        kinds += ((0, 0.1, passed), (0, 0.9, rejected), (0, 0.4, reviews[1]))
        values = [(truth, score) for truth, score, number in kinds for _ in range(number)]
        results = [
            replace(make_result(f"{n}", truth, score, review=0.3, group=f"{n % parts}"), split=split)
            for n, (truth, score) in enumerate(values)
        ]
        return rate(evaluate(results, ("good", "defect")), training)

    return run


def evaluate(results, classes):
    metrics = compute_metrics(results, classes, None, threshold=0.5, resamples=200)
    return Evaluation(classes, tuple(results), metrics, PixelHistogram())


@pytest.mark.parametrize(
    ("counts", "level", "word"),
    [
        ((39, 1, 40, 0), "usable", "misses 1 of 40 defective ones"),
        ((40, 0, 36, 4), "usable", "rejects 4 of 40 good ones"),
        ((7, 0, 40, 0), "usable", "(up to 41\N{NO-BREAK SPACE}%)"),
        ((5, 0, 40, 0), "weak", "its miss rate may be 52\N{NO-BREAK SPACE}%"),  # 1 - 0.025 ** (1 / 5)
        ((35, 5, 40, 0), "weak", "at most 10\N{NO-BREAK SPACE}%"),
        ((40, 0, 30, 10), "weak", "at most 10\N{NO-BREAK SPACE}%"),
        ((16, 24, 40, 0), "useless", "chance"),  # it passes more defective ones than it finds
        ((0, 40, 40, 0), "useless", "AP 0.500, by chance 0.500"),
        ((40, 0, 0, 40), "useless", "rejects 40 of 40 good ones"),
        ((0, 40, 0, 40), "useless", "misses 40 of 40 defective ones"),
        ((1, 0, 10, 0), "not measurable", "1 defective"),  # one of 11 guesses is as good
        ((2, 0, 3, 0), "not measurable", "by chance"),
        ((0, 0, 40, 0), "not measurable", "no defective photograph"),
        ((0, 0, 4, 36), "useless", "rejects 36 of 40 good ones"),
        ((40, 0, 0, 0), "not measurable", "no good photograph"),
        ((0, 0, 0, 0), "not measurable", "No photograph"),
    ],
)
def test_levels(rated, counts, level, word):
    rating = rated(*counts)
    assert (rating.level, word in rating.reason) == (level, True), rating
    assert bool(rating.advice) == (level != "usable")


def test_photographs_for_review_are_not_decided(rated):
    """To review everything is as useless as to reject everything."""
    assert rated(0, 0, 0, 0, reviews=(40, 40)).level == "useless"
    assert rated(30, 0, 40, 0, reviews=(10, 0)).level == "usable"
    assert rated(40, 0, 30, 0, reviews=(0, 10)).level == "weak"


def test_photographs_of_one_part_count_once(rated):
    assert rated(10, 0, 10, 0).level == "usable"
    assert rated(10, 0, 10, 0, parts=2).level == "not measurable"


@pytest.mark.parametrize("split", ["val", "train"])
def test_seen_photographs_prove_less(rated, split):
    rating = rated(40, 0, 40, 0, split=split)
    assert rating.level == "weak" and "too good" in rating.reason


@pytest.mark.parametrize(
    ("training", "level", "word"),
    [
        (TrainingFacts(30, 60, 0), "weak", "10 times as many steps"),
        (TrainingFacts(2000, 8, 0), "weak", "8 defective photographs"),
        (TrainingFacts(2000, 0, 0), "weak", "three or more photographs of each known kind of defect"),
        (TrainingFacts(2000, 60, 45), "weak", "45 of 60 defective training photographs have no mask"),
        (TrainingFacts(2000, 60, 0), "weak", "labels"),
        (TrainingFacts(2000, 60, 0, decision_trained=False), "useless", "decision"),
    ],
)
def test_advice_names_what_is_known(rated, training, level, word):
    rating = rated(35, 5, 40, 0, training)
    assert rating.level == level
    assert any(word in sentence for sentence in (rating.reason, *rating.advice)), rating


@pytest.mark.parametrize(("annotated", "printed"), [(None, False), (PixelCounts(1, 50, 50), True)])
def test_masks_are_judged_only_by_annotated_ones(make_result, annotated, printed):
    """Good photographs have known pixels, too: with false ones alone, no annotation is missed."""
    results = [
        make_result(
            f"{n}", int(n < 40), 0.9 if n < 40 else 0.1, pixels=annotated if n < 40 else PixelCounts(fp=9)
        )
        for n in range(80)
    ]
    rating = rate(evaluate(results, ("good", "defect")), TRAINED)
    assert ("mark other pixels than the annotated ones" in rating.reason) == printed
    assert rating.level == ("weak" if printed else "usable")


def test_a_model_that_nothing_measures_must_have_been_trained(rated):
    assert rated(0, 0, 40, 0, TrainingFacts(2, 0, 0)).level == "useless"
    assert rated(40, 0, 40, 0, TrainingFacts(2, 60, 0)).level == "usable"


def test_advice_names_commands_only_for_the_command_line(rated, make_result):
    separating = [make_result(f"{n}", int(n < 20), 0.4 - n / 1000) for n in range(40)]
    ratings = [rated(40, 6, 40, 0, TrainingFacts(steps, 60, 0)) for steps in (30, 2000)]
    ratings.append(rate(evaluate(separating, ("good", "defect")), TRAINED))
    text = " ".join(sentence for rating in ratings for sentence in rating.advice)
    assert "minutes" in text and "calibrate" in text and "inspect" in text
    shown = re.sub(r"\(command line: [^()]*\)", "", text)
    assert "python" not in shown and "--" not in shown


def test_scores_that_separate_need_another_threshold(make_result):
    results = [make_result(f"{n}", int(n < 20), 0.4 - n / 1000) for n in range(40)]
    rating = rate(evaluate(results, ("good", "defect")), TRAINED)
    assert rating.level == "useless" and rating.needs_threshold
    assert "training calibrate" in rating.advice[0]


def test_one_weak_class_makes_a_weak_model(make_result):
    def result(n, truth, score, predicted):
        made = make_result(f"{truth}/{n}", int(truth > 0), score)
        return replace(made, truth=truth, true_label=CLASSES[truth], predicted_label=CLASSES[predicted])

    good = [result(n, 0, 0.1, 0) for n in range(40)] + [result(n, 1, 0.9, 1) for n in range(38)]
    for spots, word in (
        ([result(0, 2, 0.1, 0), result(1, 2, 0.1, 0)], "misses 2 of 2 photographs of 'spot'"),
        ([result(0, 2, 0.9, 1), result(1, 2, 0.9, 1)], "another class to 2 of 2 photographs of 'spot'"),
    ):
        rating = rate(evaluate([*good, *spots], CLASSES), TRAINED)
        assert rating.level == "weak" and word in rating.reason and "'spot'" in rating.advice[0]


@pytest.mark.parametrize(
    ("counts", "training", "advised"),
    [
        ((35, 5, 40, 0), TRAINED, True),  # AUROC 0.94: the missed ones have the score of good ones
        ((39, 1, 32, 0), TRAINED, False),  # 0.985
        ((35, 5, 40, 0), TrainingFacts(299, 60, 0), False),  # more steps come first
        ((35, 5, 40, 0), TrainingFacts(2000, 19, 0), False),  # other advice says how many are needed
        ((35, 5, 40, 0), TrainingFacts(2000, 60, 0, decision_trained=False), False),
    ],
)
def test_more_defects_may_help_a_trained_model_whose_scores_overlap(rated, counts, training, advised):
    rating = rated(*counts, training, reviews=(0, 40 - counts[2]))
    assert rating.level != "usable"
    assert any("more defective photographs may help" in one for one in rating.advice) == advised, rating


def test_a_class_is_named_if_its_share_of_errors_is_not_by_chance(make_result):
    def advice(missed, reviews, found, parts=99):
        classes = {
            0: [0.1] * 40,
            1: [0.9] * 35 + [0.1] * 5,
            2: [0.1] * missed + [0.4] * reviews + [0.9] * found,
        }
        results = []
        for truth, scores in classes.items():
            for n, score in enumerate(scores):
                made = make_result(f"{n}", min(truth, 1), score, review=0.3, group=f"{truth}/{n % parts}")
                results.append(replace(made, truth=truth, true_label=CLASSES[truth]))
        return rate(evaluate(results, CLASSES), TRAINED).advice

    sentence = (
        "Of the parts of class 'spot' 6 of 10 are missed or for review, a larger share than of the others."
    )
    assert sentence in advice(3, 3, 4)  # p = 0.004: of the class 'scratch' it is 5 of 40
    for same in (advice(2, 2, 6), advice(3, 3, 4, parts=2)):  # p = 0.07; a part counts once
        assert not any("class 'spot'" in each for each in same)
