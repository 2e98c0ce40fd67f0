import numpy as np
import pytest
from scipy.stats import beta

from segdec.config import Calibration
from training.config import ThresholdConfig
from training.metrics.operating_points import find_operating_points, find_outcome_curve
from training.metrics.thresholds import ScoredPhotographs, ScoreThresholds, choose_score_thresholds

DEFAULTS = ThresholdConfig()


def scored(good, defective, groups=None):
    """Photographs with these log-odds, each of a part of its own unless groups are given."""
    odds = np.array([*good, *defective], np.float64)
    labels = np.repeat([0, 1], [len(good), len(defective)])
    return ScoredPhotographs(labels, odds, groups or tuple(str(place) for place in range(len(odds))))


def points_of(photographs, threshold=0.5, review=None, settings=DEFAULTS):
    """The points of a model whose scores need no calibration, by goal."""
    limits = ScoreThresholds(Calibration(), threshold, review)
    return {point.goal: point for point in find_operating_points(photographs, limits, settings)}


def counts(point):
    return tuple(share and (share.count, share.parts) for share in (point.rejected, point.missed))


OVERLAPPING = scored(-6 + 0.02 * np.arange(300), -2.99 + 0.04 * np.arange(200))


def test_points_of_overlapping_scores():
    points = points_of(OVERLAPPING)
    assert list(points) == ["chosen", "lowest cost", "at most 1 % rejected", "at most 1 % missed"]
    # 0.5: no good part is above 0; of the defective ones 75 are below.
    assert counts(points["chosen"]) == ((0, 300), (75, 200))
    # 1/11, log-odds −2.30: good ones from number 185 on, defective ones up to number 17.
    assert counts(points["lowest cost"]) == ((115, 300), (18, 200))
    # Three good parts may be above: between the good one at −0.08 and the defective one at −0.07.
    assert counts(points["at most 1 % rejected"]) == ((3, 300), (73, 200))
    assert (
        points["at most 1 % rejected"].threshold == 0.481
    )  # the shortest number between 0.48001 and 0.48251
    # Two defective parts may be below: between the good one at −2.92 and the defective one at −2.91.
    assert counts(points["at most 1 % missed"]) == ((145, 300), (2, 200))
    assert points["at most 1 % missed"].threshold == 0.0514


def test_intervals_are_exact_and_two_sided():
    rejected = points_of(OVERLAPPING)["at most 1 % rejected"].rejected
    assert rejected.value == 0.01
    assert (rejected.low, rejected.high) == pytest.approx(
        (beta.ppf(0.025, 3, 298), beta.ppf(0.975, 4, 297)), abs=1e-6
    )


def test_too_few_parts_are_noted():
    # 0.99 to the power of 368 is below 2.5 %, of 367 above.
    assert points_of(OVERLAPPING)["at most 1 % rejected"].note == (
        "300 good parts are too few to show 1 %: at least 368 are needed."
    )
    enough = points_of(scored(np.linspace(-6, -3, 368), [3.0]))
    assert enough["at most 1 % rejected"].note is None
    assert enough["at most 1 % missed"].note.startswith("1 defective part is too few to show 1 %")


def test_separable_scores_have_one_point():
    """No good part is rejected for nothing, although one of 100 may be."""
    points = points_of(scored(np.linspace(-6, -3, 100), np.linspace(3, 6, 100)))
    offered = [points[goal] for goal in list(points)[1:]]
    assert {point.threshold for point in offered} == {0.091}
    assert all(counts(point) == ((0, 100), (0, 100)) for point in offered)


def test_equal_scores_cannot_be_separated():
    points = points_of(scored([1.0] * 4, [1.0] * 5))
    assert counts(points["at most 1 % rejected"]) == ((0, 4), (5, 5))
    assert counts(points["at most 1 % missed"]) == ((4, 4), (0, 5))


def test_a_part_counts_by_its_worst_photograph():
    groups = ("a", "a", "b", "c", "c")
    points = points_of(scored([-2.0, 1.0, -2.0], [-1.0, 2.0], groups))
    assert counts(points["chosen"]) == ((1, 2), (1, 1))


def test_parts_for_review_are_not_missed():
    points = points_of(OVERLAPPING, threshold=0.5, review=0.1)  # log-odds −2.197
    assert counts(points["chosen"]) == ((0, 300), (20, 200))
    assert counts(points["lowest cost"]) == ((115, 300), (18, 200))


