from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from training.metrics.intervals import (
    INTERVAL_METRICS,
    RESAMPLES,
    bootstrap_intervals,
    draw_resamples,
    resample_metrics,
)
from training.metrics.metrics import compute_metrics
from training.metrics.pixel_counts import PixelCounts


@pytest.fixture(scope="module")
def results(make_result):
    """Sixty photographs of twenty items, two in five defective, with equal scores among them."""
    generator = np.random.default_rng(2)
    truth = generator.integers(0, 5, 60) >= 3
    scores = (generator.random(60) * 0.7 + 0.3 * truth).round(1)
    return [
        make_result(
            f"{place:02d}",
            int(truth[place]),
            float(scores[place]),
            group=f"item {place // 3}",
            pixels=PixelCounts(*generator.integers(0, 50, 3).tolist()) if place % 7 else None,
        )
        for place in range(60)
    ]


def test_resampled_figures_are_those_of_scikit_learn(results):
    weights = np.concatenate([*draw_resamples([result.group for result in results], resamples=20, seed=0)])
    figures = resample_metrics(results, weights)
    truth, scores = [result.truth for result in results], [result.score for result in results]
    for place, own in enumerate(weights):
        precision = average_precision_score(truth, scores, sample_weight=own)
        area = roc_auc_score(truth, scores, sample_weight=own)
        assert figures["average_precision"][place] == pytest.approx(precision)
        assert figures["auroc"][place] == pytest.approx(area)


def test_pixel_figures_need_a_defect_pixel(results):
    good_only = [replace(each, pixels=None if each.truth else PixelCounts(fp=3)) for each in results]
    intervals = bootstrap_intervals([good_only], resamples=50)
    assert (intervals["pixel_f1"], intervals["pixel_iou"]) == (None, None)


def test_intervals_hold_the_figure_and_come_again(results):
    intervals = bootstrap_intervals([results])
    single = compute_metrics(results, ("good", "defect")).scalars()
    for name, interval in intervals.items():
        assert interval.low < single[name] < interval.high, name
        assert interval.resamples == RESAMPLES
    assert bootstrap_intervals([results[::-1]]) == intervals
    assert bootstrap_intervals([results], seed=1) != intervals


def test_dependent_photographs_widen_the_interval(make_result):
    """Ten items of ten like photographs each are ten observations, not a hundred."""
    answers = [0.9 if item < 5 else 0.1 for item in range(10)]
    results = [
        make_result(f"{item} {place}", 1, answers[item], group=str(item))
        for item in range(10)
        for place in range(10)
    ]
    alone = [make_result(result.name, 1, result.score) for result in results]
    grouped, single = (bootstrap_intervals([each])["false_negative_rate"] for each in (results, alone))
    assert grouped.high - grouped.low > 2.5 * (single.high - single.low)
    # A share of a half from 10 and 100 draws: ± 1.96 · 0.5 / √n.
    assert (grouped.low, grouped.high) == pytest.approx((0.2, 0.8))
    assert (single.low, single.high) == pytest.approx((0.402, 0.598), abs=0.015)


def test_no_error_in_25_items_is_not_never_an_error(make_result):
    results = [make_result(str(item), item % 2, 0.9 * (item % 2)) for item in range(50)]
    interval = bootstrap_intervals([results])["false_negative_rate"]
    assert (interval.low, interval.method) == (0, "exact")
    assert interval.high == pytest.approx(1 - 0.025 ** (1 / 25))  # Clopper and Pearson


def test_resamples_without_a_figure_are_ignored(make_result):
    """The one defective item is not drawn in (9/10)¹⁰ = 35 % of the resamples."""
    results = [make_result(str(item), int(item == 0), 0.1 * item) for item in range(10)]
    intervals = bootstrap_intervals([results])
    assert intervals["average_precision"].resamples == pytest.approx(0.651 * RESAMPLES, rel=0.05)
    assert intervals["pixel_f1"] is None  # no defect pixel at all
    assert intervals["false_positive_rate"].resamples == RESAMPLES


def test_too_few_groups_give_no_interval(make_result):
    results = [make_result(str(place), place % 2, 0.01 * place, group=str(place % 4)) for place in range(40)]
    assert bootstrap_intervals([results]) == bootstrap_intervals([[]]) == dict.fromkeys(INTERVAL_METRICS)
