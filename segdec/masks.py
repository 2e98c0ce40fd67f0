"""Masks as the service sends them → pixels."""

import base64
import binascii

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.answers import MaskAnswer, PolygonAnswer, RunLengths
from segdec.errors import ImageError


def unpack_mask(mask: MaskAnswer) -> NDArray[np.uint8]:
    """The pixels of an answer's mask, whatever its encoding.

    Returns:
        uint8 [H, W], 255 = defect, 0 = good; with the encoding `scores` the mask scores × 255.

    Raises:
        ImageError: With the code `corrupt_mask`, if the data are none of the encoding and size named.
    """
    if isinstance(mask.data, str):
        pixels = _unpack_png(mask.data)
    elif isinstance(mask.data, RunLengths):
        pixels = _unpack_run_lengths(mask.data)
    else:
        pixels = _fill_polygons(mask.data, mask.height, mask.width)
    if pixels.shape != (mask.height, mask.width):
        raise _corrupt(f"it has {pixels.shape} rows and columns instead of {(mask.height, mask.width)}")
    return pixels


def _unpack_png(data: str) -> NDArray[np.uint8]:
    try:
        encoded = np.frombuffer(base64.b64decode(data), np.uint8)
    except binascii.Error as error:
        raise _corrupt(error) from error
    decoded = cv2.imdecode(encoded, cv2.IMREAD_GRAYSCALE) if encoded.size else None
    if decoded is None:
        raise _corrupt("its data are no PNG")
    return np.asarray(decoded, dtype=np.uint8)


def _fill_polygons(polygons: list[PolygonAnswer], height: int, width: int) -> NDArray[np.uint8]:
    """Fills what lies between the contours of each part, the pixels below the contours included."""
    canvas = np.zeros((height, width), np.uint8)
    for polygon in polygons:
        contours = [polygon.outer, *polygon.holes]
        inside = all(0 <= x < width and 0 <= y < height for contour in contours for x, y in contour)
        if not inside or not all(contours):
            raise _corrupt("a contour is empty or leaves the mask")
        cv2.fillPoly(canvas, [np.array(contour, np.int32) for contour in contours], 255)
    return canvas


# === Run lengths ===


def _unpack_run_lengths(data: RunLengths) -> NDArray[np.uint8]:
    """COCO's runs of good and defect pixels in turn, down the columns.

    Read here and not by `pycocotools`, which warns with NumPy 2.
    """
    height, width = data.size
    lengths = _read_counts(data.counts)
    if min(lengths, default=0) < 0 or sum(lengths) != height * width:
        raise _corrupt(f"its run lengths do not make {height} × {width} pixels")
    values = np.where(np.arange(len(lengths)) % 2, np.uint8(255), np.uint8(0))
    return np.repeat(values, lengths).reshape(width, height).T


def _read_counts(text: str) -> list[int]:
    """Each letter from `0` on carries five bits, low ones first, and whether more follow.

    From the fourth number on, only the difference to the number two before is written.
    """
    counts: list[int] = []
    number = shift = 0
    for letter in text:
        bits = ord(letter) - ord("0")
        if not 0 <= bits < 64:
            raise _corrupt(f"its run lengths hold {letter!r}")
        number |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:  # the sign
            number -= 1 << shift
        counts.append(number + (counts[-2] if len(counts) > 2 else 0))
        number = shift = 0
    return counts


def _corrupt(reason: object) -> ImageError:
    return ImageError(
        f"The answer's mask cannot be unpacked ({reason}). Expected the mask that it describes; ask again.",
        code="corrupt_mask",
    )
