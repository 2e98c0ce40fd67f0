import numpy as np

from api.labelling.windows import MAX_WHOLE_PX, SIDE, Box, Window, list_windows


def test_a_small_photograph_is_one_window_at_full_resolution():
    assert list(list_windows(Box(3, 4, 5, 6), 800, 800)) == [Window(0, 0, 800, 800, 1)]


def test_windows_hold_the_box_grow_and_end_with_the_photograph():
    height, width = 6000, 10000
    for inside in (Box(0, 0, 1, 1), Box(9999, 5999, 10000, 6000), Box(5000, 3000, 5600, 3010)):
        windows = list(list_windows(inside, height, width))
        assert all(window.contains(inside) for window in windows)
        assert all(Box(0, 0, width, height).contains(window) for window in windows)
        assert windows[-1] == Window(0, 0, width, height, 16)
        reductions = [window.reduction for window in windows]
        assert reductions == sorted(set(reductions))
        for window in windows:
            pixels = window.reduced(np.zeros((height, width), np.uint8)).size
            assert pixels <= max(SIDE**2, MAX_WHOLE_PX)


def test_a_mask_is_cut_only_by_sides_inside_the_photograph():
    window = Window(0, 100, 50, 150, 1)
    mask = np.zeros((50, 50), np.uint8)
    mask[20, 0] = 1  # the left side is that of the photograph
    assert not window.is_cut(mask, 300, 300)
    mask[0, 20] = 1
    assert window.is_cut(mask, 300, 300)
