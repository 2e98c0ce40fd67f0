"""The inspected area of a photograph, and the fill of the rest."""

import base64
import binascii
from functools import lru_cache
from math import prod
from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.imaging.png_chunks import read_size
from segdec.imaging.polygons import fill_polygon

Corner = tuple[float, float]
Polygon = tuple[Corner, ...]
Mask = NDArray[np.uint8]
Level = TypeVar("Level", np.uint8, np.float32)

MIN_CORNERS = 3

MAX_BASE64_CHARACTERS = 2**20
"""Characters of a mask in base64; a mask of 4096 × 4096 px with simple shapes needs about 20,000."""
MAX_MASK_PIXELS = 2**26

PROBE_PX = 256
"""Side of the picture on which to test whether anything is left to inspect."""


def check_polygon(polygon: Polygon) -> Polygon:
    """Returns `polygon`; raises ValueError if a corner is outside, or fewer than three corners differ."""
    for x, y in polygon:
        if not (0.0 <= x <= 1.0 and 0.0 <= y <= 1.0):
            raise ValueError(
                f"the corner ({x:g}, {y:g}) is outside the picture; expected x and y from 0 to 1, as "
                "fractions of width and height: divide pixels by the photograph's sides"
            )
    if (different := len(set(polygon))) < MIN_CORNERS:
        raise ValueError(f"a polygon with {different} different corners has no area; expected at least 3")
    return polygon


def check_mask(data: str) -> str:
    """Returns `data` if `decode_mask` accepts it."""
    decode_mask(data)
    return data


def decode_mask(data: str) -> Mask:
    """Reads a mask, uint8 [h, w], from the base64 of an 8-bit grey PNG; raises ValueError for other data."""
    expected = f"expected the base64 of a grey 8-bit PNG of at most {MAX_MASK_PIXELS} pixels, or a path"
    try:
        encoded = base64.b64decode(data, validate=True) if len(data) <= MAX_BASE64_CHARACTERS else b""
    except (binascii.Error, ValueError):
        encoded = b""
    size = read_size(encoded)
    if size is None or not 0 < prod(size) <= MAX_MASK_PIXELS:
        raise ValueError(f"not a mask; {expected}")
    mask = cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_UNCHANGED)
    if mask is None or mask.dtype != np.uint8 or mask.ndim != 2:
        raise ValueError(f"a PNG that is not a mask; {expected}")
    return np.asarray(mask, np.uint8)


def leaves_inspected_pixels(
    regions: tuple[Polygon, ...], ignored: tuple[Polygon, ...], mask: str | None
) -> bool:
    """Returns whether any part of the photograph is inspected."""
    area = draw_area(regions, ignored, mask, PROBE_PX, PROBE_PX)
    return area is None or bool(area.any())


@lru_cache(maxsize=2)  # for further photographs of the same size
def draw_area(
    regions: tuple[Polygon, ...], ignored: tuple[Polygon, ...], mask: str | None, height: int, width: int
) -> Mask | None:
    """Draws the inspected part of a photograph of `height` × `width` px.

    Corners are fractions of width and height. Without `regions` the whole photograph is inspected, except the
    `ignored` polygons and where the `mask`, the base64 of a PNG that is stretched to the photograph, is 0.

    Returns:
        Read-only uint8 [height, width], 255 = inspected; None = everywhere.
    """
    if not regions and not ignored and mask is None:
        return None

    def fill(polygon: Polygon) -> NDArray[np.bool_]:
        return fill_polygon([np.array(polygon) * (width, height)], height, width)

    inside = np.full((height, width), not regions)
    for polygon in regions:
        inside |= fill(polygon)
    if mask is not None:
        stretched = cv2.resize(decode_mask(mask), (width, height), interpolation=cv2.INTER_NEAREST_EXACT)
        inside &= np.asarray(stretched) > 0
    for polygon in ignored:
        inside &= ~fill(polygon)
    area = inside.view(np.uint8) * np.uint8(255)
    area.flags.writeable = False
    return area


def fill_outside(image: NDArray[Level], area: Mask) -> NDArray[Level]:
    """Replaces the outside of [H, W, C] by the rounded mean of the inside (area > 0), for a weak edge."""
    return _fill_by(image, area, area)


def refill_outside(image: NDArray[Level], area: Mask) -> NDArray[Level]:
    """Makes the outside uniform again, with its own mean, after a filled image was changed."""
    return _fill_by(image, area, (area == 0).view(np.uint8))


def _fill_by(image: NDArray[Level], area: Mask, measured: Mask) -> NDArray[Level]:
    source = np.ascontiguousarray(image)
    level = np.rint(cv2.mean(source, measured)[: image.shape[2]]).astype(image.dtype)
    return np.where(area[..., None] > 0, source, level)
