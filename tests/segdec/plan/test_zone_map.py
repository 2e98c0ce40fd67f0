import numpy as np

from segdec.plan.mask_parts import MaskPart
from segdec.plan.zone_map import ZoneMap


def test_zone_map_knows_all_zones_of_a_pixel():
    random = np.random.default_rng(0)
    masks = [random.random((20, 30)) < 0.3 for _ in range(40)]
    zones = ZoneMap(masks, 20, 30)
    for row, column in random.integers(0, 19, (50, 2)).tolist():
        window = np.s_[row : row + 2, column : column + 1]
        part = MaskPart(window, np.array([[True], [False]]))
        assert set(zones.touched(part)) == {number for number, mask in enumerate(masks) if mask[row, column]}
    everywhere = MaskPart(np.s_[0:20, 0:30], np.ones((20, 30), np.bool_))
    assert set(zones.touched(everywhere)) == set(range(40))
    assert zones.touched(MaskPart(np.s_[0:1, 0:1], np.zeros((1, 1), np.bool_))) == []


def test_zones_with_most_pixels_come_first():
    masks = [np.zeros((4, 6), np.bool_) for _ in range(3)]
    masks[1][:, :4] = masks[2][:, 3:] = True
    part = MaskPart(np.s_[0:4, 0:6], np.ones((4, 6), np.bool_))
    assert ZoneMap(masks, 4, 6).touched(part) == [1, 2]
