"""Annotations of photographs with an EXIF rotation: drawn on the stored or on the rotated picture.

Photographs are read upright. Some annotation tools ignore the EXIF orientation. The size in an annotation
shows that only if the rotation swaps height and width; otherwise the annotation is read as drawn on the
rotated picture, and a warning says so. If sizes or edges of annotations show the opposite, the warning
proposes the option.
"""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from enum import IntEnum

import cv2
import numpy as np
from numpy.typing import NDArray

from datasets.annotations.computed_mask import ComputedMask
from datasets.annotations.rotated_mask import RotatedMask
from datasets.problems import list_names
from datasets.reading_options import BEFORE_ROTATION
from datasets.sample import Dataset, DataSetItem, LazyItems, Sample
from segdec.errors import DatasetError, ImageError
from segdec.images import MAX_PIXEL_LIMIT, ImageFile, ImageHeader, read_file, read_header, resize_mask
from segdec.imaging.decoders import upright

MAX_SIDE = 512
"""Longest side of a photograph in which edges are compared, px; larger ones are shrunk."""

MAX_P_VALUE = 0.05
"""Significance of the sign test: 5 of 5 annotations, 7 of 8, 15 of 20."""

RING_PX = (2, 6)
"""Distance of the pixels around an annotation from its edge, px, minimum and maximum."""

Mask = NDArray[np.uint8]


class Evidence(IntEnum):
    """What shows whether an annotation was drawn before or after the EXIF rotation of its photograph."""

    NOT_NEEDED = 0
    """There is no rotation or no annotation, or it is known."""
    SIZE = 1
    """Its size is that of the rotated picture."""
    NONE = 2
    EDGES_AFTER = 3
    EDGES_BEFORE = 4


# === The option ===


def apply_rotation(dataset: Dataset, *, before: bool) -> Dataset:
    """Returns the data set with masks that were drawn `before` or after the EXIF rotation of photographs.

    Raises:
        DatasetError: If masks are to be rotated, but are packed in shards.
    """
    if isinstance(dataset.items, LazyItems):
        if not before:
            return dataset
        raise DatasetError(
            "Masks in shards belong to the rotated photographs, so data.annotations_before_rotation has no "
            "meaning for them. Give --annotations-before-rotation to python -m datasets pack instead."
        )
    known = [replace(item, drawn_on="upright") for item in dataset.items]
    if not before:
        return replace(dataset, items=tuple(known))
    unknown = [item.mask_file is not None and item.drawn_on != "upright" for item in dataset.items]
    with ThreadPoolExecutor() as pool:
        rotated = pool.map(lambda item, rotate: _rotated(item) if rotate else item, known, unknown)
        return replace(dataset, items=tuple(rotated))


def _rotated(item: DataSetItem) -> DataSetItem:
    """The item with a rotated mask; unreadable files are reported when they are checked."""
    mask = item.mask_file
    assert mask is not None
    try:
        photograph = _read_header(item.image_file)
        has_own = not isinstance(mask, ComputedMask) and _read_header(mask).orientation != 1
    except ImageError:
        return item
    if photograph.orientation == 1 or has_own:
        return item
    classes = None if item.mask_values is None else tuple(value for value, _ in item.mask_values)
    return replace(item, mask_file=RotatedMask(mask, photograph, classes))


def _read_header(file: ImageFile) -> ImageHeader:
    return read_header(read_file(file), str(file), max_pixels=MAX_PIXEL_LIMIT)


# === Evidence ===


