"""Compressed run lengths of COCO."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segdec.errors import MissingExtraError


def encode_run_lengths(mask: NDArray[np.uint8]) -> str:
    """Returns the `counts` of a mask [H, W], above 0 = defect."""
    return str(_coco().encode(np.asfortranarray(mask > 0))["counts"].decode("ascii"))


def encode_box_run_lengths(box: NDArray[np.bool_], left: int, top: int, size: tuple[int, int]) -> str:
    """Returns the `counts` of a mask of `size` [H, W] that is defect only in a box [h, w] at `left`, `top`.

    It takes time in proportion to the box, not to the mask.
    """
    height, width = size
    rows, columns = np.nonzero(box)
    places = np.sort((columns + left) * height + rows + top)  # column by column
    breaks = np.flatnonzero(np.diff(places) != 1)
    begins = places[np.concatenate(([0], breaks + 1))]
    ends = places[np.concatenate((breaks, [len(places) - 1]))] + 1
    borders = np.concatenate(([0], np.stack([begins, ends], axis=1).ravel(), [height * width]))
    counts = np.diff(borders).tolist()
    if counts[-1] == 0:
        del counts[-1]
    packed = _coco().frPyObjects({"size": [height, width], "counts": counts}, height, width)
    return str(packed["counts"].decode("ascii"))


def _coco() -> Any:
    try:
        from pycocotools import mask as coco  # optional
    except ImportError as error:
        raise MissingExtraError("pycocotools", "batch") from error
    return coco


def decode_run_lengths(text: str) -> list[int]:
    """Decodes the run lengths in COCO's `counts`.

    Each character encodes five bits, low bits first, and whether more follow. From the fourth number on, only
    the difference to the number two before is stored. `pycocotools` is not used because it warns with NumPy
    2.

    Returns:
        Alternating runs of good and defect pixels; the caller checks that they fill the picture.

    Raises:
        ValueError: If a character is invalid, or a number is too large or incomplete.

    Reference:
        https://github.com/cocodataset/cocoapi, common/maskApi.c, `rleFrString`
    """
    counts: list[int] = []
    number = shift = 0
    for character in text:
        bits = ord(character) - ord("0")
        if not 0 <= bits < 64 or shift > 30:
            raise ValueError(f"the run lengths have an unexpected {character!r}")
        number |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:  # the sign
            number -= 1 << shift
        counts.append(number + (counts[-2] if len(counts) > 2 else 0))
        number = shift = 0
    if shift:
        raise ValueError("the run lengths end inside a number")
    return counts
