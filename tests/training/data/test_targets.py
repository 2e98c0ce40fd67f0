"""Every number is worked out by hand, or pixel by pixel from its definition."""

import numpy as np
import pytest

from training.config import TargetConfig
from training.data.targets import build_targets, depth_weight, window_means


def build(mask, stride=8, **settings):
    targets = build_targets(mask, mask.shape, TargetConfig(**{"dilation_px": 1, **settings}), stride)
    return targets.share[..., 0], targets.weight[..., 0]


def test_target_is_the_share_of_each_cell():
    mask = np.zeros((16, 24), np.uint8)
    mask[0:4, 8:16] = 255  # half of the upper middle cell
    mask[8:16, 16:24] = 255  # the whole lower right cell
    share, weight = build(mask)
    assert share.tolist() == [[0.0, 0.5, 0.0], [0.0, 0.0, 1.0]]
    assert weight.tolist() == [[1.0] * 3] * 2


def test_dilation_grows_a_diamond():
    mask = np.zeros((16, 16), np.uint8)
    mask[4, 4] = 255  # a 5 px diamond holds 1 + 4 + 8 = 13 pixels
    assert build(mask, dilation_px=5)[0][0, 0] == np.float32(13 / 64)
    assert build(mask, dilation_px=5, dilation_shape="square")[0][0, 0] == np.float32(25 / 64)
    assert build(mask)[0][0, 0] == np.float32(1 / 64)


def test_windows_overlap_and_count_pixels_within_the_image_alone():
    # 17 px at stride 8: rows and columns −4…12, 4…20 and 12…28 of a side of 24 px.
    defective = np.zeros((24, 24), np.float32)
    defective[0:5, 8:24] = 1
    share = window_means(defective, TargetConfig(window_px=17), 8)[..., 0]
    row = [5 * 5 / (13 * 13), 5 * 13 / (13 * 17), 5 * 12 / (13 * 12)]
    np.testing.assert_allclose(share[0], row, rtol=1e-6)
    lower = [1 * 5 / (17 * 13), 1 * 13 / (17 * 17), 1 * 12 / (17 * 12)]
    np.testing.assert_allclose(share[1], lower, rtol=1e-6)
    assert not share[2].any()


def means_by_definition(values, window, stride):
    """Each window is around a cell's middle; pixels beyond the image are reflected about its last row."""
    margin = window  # more than any window needs
    padded = np.pad(values.astype(float), margin, mode="reflect")
    first = margin + stride // 2 - window // 2
    windows = np.lib.stride_tricks.sliding_window_view(padded, (window, window))
    means = windows[first::stride, first::stride].mean(axis=(2, 3))
    return means[: values.shape[0] // stride, : values.shape[1] // stride]


@pytest.mark.parametrize(("window", "stride"), [(17, 8), (9, 4), (5, 8), (3, 1)])
def test_windows_may_see_the_image_reflected(window, stride):
    values = np.random.default_rng(0).uniform(0, 3, (24, 40)).astype(np.float32)
    config = TargetConfig(window_px=window, window_border="reflect")
    np.testing.assert_allclose(
        window_means(values, config, stride)[..., 0], means_by_definition(values, window, stride), rtol=1e-5
    )


def depth_by_definition(defective):
    """Distance of each pixel to the nearest one of the background, by looking at all of them."""
    background = np.argwhere(defective == 0)
    distance = np.zeros(defective.shape)
    for row, column in np.argwhere(defective):
        distance[row, column] = np.sqrt(((background - (row, column)) ** 2).sum(axis=1).min())
    return distance / distance.max()


def test_targets_and_weights_of_bozic_et_al():
    """A square dilation of 7, distance weights, and means of 17 px with reflected borders of both."""
    mask = np.zeros((32, 24), np.uint8)
    mask[0:6, 3:8] = 255
    grown = np.zeros(mask.shape)
    grown[0:9, 0:11] = 1
    weights = np.where(grown == 1, 3.0 * depth_by_definition(grown) ** 2, 1.0)
    settings = {"dilation_px": 7, "dilation_shape": "square", "window_px": 17, "window_border": "reflect"}
    share, weight = build(mask, **settings, weighting="distance", distance_power=2.0, positive_weight=3.0)
    np.testing.assert_allclose(share, means_by_definition(grown, 17, 8), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(weight, means_by_definition(weights, 17, 8), rtol=1e-5)


def test_depth_counts_from_the_background_of_each_defect_apart():
    defective = np.zeros((16, 16), np.uint8)
    defective[2:7, 2:7] = 1  # 5×5: depths 1, 2, 3
    defective[10, 10] = 1  # alone: depth 1 is its largest
    weight = depth_weight(defective, TargetConfig(positive_weight=4.0, distance_power=2.0))
    np.testing.assert_allclose(weight[4, 1:8], [1, 4 / 9, 16 / 9, 4, 16 / 9, 4 / 9, 1], rtol=1e-6)
    assert (weight[10, 10], weight[0, 0]) == (4.0, 1.0)


@pytest.mark.parametrize("weighting", ["uniform", "distance"])
def test_an_unknown_mask_has_no_weight(weighting):
    config = TargetConfig(weighting=weighting, positive_weight=3.0)
    good = build_targets(None, (16, 8), config, 4)
    assert good.share.shape == good.weight.shape == (4, 2, 1)
    assert not good.share.any()
    assert (good.weight == 1.0).all()
    unknown = build_targets(None, (16, 8), config, 4, supervised=False)
    assert not unknown.weight.any()
    assert unknown.weight.dtype == np.float32
