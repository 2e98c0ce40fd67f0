import numpy as np
import pytest

from training.synthesis.transplants import estimate_surface, transplant_defect


def spotted(value, offset, channels=1, size=(60, 60)):
    """A constant surface with a darker or brighter square, and its mask."""
    image, mask = np.full((*size, channels), value, np.uint8), np.zeros(size, np.uint8)
    image[20:36, 24:40] = value + offset
    mask[20:36, 24:40] = 255
    return image, mask


@pytest.mark.parametrize(("channels", "offset"), [(1, -40), (3, 30)])
def test_a_defect_adds_to_the_surface_what_it_added_to_its_own(channels, offset):
    """On a surface of 100 a square of 50 + 30 is one of 130: wherever it is, however it is turned."""
    defective, mask = spotted(90, offset, channels)
    good = np.full((80, 70, channels), 150, np.uint8)
    for seed in range(10):
        changed, moved = transplant_defect(good, defective, mask, np.random.default_rng(seed))
        inside = moved > 0
        assert set(np.unique(moved)) == {0, 255}
        added = changed.astype(int) - 150
        assert np.median(added[inside]) == pytest.approx(offset, abs=1)
        assert (added[inside] * np.sign(offset) >= 0).all()
        assert np.abs(added[inside]).max() <= abs(offset) + 1


def test_defects_keep_to_the_part():
    good, part = np.zeros((100, 100, 1), np.uint8), np.zeros((100, 100), np.bool_)
    part[30:80, 20:75] = True
    good[part] = 160
    for seed in range(10):
        pasted = transplant_defect(good, *spotted(90, 50), np.random.default_rng(seed))
        assert pasted is None or not pasted[1][~part].any()


def test_without_a_defect_or_room_for_it_there_is_none():
    defective, mask = spotted(90, 50)
    random = np.random.default_rng(0)
    assert transplant_defect(defective, defective, np.zeros_like(mask), random) is None
    assert transplant_defect(np.full((4, 4, 1), 100, np.uint8), defective, mask, random) is None


def test_a_hidden_surface_is_filled_from_around_it():
    """Where all is hidden it is the mean; a ramp is continued between its sides."""
    ramp = np.tile(np.arange(41, dtype=np.float32)[None, :, None], (41, 1, 1))
    hidden = np.zeros((41, 41), np.bool_)
    hidden[16:25, 16:25] = True
    filled = estimate_surface(ramp, hidden)
    assert filled[20, 20, 0] == pytest.approx(20.0, abs=0.1)
    np.testing.assert_allclose(estimate_surface(ramp, np.ones_like(hidden)), 20.0)


def test_of_several_defects_one_is_taken():
    """Pieces near each other are one."""
    good = np.full((96, 96, 1), 120, np.uint8)
    defective, mask = good.copy(), np.zeros((96, 96), np.uint8)
    for rows, level in ((slice(10, 14), 40), (slice(17, 20), 40), (slice(70, 90), 200)):
        defective[rows, 20:50] = level
        mask[rows, 20:50] = 255
    taken = set()
    for seed in range(20):
        changed, moved = transplant_defect(good, defective, mask, np.random.default_rng(seed))
        darker, brighter = (changed[moved > 0] < 100).any(), (changed[moved > 0] > 140).any()
        assert darker != brighter
        taken.add(bool(darker))
    assert taken == {True, False}
