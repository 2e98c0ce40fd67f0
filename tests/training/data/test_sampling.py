import numpy as np
import pytest

from segdec.errors import DatasetError
from training.data.sampling import draw_order, frequency_log_weights

IN_TURN = ["alternate", "frequency"]


@pytest.mark.parametrize("sampling", IN_TURN)
@pytest.mark.parametrize(("good", "defective"), [(9, 2), (2, 9), (1, 1)])
def test_half_of_the_draws_are_defective(sampling, good, defective):
    labels = np.array([0] * good + [1] * defective)
    drawn = labels[draw_order(sampling, labels, 40, [0])]
    assert drawn.tolist() == [1, 0] * 20


def test_every_image_comes_once_before_one_comes_twice():
    labels = [0, 1, 0, 0, 1, 0]
    order = draw_order("alternate", labels, 8, [3])
    assert sorted(order[1::2]) == [0, 2, 3, 5]
    assert sorted(order[0:4:2]) == [1, 4] == sorted(order[4::2])
    order = draw_order("shuffled", labels, 12, [3])
    assert sorted(order[:6]) == [0, 1, 2, 3, 4, 5] == sorted(order[6:])


@pytest.mark.parametrize("sampling", ["alternate", "shuffled"])
def test_rounds_differ(sampling):
    order = draw_order(sampling, [1] + [0] * 20, 84, [0])
    order = order[order != 0]
    assert order[:20].tolist() != order[20:40].tolist()


@pytest.mark.parametrize("sampling", IN_TURN)
def test_defect_classes_take_turns(sampling):
    labels = np.array([0, 0, 1, 1, 1, 1, 2, 3])
    drawn = labels[draw_order(sampling, labels, 12, [0])]
    assert drawn[::2].tolist() == [1, 2, 3, 1, 2, 3]


def test_frequency_draws_the_rarer_ones_rather_and_none_twice_in_a_round():
    """Six rounds of 10 of 40: equally likely draws would leave 0.75⁶ of them, 7 of 40, out."""
    labels = [1] * 10 + [0] * 40
    good = draw_order("frequency", labels, 120, [0])[1::2]
    counts = np.bincount(good, minlength=50)[10:]
    assert counts.sum() == 60
    assert counts.min() >= 1
    assert counts.max() <= 3
    assert all(len(set(good[start : start + 10])) == 10 for start in range(0, 60, 10))
    first, second = (set(good[start : start + 40]) for start in (0, 20))
    assert first != second  # drawn, not gone through


def test_whoever_was_drawn_waits_for_the_others():
    """Of 40 the exponent is 4 · ln 40 = 14.8: 2^14.8 = 28,000 times as likely is one not drawn so far."""
    labels = [1] * 10 + [0] * 40
    good = draw_order("frequency", labels, 80, [5])[1::2]
    assert sorted(good) == list(range(10, 50))


@pytest.mark.parametrize(
    "counts", [[0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 1, 0, 0], [3, 2, 2, 1, 1, 4], [2, 2, 2], [5]]
)
def test_weights_are_the_published_ones(counts):
    """(1 − f/max − median + 1)^(4 · ln N), the median being that of 1 − f/max (Božič et al. 2021)."""
    used = np.array(counts) / max(1, *counts)
    expected = (1 - used - np.median(1 - used) + 1) ** (4 * np.log(len(counts)))
    np.testing.assert_allclose(np.exp(frequency_log_weights(np.array(counts))), expected, rtol=1e-12)


def test_a_draw_follows_the_weights():
    """One of two good images, twice: (0.5 / 1.5)^(4 · ln 2) = 1/21, so that 1 of 22 times it is the same."""
    pairs = [draw_order("frequency", [1, 0, 0], 4, [seed])[1::2] for seed in range(1000)]
    assert sum(first == 1 for first, _ in pairs) == pytest.approx(500, abs=50)
    assert sum(first == second for first, second in pairs) == pytest.approx(1000 / 22, abs=20)


def test_fewer_good_images_than_defective_ones_are_gone_through_whole():
    good = draw_order("frequency", [0] * 3 + [1] * 10, 12, [0])[1::2]
    assert sorted(good[:3]) == [0, 1, 2] == sorted(good[3:])


@pytest.mark.parametrize("sampling", [*IN_TURN, "shuffled"])
def test_order_is_a_function_of_the_seed_and_longer_runs_continue_it(sampling):
    labels = [0] * 7 + [1] * 5
    short, again, long = (draw_order(sampling, labels, draws, [1, 2]) for draws in (20, 20, 60))
    assert short.tolist() == again.tolist() == long[:20].tolist()
    assert short.tolist() != draw_order(sampling, labels, 20, [1, 3]).tolist()


@pytest.mark.parametrize(("labels", "missing"), [([0, 0], "defective"), ([1, 2], "good"), ([], "defective")])
def test_one_sided_data_is_an_error(labels, missing):
    with pytest.raises(DatasetError, match=f"none is {missing}"):
        draw_order("alternate", labels, 4, [0])
