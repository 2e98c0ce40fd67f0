import numpy as np
import pytest
from scipy.spatial.distance import cdist

from segdec.plan.distances import smallest_distance
from segdec.plan.mask_parts import connected_parts


def test_distances_equal_those_of_all_pairs_of_pixels():
    random = np.random.default_rng(0)
    for _ in range(30):
        mask = np.zeros((80, 90), np.bool_)
        for _ in range(4):
            y, x, height, width = random.integers((0, 0, 2, 2), (70, 80, 10, 10))
            mask[y : y + height, x : x + width] = True
        parts = connected_parts(mask)
        places = [np.argwhere(part.pixels) + [side.start for side in part.window] for part in parts]
        between = [cdist(one, other).min() for n, one in enumerate(places) for other in places[:n]]
        if between:
            assert smallest_distance(parts) == pytest.approx(min(between) - 1, abs=1.5)
        else:
            assert smallest_distance(parts) is None


def test_parts_that_share_a_pixel_have_no_distance():
    [part] = connected_parts(np.ones((3, 3), np.bool_))
    assert smallest_distance([part, part]) == 0.0
