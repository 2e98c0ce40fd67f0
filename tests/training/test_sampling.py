import numpy as np
import pytest

from segdec.errors import DatasetError
from training.sampling import balanced_order


@pytest.mark.parametrize(("good", "defective"), [(9, 2), (2, 9), (1, 1)])
def test_half_of_the_draws_are_defective(good, defective):
    labels = np.array([0] * good + [1] * defective)
    drawn = labels[balanced_order(labels, 40, [0])]
    assert drawn.tolist() == [1, 0] * 20


def test_every_image_comes_once_before_one_comes_twice():
    labels = [0, 1, 0, 0, 1, 0]
    order = balanced_order(labels, 8, [3])
    assert sorted(order[1::2]) == [0, 2, 3, 5]
    assert sorted(order[0:4:2]) == [1, 4] == sorted(order[4::2])


def test_rounds_differ():
    order = balanced_order([1] + [0] * 20, 80, [0])[1::2]
    assert order[:20].tolist() != order[20:].tolist()


def test_defect_classes_take_turns():
    labels = np.array([0, 0, 1, 1, 1, 1, 2, 3])
    drawn = labels[balanced_order(labels, 12, [0])]
    assert drawn[::2].tolist() == [1, 2, 3, 1, 2, 3]


def test_order_is_a_function_of_the_seed_and_longer_runs_continue_it():
    labels = [0] * 7 + [1] * 5
    short, again, long = (balanced_order(labels, draws, [1, 2]) for draws in (20, 20, 60))
    assert short.tolist() == again.tolist() == long[:20].tolist()
    assert short.tolist() != balanced_order(labels, 20, [1, 3]).tolist()


@pytest.mark.parametrize(("labels", "missing"), [([0, 0], "defective"), ([1, 2], "good"), ([], "defective")])
def test_one_sided_data_is_an_error(labels, missing):
    with pytest.raises(DatasetError, match=f"none is {missing}"):
        balanced_order(labels, 4, [0])
