"""Masks of annotations: PNG of the photograph's size, one channel, each value the number of a class."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from api.data_sets.names import IGNORE
from api.data_sets.new_file import NewFile
from api.errors import RequestError
from segdec.config import GOOD
from segdec.images import decode_mask_values, encode_png

NAME = "The mask"
IGNORED = 255
"""Value of areas whose class is unknown: training and pixel metrics leave them out."""


def read_class_mask(
    data: bytes, height: int, width: int, label: str | None, classes: Sequence[str]
) -> NewFile | None:
    """Reads the mask that a client sent for a label; None if it is empty. Slow, so call it in a thread.

    `data` is a grey PNG: 0 = good, 1 = the first class of the data set, …, 255 = ignored area; `height` and
    `width` are those of the upright photograph, px. The label None is withdrawn.

    Raises:
        RequestError: 400 if it is not a mask of this photograph, or contradicts the label.
        ImageError: If the file is damaged or has more pixels than the photograph.
    """
    numbers = range(1, len(classes) + 1)
    pixels = decode_mask_values(data, NAME, max_pixels=height * width, classes=[*numbers, IGNORED])
    if pixels.shape != (height, width):
        raise _bad_mask(f"is {pixels.shape[1]} × {pixels.shape[0]} px. Expected {width} × {height}.")
    return make_class_mask(pixels, label, classes)


def make_class_mask(pixels: NDArray[np.uint8], label: str | None, classes: Sequence[str]) -> NewFile | None:
    """Returns the file of a mask uint8 [H, W]; None if it is empty. The rest as in `read_class_mask`."""
    values = set(np.flatnonzero(np.bincount(pixels.reshape(-1), minlength=256)).tolist()) - {0}
    defects = values - {IGNORED}
    if unknown := sorted(defects - set(range(1, len(classes) + 1))):
        known = ", ".join(f"{number} = {name}" for number, name in enumerate(classes, 1))
        raise _bad_mask(f"has the value {unknown[0]}. Expected 0 = {GOOD}, {known}, {IGNORED} = ignored.")
    if label in (None, IGNORE):
        if values:
            raise _bad_mask(f"marks areas, but the label is '{label or ''}'. Send the label without a mask.")
    elif label == GOOD:
        if defects:
            raise _bad_mask(
                f"has defect pixels, but the label is '{GOOD}'. Expected mask and label to agree."
            )
    elif label not in {classes[number - 1] for number in defects}:
        raise _bad_mask(f"has no pixel of the label '{label}'. Expected mask and label to agree.")
    if not values:
        return None
    return NewFile(encode_png(pixels), "png", pixels.shape[1], pixels.shape[0])


def _bad_mask(what: str) -> RequestError:
    return RequestError(400, "bad_mask", f"{NAME} {what}")
