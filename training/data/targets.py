"""Targets of the segmentation network: defective share and weight of each mask pixel."""

from dataclasses import replace
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from datasets.sample import Sample
from training.config import TargetConfig


class Targets(NamedTuple):
    """Defective share (0…1) and loss weight of each mask pixel, float32 [h/s, w/s, 1]; s is the stride.

    The weight is 0 if the mask is unknown or the pixel is ignored or not inspected.
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
    area: NDArray[np.uint8] | None = None,
) -> Targets:
    """Builds both maps of one image.

    Args:
        mask: uint8 [h, w], above 0 where there is a defect; None if there is none, or it is unknown.
        shape: Rows and columns of the image, px, divisible by `stride`.
        config: Dilation, windows and weights.
        stride: Image pixels per mask pixel along each side.
        supervised: False for a defective image whose mask is unknown.
        area: uint8 [h, w], above 0 where the image is inspected and not ignored; None = everywhere. Share
            and weight of a mask pixel are those of this part.
    """
    if area is not None:
        inside = None if mask is None else np.where(area > 0, mask, np.uint8(0))
        whole = build_targets(inside, shape, config, stride, supervised=supervised)
        return _within(whole, (area > 0).astype(np.float32), config, stride)
    size = shape[0] // stride, shape[1] // stride, 1
    if mask is None or not supervised:
        return Targets(np.zeros(size, np.float32), np.full(size, supervised, np.float32))
    dilated = dilate(mask, config) if config.dilation_at == "input" else (mask > 0).view(np.uint8)
    share = window_means(dilated.astype(np.float32), config, stride)
    if config.weighting == "uniform":
        return Targets(share, np.ones(size, np.float32))
    return Targets(share, window_means(depth_weight(dilated, config), config, stride))


def known_area(area: NDArray[np.uint8] | None, ignored: NDArray[np.uint8] | None) -> NDArray[np.uint8] | None:
    """Returns where an image is inspected and not ignored, uint8 [h, w], above 0; None = everywhere."""
    if ignored is None:
        return area
    return np.where(ignored > 0, np.uint8(0), np.uint8(255) if area is None else area)


def split_by_class(
    share: NDArray[np.float32],
    mask: NDArray[np.uint8] | None,
    label: int,
    config: TargetConfig,
    stride: int,
    masks: int,
    *,
    classes: NDArray[np.uint8] | None = None,
    area: NDArray[np.uint8] | None = None,
) -> NDArray[np.float32]:
    """Returns the defective share per class, float32 [h/s, w/s, masks]; `share` is that of all classes.

    For `ANY_DEFECT` each class gets the whole share. `classes` is the class of the nearest defect pixel,
    uint8 [h, w]; None = `label`. The other arguments are as in `build_targets`.
    """
    shares = np.zeros((*share.shape[:2], masks), np.float32)
    if mask is None or classes is None:
        shares[...] = share if label < 0 else 0.0
        if label > 0:
            shares[..., label - 1] = share[..., 0]
        return shares
    shape = mask.shape[0], mask.shape[1]
    dilated = dilate(mask, config) if config.dilation_at == "input" else mask
    for number in np.unique(classes[dilated > 0]).tolist():
        own = ((dilated > 0) & (classes == number)).view(np.uint8)
        undilated = config.model_copy(update={"dilation_px": 1})
        shares[..., number - 1] = build_targets(own, shape, undilated, stride, area=area).share[..., 0]
    return shares


def _within(targets: Targets, inside: NDArray[np.float32], config: TargetConfig, stride: int) -> Targets:
    """The targets of the inspected pixels `inside` [h, w], 0 or 1.

    A window's share is that of its inspected part, at most 1, since defects may be dilated beyond it.
    """
    coverage = window_means(inside, config, stride)
    share = np.minimum(targets.share / np.maximum(coverage, np.finfo(np.float32).eps), 1.0)
    share = np.where(coverage > 0, share, 0.0).astype(np.float32)
    return Targets(share, targets.weight * _cell_means(inside, stride))


def dilate(mask: NDArray[np.uint8], config: TargetConfig) -> NDArray[np.uint8]:
    """Returns the mask as 0 and 1, dilated by a shape of `dilation_px` (Tabernik et al. 2019)."""
    defective = (mask > 0).view(np.uint8)
    side = config.dilation_px
    if side == 1:
        return defective
    shape = cv2.MORPH_DIAMOND if config.dilation_shape == "diamond" else cv2.MORPH_RECT
    return np.asarray(cv2.dilate(defective, cv2.getStructuringElement(shape, (side, side))), np.uint8)


def dilate_sample(sample: Sample, config: TargetConfig) -> Sample:
    """Returns the sample with its mask dilated, if `dilation_at` is the photograph."""
    if sample.mask is None or config.dilation_at == "input":
        return sample
    return replace(sample, mask=dilate(sample.mask, config) * np.uint8(255))


def window_means(values: NDArray[np.float32], config: TargetConfig, stride: int) -> NDArray[np.float32]:
    """Averages over a square window around the centre of each mask pixel's cell.

    Without `window_px` the window is the cell. Tabernik et al. 2019 use 17 px at stride 8, clipped to the
    image; Božič et al. 2021 the same on an image reflected at its border.

    An odd window is centred on the later of the two middle pixels of an even cell. float32 [h, w] →
    [h/s, w/s, 1].
    """
    window = config.window_px or stride
    if window == stride:
        return _cell_means(values, stride)
    if config.window_border == "reflect":
        means = _box_means(values, window, cv2.BORDER_REFLECT_101)
    else:
        inside = _box_means(np.ones_like(values), window, cv2.BORDER_CONSTANT)
        means = _box_means(values, window, cv2.BORDER_CONSTANT) / inside
    first = window // 2 - (window - stride) // 2  # centre of the first window
    return np.ascontiguousarray(means[first::stride, first::stride, None])


def _box_means(values: NDArray[np.float32], window: int, border: int) -> NDArray[np.float32]:
    return np.asarray(cv2.blur(values, (window, window), borderType=border), np.float32)


def depth_weight(defective: NDArray[np.uint8], config: TargetConfig) -> NDArray[np.float32]:
    """Returns weights [h, w] that rise with the distance to the background, for defect pixels 0 or 1 [h, w].

    The weight is the distance relative to the maximum of the same defect, to the power of
    `distance_power`, times `positive_weight`; background has 1. Source: Božič et al. 2021.
    """
    weight = np.ones(defective.shape, np.float32)
    left, top, width, height = cv2.boundingRect(defective)
    around = slice(max(0, top - 1), top + height + 1), slice(max(0, left - 1), left + width + 1)
    part = np.ascontiguousarray(defective[around])  # includes a frame of background
    inside = part > 0
    weight[around][inside] = config.positive_weight * _relative_depth(part, inside) ** config.distance_power
    return weight


def _relative_depth(defective: NDArray[np.uint8], inside: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Relative distance of each defect pixel; 1 at the maximum of its defect."""
    if inside.all():  # there is no background
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
