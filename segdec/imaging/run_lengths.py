"""COCO's packed run lengths: masks → letters → numbers."""

import numpy as np
from numpy.typing import NDArray

from segdec.errors import MissingExtraError


def encode_run_lengths(mask: NDArray[np.uint8]) -> str:
    """Returns the `counts` of a mask [H, W], in which all but 0 is defect.

    Raises:
        MissingExtraError: If `pycocotools` is not installed.
    """
    try:
        from pycocotools import mask as coco  # only needed when asked for
    except ImportError as error:
        raise MissingExtraError("pycocotools", "batch") from error
    return str(coco.encode(np.asfortranarray(mask > 0))["counts"].decode("ascii"))


def decode_run_lengths(text: str) -> list[int]:
    """Reads the numbers that COCO packs into letters.

    Each letter from `0` on carries five bits, low ones first, and whether more follow. From the fourth
    number on, only the difference to the number two before is written. Read here and not by `pycocotools`,
    which warns with NumPy 2.

    Args:
        text: The `counts` of a mask.

    Returns:
        Good and defect pixels in turn, as written: whether they make a picture is for the caller to check.

    Raises:
        ValueError: If a letter is none of the code, or a number has more bits than any picture has pixels,
            or does not end.

    Reference:
        https://github.com/cocodataset/cocoapi, common/maskApi.c, `rleFrString`
    """
    counts: list[int] = []
    number = shift = 0
    for letter in text:
        bits = ord(letter) - ord("0")
        if not 0 <= bits < 64 or shift > 30:
            raise ValueError(f"packed run lengths hold {letter!r} where none is expected")
        number |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:  # the sign
            number -= 1 << shift
        counts.append(number + (counts[-2] if len(counts) > 2 else 0))
        number = shift = 0
    if shift:
        raise ValueError("packed run lengths end within a number")
    return counts
