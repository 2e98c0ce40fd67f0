"""Masks whose values are classes."""

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from datasets.annotations.drawn_mask import DrawnMask, Shape
from datasets.sample import IGNORED, VALUES_ARE_CLASSES, MaskValues
from segdec.errors import DatasetError

Mask = NDArray[np.uint8]

NAMED_VALUES = 6
"""Values that a message lists."""


class ReadMask(NamedTuple):
    """A mask whose values were classes; each map is uint8 [H, W]."""

    mask: Mask
    """255 for defect pixels."""
    classes: Mask | None
    """Class of the nearest defect pixel; None without defects."""
    ignored: Mask | None
    """255 for pixels of an unknown class; None without any."""


def read_classes(values: Mask, known: Sequence[tuple[int, int]], name: str) -> ReadMask:
    """Reads a mask [H, W] whose values are classes.

    `values` are uint8 [H, W], 0 for no defect. `known` are pairs of value and class; if empty, each value is
    the class index. The class `IGNORED` means that the class is unknown. Messages call the mask `name`.

    Raises:
        DatasetError: If the mask holds another value.
    """
    table = np.zeros(256, np.uint8) if known else np.arange(256, dtype=np.uint8)
    for value, number in known:
        table[value] = number
    if unknown := [value for value in distinct_values(values) if value and not table[value]]:
        raise DatasetError(
            f"The mask {name} holds the values {list_values(unknown)}, which are not classes. Expected 0 "
            f"and {list_values([value for value, _ in known])}: correct the mask, or add the value and its "
            "class to data.mask_values ('ignore' for pixels of unknown class)."
        )
    classes = np.asarray(cv2.LUT(values, table), np.uint8)
    ignored = classes == IGNORED
    classes[ignored] = 0
    mask = np.where(classes > 0, np.uint8(255), np.uint8(0))
    return ReadMask(mask, spread_classes(classes), ignored * np.uint8(255) if ignored.any() else None)


def draw_parts(
    name: str, height: int, width: int, parts: Sequence[tuple[int, Shape]]
) -> tuple[DrawnMask, MaskValues | None]:
    """Returns the mask of shapes and its `MaskValues`.

    With several classes, or ignored parts, the mask values are classes, and the smaller of two overlapping
    shapes is on top. With one class the mask values are 0 and 255. `parts` are class and shape of each
    defect, with the class `IGNORED` for ignored parts; `name` is file and entry of the annotation, `height`
    and `width` are those of the photograph, px.
    """
    labels = {label for label, _ in parts}
    if len(labels) == 1 and IGNORED not in labels:
        return DrawnMask(name, height, width, tuple(shape for _, shape in parts)), None
    ordered = sorted(parts, key=lambda part: -part[1].area_px)
    shapes, values = tuple(shape for _, shape in ordered), tuple(label for label, _ in ordered)
    return DrawnMask(name, height, width, shapes, values=values), VALUES_ARE_CLASSES


def spread_classes(classes: Mask) -> Mask | None:
    """Returns the class of the nearest pixel with a class, uint8 [H, W]; None without any."""
    held = np.unique(classes[classes > 0])
    if not held.size:
        return None
    if held.size == 1:
        return np.full(classes.shape, held[0], np.uint8)
    _, nearest = cv2.distanceTransformWithLabels(
        (classes == 0).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    numbered = np.asarray(nearest, np.int64)
    of_number = np.zeros(int(numbered.max()) + 1, np.uint8)
    of_number[numbered[classes > 0]] = classes[classes > 0]
    return np.asarray(of_number[numbered], np.uint8)


def box_classes(values: Mask) -> Mask:
    """Fills the bounding box of each connected part (8 neighbours) of each value, the smallest box last.

    Ignored parts become boxes like others.
    """
    boxes = []
    for value in np.unique(values[values > 0]).tolist():
        part = (values == value).view(np.uint8)
        _, _, stats, _ = cv2.connectedComponentsWithStats(part, connectivity=8)
        for left, top, width, height, _ in np.asarray(stats)[1:].tolist():  # the first is the background
            boxes.append((width * height, value, left, top, width, height))
    filled = np.zeros_like(values)
    for _, value, left, top, width, height in sorted(boxes, reverse=True):
        filled[top : top + height, left : left + width] = value
    return filled


def distinct_values(mask: Mask) -> list[int]:
    """Returns the values that occur in a mask [H, W], ascending."""
    return [int(value) for value in np.flatnonzero(cv2.calcHist([mask], [0], None, [256], [0, 256]))]


def list_values(values: Sequence[int]) -> str:
    """Returns the first values as text."""
    return ", ".join(map(str, values[:NAMED_VALUES])) + (", …" if len(values) > NAMED_VALUES else "")
