"""The order in which photographs are labelled."""

import numpy as np
import pytest

from api.data_sets import labelling_order
from api.data_sets.labelling_order import describe_photograph, order_photographs
from segdec.photograph_check import measure_photograph


def order(certainties, descriptions, labelled=()):
    """Returns the order of photographs that are described by a number or a vector."""
    own, known = ([np.atleast_1d(np.float64(one)) for one in each] for each in (descriptions, labelled))
    return order_photographs(certainties, own, known)


def test_the_most_uncertain_of_equally_different_photographs_is_the_first_one():
    assert order([3.0, 0.1, 2.0], np.eye(3))[0] == 1


def test_views_of_one_part_do_not_follow_each_other():
    parts = [0, 0.01, 0.02, 10, 10.01, 10.02, 20, 20.01, 20.02]
    first = order([1.0] * 9, parts)[:3]
    assert sorted(one // 3 for one in first) == [0, 1, 2]


def test_a_part_that_is_labelled_comes_last():
    assert order([1.0] * 3, [0, 10, 20], labelled=[10.1])[2] == 1
    assert order([1.0] * 2, [0, 10], labelled=[0]) == [1, 0]


def test_uncertainty_counts_more_than_a_small_difference():
    assert order([0.1, 4.0, 4.0], [1, 1.1, 1.5], labelled=[0])[0] == 0


def test_the_order_is_the_same_with_scores_twice_as_far_from_the_threshold():
    random = np.random.default_rng(0)
    certainties, vectors = random.exponential(size=40), random.normal(size=(40, 5))
    first = order(certainties.tolist(), vectors)
    assert order((2 * certainties).tolist(), vectors) == first
    assert sorted(first) == list(range(40))


def test_nothing_and_one_photograph():
    assert order([], []) == []
    assert order([2.0], [7]) == [0]
    assert order([0.0], [7], labelled=[7]) == [0]


@pytest.mark.parametrize("labelled", [[], [4, 4]])
def test_identical_photographs_are_ordered_by_doubt_and_then_by_position(labelled):
    assert order([2.0, 0.0, 2.0, 1.0], [4] * 4, labelled) == [1, 3, 0, 2]


def test_equally_useful_photographs_stay_in_their_order():
    assert order([1.0] * 4, np.eye(4)) == [0, 1, 2, 3]
    assert order([0.0] * 3, np.eye(3)) == [0, 1, 2]


def test_extreme_scores_and_elements_that_never_change_give_a_complete_order():
    vectors = [[5, 0, 1e-300], [5, 1, 0], [5, 0, 0], [5, 1e9, 0], [5, 0, 0]]
    found = order([1e300, 0.0, 1e-300, 700.0, 1e300], vectors, labelled=[[5, 0, 0]])
    assert sorted(found) == [0, 1, 2, 3, 4]
    assert found[-1] in (0, 4)


def test_beyond_the_compared_places_the_most_uncertain_comes_next(monkeypatch):
    monkeypatch.setattr(labelling_order, "MAX_COMPARED", 2)
    assert order([4.0, 3.0, 2.0, 1.0, 5.0], [0, 0, 0, 0, 9])[2:] == [2, 1, 0]


@pytest.mark.parametrize("channels", [1, 3])
def test_descriptions_are_finite_and_of_the_same_size_for_all_photographs(channels):
    random = np.random.default_rng(0)
    black, noise = (
        np.zeros((40, 40, channels), np.uint8),
        random.integers(0, 256, (64, 48, channels), np.uint8),
    )
    one, other = (describe_photograph(measure_photograph(image)) for image in (black, noise))
    assert one.shape == other.shape
    assert np.isfinite(one).all() and np.isfinite(other).all()
    assert np.abs(one - other).max() > 1
