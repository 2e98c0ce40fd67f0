import math

import numpy as np
import pytest
from scipy.stats import beta, norm

from segdec.config import Calibration
from training.config import ThresholdConfig
from training.metrics.calibration import apply_calibration
from training.metrics.pixel_counts import count_pixels
from training.metrics.pixel_histogram import PixelHistogram
from training.metrics.thresholds import (
    ENOUGH_DEFECTIVE,
    ScoredPhotographs,
    choose_mask_threshold,
    choose_score_thresholds,
)

DEFAULTS = ThresholdConfig()


def scored(good, defective, groups=None):
    """Photographs with these log-odds, each of a part of its own unless groups are given."""
    odds = np.array([*good, *defective], np.float64)
    labels = np.repeat([0, 1], [len(good), len(defective)])
    return ScoredPhotographs(labels, odds, groups or tuple(str(place) for place in range(len(odds))))


def cut_of(limits):
    """The threshold in the network's own log-odds."""
    score, line = limits.threshold, limits.calibration
    return (math.log(score / (1 - score)) - line.intercept) / line.slope


def overlapping(seed, good=400, defective=100):
    generator = np.random.default_rng(seed)
    return scored(generator.normal(-2, 1.5, good), generator.normal(2, 1.5, defective))


# === Score threshold ===


@pytest.mark.parametrize("miss_cost", [0.5, 1, 10, 100])
def test_threshold_minimizes_the_expected_cost(miss_cost):
    limits = choose_score_thresholds(overlapping(0), ThresholdConfig(miss_cost=miss_cost))
    # The gap between two photographs is narrow here, so that the limit hardly has to keep clear of them.
    assert limits.threshold == pytest.approx(1 / (1 + miss_cost), rel=0.15)
    assert limits.review is None
    assert limits.notes == ()


def test_defect_rate_shifts_the_calibration_by_its_log_odds():
    photographs = overlapping(2)  # a fifth of them is defective
    same, rare = (
        choose_score_thresholds(photographs, ThresholdConfig(defect_rate=rate)).calibration
        for rate in (0.2, 1 / 65)
    )
    assert same.slope == rare.slope
    assert same.intercept - rare.intercept == pytest.approx(math.log((1 / 4) / (1 / 64)))
    assert (same.defect_rate, rare.defect_rate) == (0.2, 1 / 65)


@pytest.mark.parametrize(("good", "defective"), [([], []), ([], [1.0]), ([], [1.0, 2.0]), ([0.0], [])])
def test_too_few_images_give_the_default_threshold_and_a_note(good, defective):
    limits = choose_score_thresholds(scored(good, defective), DEFAULTS)
    assert (limits.threshold, limits.calibration) == (0.5, Calibration())
    images = "image" if len(defective) == 1 else "images"
    assert f"{len(good)} good and {len(defective)} defective {images}, too few" in limits.notes[0]


@pytest.mark.parametrize(
    ("good", "defective", "label"),
    [([1.0] * 4, [1.0] * 4, "defective"), ([0.0] * 200, [0.0], "good"), ([-3.0, 9.0], [-4.0], "defective")],
)
def test_inseparable_scores_give_a_warning(good, defective, label):
    limits = choose_score_thresholds(scored(good, defective), DEFAULTS)
    assert f"The threshold calls every image {label}" in limits.notes[0]
    assert 0 <= limits.threshold <= 1


def test_invalid_scores_are_rejected():
    with pytest.raises(ValueError, match="not finite"):
        scored([np.nan], [1.0])


@pytest.mark.parametrize("miss_cost", [1e-6, 1e6])
def test_threshold_is_strictly_between_0_and_1(miss_cost):
    photographs = scored(np.linspace(-3e4, -2e4, 30), np.linspace(2e4, 3e4, 5))
    assert 0 < choose_score_thresholds(photographs, ThresholdConfig(miss_cost=miss_cost)).threshold < 1
    assert 0 < choose_score_thresholds(scored(photographs.good, []), DEFAULTS).threshold < 1


