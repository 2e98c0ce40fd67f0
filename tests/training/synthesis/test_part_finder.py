import numpy as np
import pytest

from training.synthesis.part_finder import find_part


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("part", "background"), [(160, 5), (60, 250)])
def test_a_part_on_a_plain_background_is_found(channels, part, background):
    image = np.full((60, 80, channels), background, np.uint8)
    image[10:50, 20:70] = part
    expected = np.zeros((60, 80), np.bool_)
    expected[10:50, 20:70] = True
    np.testing.assert_array_equal(find_part(image), expected)


def test_a_part_that_fills_the_photograph_has_no_background():
    random = np.random.default_rng(0)
    assert find_part(np.full((40, 40, 1), 90, np.uint8)) is None
    assert find_part(random.integers(80, 180, (40, 40, 1)).astype(np.uint8)) is None
    halves = np.zeros((40, 40, 1), np.uint8)
    halves[:, 20:] = 200
    assert find_part(halves) is None  # the border is as much of the one as of the other


def test_what_is_not_uniform_is_no_background():
    image = np.random.default_rng(0).integers(0, 80, (60, 60, 1)).astype(np.uint8)
    image[20:40, 20:40] = 220
    assert find_part(image) is None
