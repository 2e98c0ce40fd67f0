"""Fills polygons by the even-odd rule, on pixel centres."""

import math

import numpy as np
from numpy.typing import NDArray


def fill_polygon(corners: NDArray[np.float64], height: int, width: int) -> NDArray[np.bool_]:
    """Returns which integer points (x, y) are inside a polygon: bool [height, width].

    `corners` [N, 2] are x and y of each corner; the last joins the first, and edges may intersect. Each edge
    flips all points to its right in the rows that it crosses. A point on an edge belongs to the polygon on
    the right of the edge, or below it.
    """
    flips = np.zeros((height, width + 1), np.uint8)
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        (x0, y0), (x1, y1) = (start, end) if start[1] <= end[1] else (end, start)
        rows = np.arange(max(math.ceil(y0), 0), min(math.ceil(y1), height))
        if rows.size:
            crossings = x0 + (rows - y0) * (x1 - x0) / (y1 - y0)
            flips[rows, np.clip(np.ceil(crossings), 0, width).astype(np.int64)] ^= 1
    return np.bitwise_xor.accumulate(flips, axis=1)[:, :-1].view(np.bool_)
