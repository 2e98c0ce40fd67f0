"""Masks → what the segmentation network learns: a defective share and a weight for each mask pixel."""

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from training.config import TargetConfig


class Targets(NamedTuple):
    """What one image's mask logits are held against; s is the mask's stride.

    Attributes:
        share: float32 [h/s, w/s, 1], defective share of each mask pixel, 0…1.
        weight: float32 [h/s, w/s, 1], of each mask pixel's loss; 0 everywhere where no mask is known.
    """

    share: NDArray[np.float32]
    weight: NDArray[np.float32]


def build_targets(
    mask: NDArray[np.uint8] | None,
    shape: tuple[int, int],
    config: TargetConfig,
    stride: int,
    *,
    supervised: bool = True,
) -> Targets:
    """Makes both maps of one image.

    Args:
        mask: uint8 [h, w], above 0 where there is a defect; None where there is none, or none is known.
        shape: Rows and columns of the image, px, divisible by `stride`.
        config: How the mask is read.
        stride: Image pixels per mask pixel along each side.
        supervised: False for a defective image whose mask is not known.
    """
    size = shape[0] // stride, shape[1] // stride, 1
    if mask is None or not supervised:
        return Targets(np.zeros(size, np.float32), np.full(size, supervised, np.float32))
    grown = grow(mask, config.dilation_px)
    share = defective_share(grown, config.window_px or stride, stride)
    if config.weighting == "uniform":
        return Targets(share, np.ones(size, np.float32))
    return Targets(share, _cell_means(depth_weight(grown, config), stride))


def grow(mask: NDArray[np.uint8], dilation_px: int) -> NDArray[np.uint8]:
    """Returns the mask as 0 and 1, each defect grown by a diamond of `dilation_px`.

    Source: Tabernik et al. 2019: annotations are thin, cells are wide.
    """
    defective = (mask > 0).view(np.uint8)
    if dilation_px == 1:
        return defective
    diamond = cv2.getStructuringElement(cv2.MORPH_DIAMOND, (dilation_px, dilation_px))
    return np.asarray(cv2.dilate(defective, diamond), np.uint8)


def defective_share(defective: NDArray[np.uint8], window: int, stride: int) -> NDArray[np.float32]:
    """Measures the defective share of the square around the middle of each mask pixel's cell.

    With the stride as window that is the cell itself; Tabernik et al. 2019 take 17 px at stride 8. Only
    pixels within the image count.

    Args:
        defective: uint8 [h, w], 0 or 1.
        window: Side of the square, px. Of the two middles an odd one could have in an even cell it takes
            the later.
        stride: Side of a cell, px.

    Returns:
        float32 [h/s, w/s, 1].
    """
    if window == stride:
        return _cell_means(defective.astype(np.float32), stride)
    sums = np.asarray(cv2.integral(defective))  # [h + 1, w + 1]
    (top, bottom), (left, right) = (_window_edges(side, window, stride) for side in defective.shape)
    lower, upper = sums[bottom], sums[top]
    counts = lower[:, right] - lower[:, left] - upper[:, right] + upper[:, left]
    areas = np.outer(bottom - top, right - left)
    return (counts / areas).astype(np.float32)[..., None]


def _window_edges(side: int, window: int, stride: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First pixel of each window along a side, and the one after its last."""
    first = np.arange(0, side, stride) - (window - stride) // 2
    return first.clip(0, side), (first + window).clip(0, side)


def depth_weight(defective: NDArray[np.uint8], config: TargetConfig) -> NDArray[np.float32]:
    """Weighs each pixel by how deep it lies within its defect; background weighs 1.

    The distance to the background, relative to the largest one of the same defect, to the power of
    `distance_power`, times `positive_weight`. Source: Božič et al. 2021.

    Args:
        defective: uint8 [h, w], 0 or 1.
        config: Power and weight.

    Returns:
        float32 [h, w].
    """
    weight = np.ones(defective.shape, np.float32)
    left, top, width, height = cv2.boundingRect(defective)
    around = slice(max(0, top - 1), top + height + 1), slice(max(0, left - 1), left + width + 1)
    part = np.ascontiguousarray(defective[around])  # with its frame of background it holds all that counts
    inside = part > 0
    weight[around][inside] = config.positive_weight * _relative_depth(part, inside) ** config.distance_power
    return weight


def _relative_depth(defective: NDArray[np.uint8], inside: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Of each defect pixel, 1 where its defect is deepest."""
    if inside.all():  # no background, no distance to it
        return np.ones(inside.sum(), np.float32)
    distance = np.asarray(cv2.distanceTransform(defective, cv2.DIST_L2, cv2.DIST_MASK_PRECISE))[inside]
    count, components = cv2.connectedComponents(defective)
    owner = np.asarray(components, np.int64)[inside]
    deepest = np.ones(count, np.float32)
    np.maximum.at(deepest, owner, distance)
    relative: NDArray[np.float32] = distance / deepest[owner]
    return relative


def _cell_means(values: NDArray[np.float32], stride: int) -> NDArray[np.float32]:
    rows, columns = (side // stride for side in values.shape)
    if stride > 1:
        values = np.asarray(cv2.resize(values, (columns, rows), interpolation=cv2.INTER_AREA), np.float32)
    return values[..., None]
