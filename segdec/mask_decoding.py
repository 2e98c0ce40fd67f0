"""Decodes the masks of the service's answers."""

import base64
import binascii

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.errors import ImageError
from segdec.imaging.polygons import fill_polygon
from segdec.imaging.run_lengths import decode_run_lengths
from segdec.schemas import MaskAnswer, PolygonAnswer, RunLengths

CONTENTS = {"png": str, "scores": str, "classes": str, "rle": RunLengths, "polygon": list, "class_rle": dict}
"""Encoding → type of its data."""

DESCRIPTIONS = {
    str: "the base64 of a PNG",
    RunLengths: "run lengths",
    list: "contours",
    dict: "run lengths by class",
}


def unpack_mask(mask: MaskAnswer) -> NDArray[np.uint8]:
    """Decodes an answer's mask in any encoding.

    Returns:
        uint8 [H, W], 255 = defect, 0 = good; with the encoding `scores` the mask scores × 255, with
        `classes` and `class_rle` the index of the pixel's class in the answer's `labels`.

    Raises:
        ImageError: With the code `corrupt_mask`, if the data does not match its encoding and size.
    """
    expected, arrived = CONTENTS[mask.encoding], type(mask.data)
    if arrived is not expected:
        need, has = DESCRIPTIONS[expected], DESCRIPTIONS[arrived]
        raise _corrupt(f"its encoding '{mask.encoding}' needs {need}, but it has {has}")
    if isinstance(mask.data, str):
        pixels = _unpack_png(mask.data)
    elif isinstance(mask.data, RunLengths):
        pixels = _unpack_run_lengths(mask.data)
    elif isinstance(mask.data, dict):
        pixels = _join_classes(mask.data, mask)
    else:
        pixels = fill_polygons(mask.data, mask.height, mask.width)
    if mask.encoding == "png" and (between := pixels[(pixels != 0) & (pixels != 255)]).size:
        raise _corrupt(f"its encoding 'png' allows only the values 0 and 255, but it has {between[0]}")
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
        raise _corrupt("its data is not a PNG")
    return np.asarray(decoded, dtype=np.uint8)


def fill_polygons(polygons: list[PolygonAnswer], height: int, width: int) -> NDArray[np.uint8]:
    """Fills the polygons except their holes with 255: uint8 [height, width].

    Raises:
        ImageError: With the code `corrupt_mask`, if a contour is empty or outside the picture.
    """
    contours = [contour for polygon in polygons for contour in (polygon.outer, *polygon.holes)]
    inside = all(0 <= x <= width and 0 <= y <= height for contour in contours for x, y in contour)
    if not inside or not all(contours):
        raise _corrupt("a contour is empty or outside the mask")
    return fill_polygon(map(np.array, contours), height, width).view(np.uint8) * np.uint8(255)


def _unpack_run_lengths(data: RunLengths) -> NDArray[np.uint8]:
    """Decodes COCO's alternating runs of good and defect pixels, column by column."""
    height, width = data.size
    try:
        lengths = decode_run_lengths(data.counts)
    except ValueError as error:
        raise _corrupt(error) from error
    if min(lengths, default=0) < 0 or sum(lengths) != height * width:
        raise _corrupt(f"its run lengths do not add up to {height} × {width} pixels")
    values = np.where(np.arange(len(lengths)) % 2, np.uint8(255), np.uint8(0))
    return np.repeat(values, lengths).reshape(width, height).T


def _join_classes(by_class: dict[str, RunLengths], mask: MaskAnswer) -> NDArray[np.uint8]:
    labels = mask.labels or []
    joined = np.zeros((mask.height, mask.width), np.uint8)
    for label, runs in by_class.items():
        if label not in labels[:256] or runs.size != (mask.height, mask.width):
            raise _corrupt(f"the class '{label}' is not in {labels}, or its mask has another size")
        joined[_unpack_run_lengths(runs) > 0] = labels.index(label)
    return joined


def _corrupt(reason: object) -> ImageError:
    return ImageError(
        f"The answer's mask cannot be decoded ({reason}). Send the request again.", code="corrupt_mask"
    )
