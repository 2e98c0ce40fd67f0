"""Copies a defect from one image to another, as a difference from the surface."""

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from training.synthesis.defect_shapes import clip_window
from training.synthesis.fills import Image, Pixels, smooth
from training.synthesis.part_finder import find_inspected_part

Mask = NDArray[np.uint8]

MAX_TRIES = 12
"""Number of positions that are tried."""

MIN_VISIBLE_SHARE = 0.5
"""Minimum share of the moved defect on the part and within the image."""

FEATHER_PX = 1.5
"""Standard deviation of the blur that hides the seam."""

MAX_SCALE = 1.4
"""Maximum factor by which a defect is enlarged or reduced."""

MERGE_PX = 9
"""Pieces of a mask within this distance are one defect."""

ESTIMATE_PX = 192
"""Longest side of the reduced image on which a surface is estimated: wide blurs are slow."""


def transplant_defect(
    good: Image, defective: Image, mask: Mask, random: np.random.Generator, area: Mask | None = None
) -> tuple[Image, Mask] | None:
    """Copies a defect to a good image, flipped, rotated, scaled and moved.

    The surface below the defect is estimated from its surroundings on both images. The difference between
    the defect and its estimate is added to the estimate on the good image.

    Args:
        good: uint8 [h, w, C].
        defective: uint8 [·, ·, C].
        mask: uint8 [·, ·] of `defective`, above 0 where the defect is.
        random: Generator of all random numbers.
        area: uint8 [h, w], above 0 where the good image is inspected; None = everywhere.

    Returns:
        The good image with the defect and its mask, uint8 [h, w], 255 or 0; None if there is no defect, or no
        position where enough of it is visible.
    """
    if not mask.any():
        return None
    added, defect = _cut_out(defective, _choose_defect(mask, random))
    added, defect = _transform(added, defect, random)
    if not defect.any():
        return None
    part = find_inspected_part(good, area)
    height, width = good.shape[:2]
    for _ in range(MAX_TRIES):
        middle = int(random.integers(height)), int(random.integers(width))
        there, here = clip_window(good.shape, middle, defect.shape)
        seen = defect[here] if part is None else defect[here] * part[there]
        if np.count_nonzero(seen) >= max(1.0, MIN_VISIBLE_SHARE * np.count_nonzero(defect)):
            return _add(good, there, added[here], seen)
    return None


def estimate_surface(pixels: Pixels, hidden: NDArray[np.bool_]) -> Pixels:
    """Returns pixels [h, w, C] with the `hidden` ones [h, w] replaced by a smooth mean of their surroundings.

    If all are hidden, the result is the mean everywhere.
    """
    if hidden.all():
        return np.broadcast_to(pixels.mean(axis=(0, 1)), pixels.shape).astype(np.float32)
    known = (~hidden).astype(np.float32)[..., None]
    factor = min(1.0, ESTIMATE_PX / max(hidden.shape))
    depth = float(cv2.distanceTransform(hidden.view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE).max())
    sigma = max(2.0, factor * depth)
    share = smooth(_resize(known, factor), sigma)
    sums = smooth(_resize(pixels * known, factor), sigma)
    # Far from all known pixels the estimate is their mean.
    middle = pixels[~hidden].mean(axis=0)
    estimate = np.asarray((sums + 1e-4 * middle) / (share + 1e-4), np.float32)
    whole = cv2.resize(estimate, hidden.shape[::-1], interpolation=cv2.INTER_LINEAR)
    return np.asarray(whole, np.float32).reshape(pixels.shape)


def _resize(pixels: Pixels, factor: float) -> Pixels:
    height, width, channels = pixels.shape
    size = max(1, round(factor * width)), max(1, round(factor * height))
    small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.float32).reshape(size[1], size[0], channels)


def _choose_defect(mask: Mask, random: np.random.Generator) -> Mask:
    """One of the defects of the mask, uniformly."""
    near = cv2.dilate((mask > 0).view(np.uint8), np.ones((MERGE_PX, MERGE_PX), np.uint8))
    count, pieces = cv2.connectedComponents(near)
    if count == 2:
        return mask
    return np.where(np.asarray(pieces) == random.integers(1, count), mask, 0).astype(np.uint8)


def _cut_out(image: Image, mask: Mask) -> tuple[Pixels, Mask]:
    """The difference from the surface in a window around the defect, and its mask there, 0 and 1."""
    left, top, width, height = cv2.boundingRect((mask > 0).view(np.uint8))
    margin = 8 + max(width, height) // 2
    rows = slice(max(0, top - margin), top + height + margin)
    columns = slice(max(0, left - margin), left + width + margin)
    hidden = mask[rows, columns] > 0
    pixels = image[rows, columns].astype(np.float32)
    added = pixels - estimate_surface(pixels, hidden)
    frame = slice(max(0, top - 4) - rows.start, top + height + 4 - rows.start)
    sides = slice(max(0, left - 4) - columns.start, left + width + 4 - columns.start)
    return added[frame, sides], hidden[frame, sides].view(np.uint8)


def _transform(added: Pixels, defect: Mask, random: np.random.Generator) -> tuple[Pixels, Mask]:
    """Flips, rotates and scales both into a window that contains the whole defect."""
    if random.random() < 0.5:
        added, defect = added[:, ::-1], defect[:, ::-1]
    angle = random.uniform(0.0, 360.0)
    scale = math.exp(random.uniform(-1.0, 1.0) * math.log(MAX_SCALE))
    rows, columns = defect.shape
    side = math.ceil(scale * math.hypot(rows, columns)) + 2
    middle = np.array([(columns - 1) / 2.0, (rows - 1) / 2.0])
    matrix = np.asarray(cv2.getRotationMatrix2D((middle[0], middle[1]), angle, scale), np.float64)
    matrix[:, 2] = matrix[:, 2] + (side - 1) / 2.0 - middle
    turned = cv2.warpAffine(
        np.ascontiguousarray(added), matrix, (side, side), borderMode=cv2.BORDER_REPLICATE
    )
    moved = cv2.warpAffine(np.ascontiguousarray(defect) * np.uint8(255), matrix, (side, side))
    shape = (side, side, added.shape[2])
    return np.asarray(turned, np.float32).reshape(shape), (np.asarray(moved, np.uint8) >= 64).view(np.uint8)


def _add(good: Image, there: tuple[slice, slice], added: Pixels, seen: Mask) -> tuple[Image, Mask]:
    """The good image with the defect added; the blended edge is just outside the mask."""
    changed, mask = good.copy(), np.zeros(good.shape[:2], np.uint8)
    mask[there] = seen * np.uint8(255)
    pixels = good[there].astype(np.float32)
    around = _widen(there[0], seen.shape[0] // 2), _widen(there[1], seen.shape[1] // 2)
    inner = tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(there, around, strict=True))
    surface = estimate_surface(good[around].astype(np.float32), mask[around] > 0)[inner]
    opacity = np.maximum(seen, smooth(seen[..., None].astype(np.float32), FEATHER_PX)[..., 0])[..., None]
    blended = pixels + opacity * (surface + added - pixels)
    changed[there] = np.rint(np.clip(blended, 0.0, 255.0)).astype(np.uint8)
    return changed, mask


def _widen(part: slice, margin_px: int) -> slice:
    return slice(max(0, part.start - margin_px), part.stop + margin_px)
