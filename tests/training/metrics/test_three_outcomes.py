import numpy as np
import pytest
from scipy.stats import expon, norm, t

from training.config import ThresholdConfig
from training.metrics.calibration import apply_calibration
from training.metrics.three_outcomes import choose_outcomes, limit_missed, limit_rejected
from training.metrics.thresholds import ScoredPhotographs, choose_score_thresholds

DEFAULTS = ThresholdConfig()


def scored(good, defective, groups=None):
    odds = np.array([*good, *defective], np.float64)
    labels = np.repeat([0, 1], [len(good), len(defective)])
    return ScoredPhotographs(labels, odds, groups or tuple(str(place) for place in range(len(odds))))


def overlapping(seed=0, good=400, defective=200):
    generator = np.random.default_rng(seed)
    return scored(generator.normal(-2, 1, good), generator.normal(2, 1.5, defective))


def shares(photographs, limits):
    """Rejected share of the good parts, their share for review, and missed share of the defective ones."""
    good, defective = (
        apply_calibration(limits.calibration, photographs.worst_of_groups(good=kind))
        for kind in (True, False)
    )
    rejected, missed = np.mean(good >= limits.threshold), np.mean(defective < limits.review)
    return rejected, np.mean(good >= limits.review) - rejected, missed


def test_uncertain_parts_are_reviewed_where_one_threshold_rejects_many_good_ones():
    photographs = overlapping()
    single = choose_score_thresholds(photographs, DEFAULTS)
    good = apply_calibration(single.calibration, photographs.good)
    assert np.mean(good >= single.threshold) > 0.05
    limits = choose_outcomes(photographs, DEFAULTS)
    assert limits.calibration == single.calibration
    rejected, reviewed, missed = shares(photographs, limits)
    assert 0 < rejected <= 0.01
    assert 0 < missed <= 0.01
    assert 0.5 < reviewed < 0.9
    share = np.mean(good >= single.threshold)
    (reason,) = limits.notes
    assert f"A single threshold would reject {100 * share:.0f} of 100 good parts" in reason


def test_clear_scores_keep_one_threshold():
    photographs = scored(np.linspace(-6, -3, 100), np.linspace(3, 6, 100))
    assert choose_outcomes(photographs, DEFAULTS) == choose_score_thresholds(photographs, DEFAULTS)


@pytest.mark.parametrize(
    "given", [{"score": 0.2}, {"miss_cost": 9.0}, {"review": True}, {"max_rejected": 1.0}], ids=str
)
def test_what_a_user_has_set_is_kept(given):
    settings = ThresholdConfig(**given)
    assert choose_outcomes(overlapping(), settings) == choose_score_thresholds(overlapping(), settings)


def test_the_defect_rate_is_no_choice_of_a_threshold():
    assert choose_outcomes(overlapping(), ThresholdConfig(defect_rate=0.4)).review is not None


@pytest.mark.parametrize(
    ("good", "defective"), [([], []), ([], [1.0, 2.0]), ([0.0], [0.0]), ([-2.0, -1.0, 0.0], [])], ids=str
)
def test_without_good_or_defective_parts_nothing_changes(good, defective):
    photographs = scored(good, defective)
    assert choose_outcomes(photographs, DEFAULTS) == choose_score_thresholds(photographs, DEFAULTS)


def test_one_threshold_is_used_if_it_meets_both_shares():
    """With a defect rate that is far too high, the lowest cost rejects good parts for nothing."""
    photographs = scored(np.linspace(-1.5, 0.5, 200), np.linspace(4, 7, 200))
    settings = ThresholdConfig(defect_rate=0.99)
    single = choose_score_thresholds(photographs, settings)
    assert np.mean(apply_calibration(single.calibration, photographs.good) >= single.threshold) > 0.05
    limits = choose_outcomes(photographs, settings)
    assert limits.review is None
    scores = apply_calibration(limits.calibration, photographs.log_odds)
    assert np.array_equal(scores >= limits.threshold, photographs.labels == 1)


def test_a_part_counts_by_its_worst_photograph():
    """Of 100 good photographs three are rejected by the lowest cost, of the 20 good parts three."""
    good = [4.0 if place % 40 == 0 else -5.0 for place in range(100)]
    names = [f"good {place // 5}" for place in range(100)]
    photographs = scored(good, [5.0] * 20, (*names, *(f"bad {place}" for place in range(20))))
    photographs_alone = scored(good, [5.0] * 20)
    assert choose_outcomes(photographs, DEFAULTS).review is not None
    assert choose_outcomes(photographs_alone, DEFAULTS).review is None