def test_good_parts_alone_have_no_misses():
    photographs = scored(np.linspace(-4, -2, 21), [])
    limits = choose_score_thresholds(photographs, DEFAULTS)
    chosen, strict = find_operating_points(photographs, limits, DEFAULTS)
    assert (chosen.goal, strict.goal) == ("chosen", "at most 1 % rejected")
    assert chosen.threshold == limits.threshold < strict.threshold
    assert (counts(chosen), counts(strict)) == (((1, 21), None), ((0, 21), None))
    assert strict.rejected.high == pytest.approx(1 - 0.025 ** (1 / 21))


@pytest.mark.parametrize(
    ("good", "defective", "shares"),
    [([], [], []), ([-1.0], [], [((0, 1), None)]), ([], [-1.0, 1.0], [(None, (1, 2))])],
)
def test_with_too_few_photographs_there_is_no_choice(good, defective, shares):
    assert [counts(point) for point in points_of(scored(good, defective)).values()] == shares


def test_the_lowest_cost_follows_the_cost_of_a_miss_and_the_defect_rate():
    cheap = points_of(OVERLAPPING, settings=ThresholdConfig(miss_cost=1.0))
    assert cheap["lowest cost"].threshold == 0.5
    limits = choose_score_thresholds(OVERLAPPING, ThresholdConfig(defect_rate=0.01))
    rare = {each.goal: each for each in find_operating_points(OVERLAPPING, limits, DEFAULTS)}
    assert rare["lowest cost"].rejected.count < points_of(OVERLAPPING)["lowest cost"].rejected.count
    assert counts(rare["chosen"]) == counts(rare["lowest cost"])
    for goal in ("at most 1 % rejected", "at most 1 % missed"):  # of the order of the scores alone
        assert counts(rare[goal]) == counts(points_of(OVERLAPPING)[goal])


@pytest.mark.parametrize("place", [-1e3, 1e3])
def test_thresholds_of_extreme_scores_are_valid_settings(place):
    for point in points_of(scored([place, place + 1], [place + 2])).values():
        assert ThresholdConfig(score=point.threshold).score == point.threshold


# === Curve ===


def test_the_curve_has_a_threshold_between_any_two_parts_and_the_given_ones():
    curve = find_outcome_curve(scored([-2.0, 0.0], [-1.0, 3.0]), Calibration(), [0.6, 0.9])
    assert (curve.good, curve.defective) == (2, 2)
    # Between 0.119 and 0.269, 0.269 and 0.5, 0.5 and 0.953; the given ones are 0.6 and 0.9.
    assert curve.scores == (0.19, 0.38, 0.6, 0.73, 0.9)
    assert (curve.rejected, curve.missed) == ((1, 1, 0, 0, 0), (0, 1, 1, 1, 1))


def test_the_curve_of_many_parts_is_short_and_fine_where_few_are_wrong():
    photographs = scored(np.linspace(-6, 2, 3000), np.linspace(-2, 6, 2000))
    curve = find_outcome_curve(photographs, Calibration(), [0.5])
    assert len(curve.scores) <= 200
    assert 0.5 in curve.scores
    rejected, missed = np.array(curve.rejected) / 3000, np.array(curve.missed) / 2000
    for shares in (rejected, missed):
        assert np.count_nonzero((shares > 0) & (shares < 0.01)) >= 3
    scores = 1 / (1 + np.exp(-photographs.good))
    assert curve.rejected == tuple(np.count_nonzero(scores >= score) for score in curve.scores)


def test_a_part_counts_once_in_the_curve():
    curve = find_outcome_curve(scored([-2.0, 1.0], [2.0, 4.0], ("a", "a", "b", "b")), Calibration(), [0.2])
    assert (curve.good, curve.defective, curve.rejected[0]) == (1, 1, 1)


def test_a_curve_needs_both_kinds():
    assert find_outcome_curve(scored([1.0], []), Calibration(), [0.5]) is None
    assert find_outcome_curve(scored([], [1.0]), Calibration(), [0.5]) is None


def test_a_point_states_the_expected_outcomes_at_the_defect_rate_in_use():
    """Without a rate that of these photographs: 300 good, 200 defective."""
    points = points_of(OVERLAPPING, threshold=0.5, review=0.1)
    expected = points["chosen"].expected
    assert expected.defect_rate == 0.4
    assert expected.missed.value == pytest.approx(400 * 20 / 200)
    assert points["lowest cost"].expected.review.value == 0
    limits = choose_score_thresholds(OVERLAPPING, ThresholdConfig(defect_rate=0.01))
    (chosen, *_) = find_operating_points(OVERLAPPING, limits, DEFAULTS)
    assert chosen.expected.defect_rate == 0.01
    assert points_of(scored([1.0, 2.0], []))["chosen"].expected is None