def find_evidence(item: DataSetItem, sample: Sample) -> Evidence:
    """Finds out whether the mask of an item fits its photograph better with or without its EXIF rotation."""
    if sample.orientation == 1 or item.drawn_on == "upright":
        return Evidence.NOT_NEEDED
    drawn = _drawn(sample)
    if not drawn.any():
        return Evidence.NOT_NEEDED
    height, width = drawn.shape
    if sample.orientation >= 5 and height != width:
        if item.drawn_on == "size":
            return Evidence.SIZE
        if item.drawn_on == "pixels":  # those beyond the edge are already cut off
            return Evidence.NONE
        before = upright(resize_mask(drawn, width, height), sample.orientation)
    else:
        before = upright(drawn, sample.orientation)
    scale = min(1.0, MAX_SIDE / max(height, width))
    small_height, small_width = round(height * scale) or 1, round(width * scale) or 1
    image = cv2.resize(sample.image, (small_width, small_height), interpolation=cv2.INTER_AREA)
    gradient = _gradient(np.asarray(image, np.uint8))
    contrast_after, contrast_before = (
        _edge_contrast(gradient, resize_mask(mask, small_height, small_width)) for mask in (drawn, before)
    )
    if contrast_after == contrast_before:
        return Evidence.NONE
    return Evidence.EDGES_BEFORE if contrast_before > contrast_after else Evidence.EDGES_AFTER


def _drawn(sample: Sample) -> Mask:
    """The pixels of defects and ignored areas."""
    drawn = np.zeros(sample.image.shape[:2], np.uint8)
    for mask in (sample.mask, sample.ignored):
        drawn = drawn if mask is None else np.maximum(drawn, mask)
    return drawn


def _gradient(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The magnitude of the gradient, [H, W]."""
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) if image.ndim == 3 else image
    smooth = cv2.GaussianBlur(grey.astype(np.float32), (0, 0), 1)
    x, y = (cv2.Sobel(smooth, cv2.CV_32F, *axis) for axis in ((1, 0), (0, 1)))
    return np.hypot(x, y).astype(np.float32)


def _edge_contrast(gradient: NDArray[np.float32], mask: Mask) -> float:
    """Mean gradient along the edge of a mask minus that around it, since good surface has edges, too."""
    square = np.ones((3, 3), np.uint8)
    near, far = (cv2.dilate(mask, square, iterations=distance) for distance in RING_PX)
    edge = (cv2.dilate(mask, square) > 0) & (cv2.erode(mask, square) == 0)
    along, around = gradient[edge], gradient[(far > 0) & (near == 0)]
    return float(along.mean() if along.size else 0) - float(around.mean() if around.size else 0)


# === The warning ===


def describe_rotation(evidence: Mapping[str, Evidence], sized_before: Sequence[str]) -> list[str]:
    """Returns a warning about annotations that may have been drawn before the EXIF rotation.

    `evidence` is that of each photograph, by name; `sized_before` are photographs whose annotation has the
    size of the stored picture. The warning proposes the option if sizes show it, or, if no size shows
    anything, by a one-sided sign test (p ≤ 0.05) with the edges of at least five annotations.
    """
    names = [name for name, found in evidence.items() if found >= Evidence.NONE]
    if not names:
        return []
    text = (
        "Photographs with an EXIF rotation, and annotations that do not show whether they were drawn before "
        f"it: {list_names(names)}. The annotations were read as drawn on the rotated photographs. "
    )
    sized_after = sum(found == Evidence.SIZE for found in evidence.values())
    if sized_before and not sized_after:
        reason = f"annotations of other photographs have the size before it, {list_names(sized_before)}"
        return [f"{text}But {reason}: give {BEFORE_ROTATION}."]
    votes = [evidence[name] == Evidence.EDGES_BEFORE for name in names if evidence[name] != Evidence.NONE]
    if not sized_after and _sign_test(sum(votes), len(votes)) <= MAX_P_VALUE:
        reason = f"the edges of {sum(votes)} of {len(votes)} annotations fit the photographs better before it"
        return [f"{text}But {reason}: look at some, and give {BEFORE_ROTATION}."]
    return [f"{text}If the annotation tool ignores the rotation, give {BEFORE_ROTATION}."]


def _sign_test(successes: int, trials: int) -> float:
    """The probability of at least so many successes if both outcomes are equally likely."""
    return float(sum(math.comb(trials, number) for number in range(successes, trials + 1)) / 2**trials)