def test_few_defective_parts_make_the_review_wide():
    generator = np.random.default_rng(1)
    good = generator.normal(-2, 1, 200)
    widths = []
    for number in (1, 3, 10, 200):
        draws = [generator.normal(1.5, 1, number) for _ in range(30)]
        widths.append(np.mean([np.mean(good >= limit_missed(good, draw)) for draw in draws]))
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 2 * widths[-1]
    parts = tuple(str(place // 4) for place in range(200))
    limits = choose_outcomes(scored(good, [3.0, 3.5, 4.0], (*parts, "a", "b", "c")), DEFAULTS)
    assert "3 defective parts cannot show how low the score of a defect can be" in limits.notes[1]


def test_the_limit_of_one_defective_part_is_that_of_the_expected_spread():
    good = np.array([-12.0, -8.0])  # standard deviation 2.8284, so 3.5355 is expected
    # t(8 degrees, 99 %) 2.8965, √2 for the one part. Its own probability of a defect is nearly 1.
    assert t.ppf(0.99, 8) == pytest.approx(2.8965, abs=1e-4)
    assert limit_missed(good, np.array([9.0])) == pytest.approx(9 - 2.8965 * 2**0.5 * 3.5355, abs=1e-3)


def test_a_defect_that_is_expected_among_good_parts_lowers_the_limit():
    """Known defects with equal, high scores do not show that all have one; good scores near them do."""
    defective = np.full(9, 3.0)
    far, near = np.linspace(-6, -4, 40), np.array([*np.linspace(-6, -4, 38), -0.5, 0.5])
    assert limit_missed(near, defective) < limit_missed(far, defective) - 1


def test_the_limit_of_few_good_parts_is_above_them():
    # The three highest exceed the next one, 0, by 6 in all; 5 · 1 % of 3.
    few = limit_rejected(np.array([0.0, 1.0, 2.0, 3.0]))
    assert few == pytest.approx(6 * ((3 / 0.05) ** (1 / 3) - 1))
    assert limit_rejected(np.zeros(5)) == pytest.approx(0, abs=1e-9) and limit_rejected(np.zeros(5)) > 0
    assert limit_rejected(np.arange(199.0)) == pytest.approx(197.0)  # 200 · 1 % is 2: the second highest


@pytest.mark.parametrize("number", [10, 30, 150])
def test_further_good_parts_are_rarely_rejected(number):
    generator = np.random.default_rng(0)
    rejected = [expon.sf(limit_rejected(generator.exponential(1, number))) for _ in range(1000)]
    assert np.mean(rejected) == pytest.approx(0.01, abs=0.002)


def test_of_many_defective_parts_the_limit_is_a_quantile():
    defective = np.arange(199.0)  # 200 · 1 % is 2: the second lowest
    assert limit_missed(np.zeros(2), defective) == pytest.approx(1.0)


@pytest.mark.parametrize("number", [3, 10, 50])
def test_further_defective_parts_are_rarely_missed(number):
    generator = np.random.default_rng(0)
    missed = []
    for _ in range(300):
        good, defective = generator.normal(0, 1, 40), generator.normal(4, 1.5, number)
        missed.append(norm.cdf(limit_missed(good, defective), 4, 1.5))
    assert 0.0002 < np.mean(missed) < 0.016


def unseparated(defective):
    generator = np.random.default_rng(2)
    return scored(generator.normal(0, 1, 200), generator.normal(0, 1, defective))


@pytest.mark.parametrize("number", [14, 100])
def test_a_review_of_everything_is_replaced_by_that_of_the_rejects_of_one_threshold(number):
    photographs = unseparated(number)
    single = choose_score_thresholds(photographs, DEFAULTS)
    limits = choose_outcomes(photographs, DEFAULTS)
    rejected, reviewed, missed = shares(photographs, limits)
    assert rejected <= 0.01
    good, defective = (
        apply_calibration(single.calibration, each) for each in (photographs.good, photographs.defective)
    )
    assert rejected + reviewed == pytest.approx(np.mean(good >= single.threshold))
    assert missed == pytest.approx(np.mean(defective < single.threshold))
    assert "of 100 good ones would be for review. The review therefore begins at the" in limits.notes[1]
