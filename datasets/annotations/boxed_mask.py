"""A mask reduced to the boxes around its parts."""

from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from datasets.annotations.class_values import box_classes
from datasets.annotations.computed_mask import ComputedMask, within_limit
from segdec.images import ImageFile, decode_mask, decode_mask_values


@dataclass(frozen=True)
class BoxedMask(ComputedMask):
    """A mask with filled boxes around the parts of another mask."""

    mask: ImageFile
    threshold: int | None = 0
    """Pixels of `mask` are defective if their value is above this; None if its values are classes, which get
    separate boxes and keep their values."""
    classes: tuple[int, ...] = ()
    """These values, if known."""

    def __str__(self) -> str:
        return f"{self.mask} (as boxes)"

    @property
    def sources(self) -> tuple[ImageFile]:
        return (self.mask,)

    def within(self, max_pixels: int) -> "BoxedMask":
        return replace(self, mask=within_limit(self.mask, max_pixels), max_pixels=max_pixels)

    def draw(self) -> NDArray[np.uint8]:
        data, name = self.mask.read_bytes(), str(self.mask)
        if self.threshold is None:
            values = decode_mask_values(data, name, max_pixels=self.max_pixels, classes=self.classes)
            return box_classes(values)
        return fill_boxes(decode_mask(data, name, threshold=self.threshold, max_pixels=self.max_pixels))


def fill_boxes(mask: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Fills the bounding rectangle of each connected part (8 neighbours) of `mask` [H, W] with 255."""
    boxes = np.zeros_like(mask)
    _, _, parts, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    for left, top, width, height, _ in parts[1:]:  # the first is the background
        boxes[top : top + height, left : left + width] = 255
    return boxes