# === Good photographs alone ===


def test_threshold_from_good_images_only_rejects_one_in_twenty():
    good = np.linspace(-4, -2, 21)
    limits = choose_score_thresholds(scored(good, []), DEFAULTS)
    assert limits.calibration == Calibration()
    # 22 · 95 % is 20.9: between the two highest, −2.1 and −2, and clear of both.
    assert cut_of(limits) == pytest.approx(-2.05, abs=1e-6)
    # One of 21 is refused: up to 20.7 % may be.
    assert beta.ppf(0.95, 2, 20) == pytest.approx(0.207, abs=1e-3)
    assert "21 good parts and no defective one: it rejects at most 20.7 % of the good ones" in limits.notes[0]


def test_fewer_good_images_than_the_share_needs_give_the_quantile_of_a_normal_distribution():
    limits = choose_score_thresholds(scored(np.linspace(-4, -2, 11), []), DEFAULTS)
    # Mean −3, standard deviation 0.66332, t(10 degrees, 95 %) 1.81246, √(1 + 1/11) 1.04447: −1.7443.
    assert cut_of(limits) == pytest.approx(-1.7443, abs=1e-4)


def test_the_share_counts_images_and_the_note_parts():
    good = np.linspace(-4, -2, 21)
    several = choose_score_thresholds(
        scored(good, [], tuple(str(place // 7) for place in range(21))), DEFAULTS
    )
    assert several.threshold == choose_score_thresholds(scored(good, []), DEFAULTS).threshold
    assert "3 good parts and no defective one" in several.notes[0]


@pytest.mark.parametrize("count", [10, 60])
def test_further_good_images_exceed_the_threshold_in_the_stated_share(count):
    generator = np.random.default_rng(0)
    refused = [
        norm.sf(cut_of(choose_score_thresholds(scored(generator.normal(0, 1, count), []), DEFAULTS)))
        for _ in range(200)
    ]
    assert np.mean(refused) == pytest.approx(0.05, abs=0.01)


# === Few defective photographs ===


def test_with_few_defective_images_the_threshold_rejects_a_share_of_the_good_ones():
    good, defective = np.linspace(-9, -5, 99), [5.0, 6.0, 7.0]
    limits = choose_score_thresholds(scored(good, defective), ThresholdConfig(refused_share=0.03))
    assert np.count_nonzero(good >= cut_of(limits)) == 2  # a further one exceeds the 97th of 99 with 3 %
    assert limits.notes == (
        "3 defective photographs cannot show how low the score of a defect can be: instead of the threshold "
        "with the lowest cost, one is used that rejects about 3 % of the good photographs.",
    )


def test_with_enough_defective_images_the_cost_alone_chooses_the_threshold():
    good, defective = np.linspace(-9, -5, 99), np.linspace(5, 7, ENOUGH_DEFECTIVE)
    limits = choose_score_thresholds(scored(good, defective), DEFAULTS)
    assert -5 < cut_of(limits) < 5
    assert limits.notes == ()


def test_a_threshold_that_rejects_more_of_the_good_images_is_not_raised():
    good, defective = np.linspace(-4, 4, 99), np.linspace(-1, 5, 5)
    limits = choose_score_thresholds(scored(good, defective), ThresholdConfig(miss_cost=100))
    assert np.count_nonzero(good >= cut_of(limits)) > 0.05 * 99
    assert limits.notes == ()


# === Review ===


def reviewing(photographs, **settings):
    return choose_score_thresholds(photographs, ThresholdConfig(review=True, **settings))


def test_review_thresholds_keep_both_error_rates():
    photographs = overlapping(5, 1000, 300)
    limits = reviewing(photographs, missed_share=0.02, refused_share=0.03)
    scores = apply_calibration(limits.calibration, photographs.log_odds)
    missed = np.count_nonzero((scores < limits.review) & (photographs.labels == 1))
    refused = np.count_nonzero((scores >= limits.threshold) & (photographs.labels == 0))
    assert limits.notes == ()
    assert limits.review < limits.threshold
    for count, parts, share in ((missed, 300, 0.02), (refused, 1000, 0.03)):
        assert beta.ppf(0.95, count + 1, parts - count) <= share
        assert beta.ppf(0.95, count + 2, parts - count - 1) > share


def test_too_few_parts_for_an_error_rate_name_the_required_number():
    limits = reviewing(overlapping(6, 40, 5), missed_share=0.01)
    # 1 − 0.01 to the power 299 is below 5 %; of five, 1 − 0.05^(1/5) = 45.1 % may be missed.
    assert "5 parts cannot guarantee that at most 1 % of the defective parts" in limits.notes[0]
    assert "needs 299 parts. Guaranteed are 45.1 %, with 95 % confidence" in limits.notes[0]


def test_images_of_one_part_count_once():
    good, defective = np.linspace(-5, -4, 100), np.linspace(1, 5, 100)
    apart, together = (
        reviewing(scored(good, defective, groups))
        for groups in (None, ("good",) * 100 + tuple(str(place // 20) for place in range(100)))
    )
    assert apart.notes == ()
    assert "5 parts cannot guarantee" in together.notes[0]
    assert "1 part cannot guarantee" in together.notes[1]


# === A threshold that is set ===


def test_a_threshold_that_is_set_changes_nothing_but_itself():
    photographs = overlapping(0)
    chosen, given = (
        choose_score_thresholds(photographs, ThresholdConfig(score=score)) for score in (None, 0.4)
    )
    assert (given.threshold, given.review, given.notes) == (0.4, None, ())
    assert given.calibration == chosen.calibration


def test_the_review_threshold_stays_below_one_that_is_set():
    photographs = overlapping(5, 1000, 300)
    chosen = reviewing(photographs)
    above, below = (reviewing(photographs, score=chosen.review * factor) for factor in (1.5, 0.5))
    assert above.review == chosen.review < above.threshold
    assert below.review is None


@pytest.mark.parametrize(("good", "defective"), [([-1.0, 0.0], []), ([], [])])
def test_a_threshold_that_is_set_needs_no_defect(good, defective):
    limits = choose_score_thresholds(scored(good, defective), ThresholdConfig(score=0.4, review=True))
    assert (limits.threshold, limits.review, limits.calibration) == (0.4, None, Calibration())
    assert limits.notes[0].startswith("The miss rate is unknown")


# === Mask threshold ===


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.1])
def test_mask_scores_outside_the_unit_interval_are_rejected(bad):
    with pytest.raises(ValueError, match="between 0 and 1"):
        PixelHistogram().add(np.array([[0.5, bad]], np.float32), None)


@pytest.mark.parametrize("seed", range(3))
def test_mask_threshold_is_the_lowest_with_nearly_the_best_f1(seed):
    generator, histogram = np.random.default_rng(seed), PixelHistogram()
    truth = (generator.random((27, 7)) < 0.3).astype(np.uint8) * 255
    scores = (0.7 * generator.random((27, 7)) + 0.3 * (truth > 0)).astype(np.float32)
    scores[::2] = (256 * scores[::2]).round() / 256  # many scores are on and off the edges
    for rows in range(0, 27, 9):
        histogram.add(scores[rows : rows + 9], truth[rows : rows + 9])
    every = [count_pixels((scores >= edge / 256).astype(np.uint8), truth).f1 for edge in range(1, 256)]
    nearly = [place for place, f1 in enumerate(every, start=1) if f1 >= 0.98 * max(every)]
    assert choose_mask_threshold(histogram) == (nearly[0] / 256, None)
    assert histogram.f1_at_edges() == pytest.approx(every)
