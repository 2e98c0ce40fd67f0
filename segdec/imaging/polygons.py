"""Fills polygons by the even-odd rule, and traces the outlines of masks.

Coordinates start at the top left corner of the picture: pixel (row r, column c) is the square from (c, r) to
(c + 1, r + 1), as in COCO, LabelMe and CVAT.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

Ring = tuple[tuple[int, int], ...]
"""Corners (x, y) of a closed outline, px; the last joins the first."""

EDGE_BATCH = 256
"""Edges that are filled together; each may cross every row."""


def fill_polygon(rings: Iterable[NDArray[np.float64]], height: int, width: int) -> NDArray[np.bool_]:
    """Returns which pixels have their centre inside a polygon: bool [height, width].

    `rings` [N, 2] are x and y of each corner, of the outline and of each hole; edges may intersect. Each edge
    flips all pixels to its right in the rows that it crosses. A centre on an edge belongs to the polygon on
    the right of the edge, or below it.
    """
    flips = np.zeros((height, width + 1), np.uint8)
    for ring in rings:
        corners = np.asarray(ring) - 0.5  # centres become integers
        edges = np.stack([corners, np.roll(corners, -1, axis=0)], axis=1)
        for part in range(0, len(edges), EDGE_BATCH):
            _flip(flips, edges[part : part + EDGE_BATCH])
    return np.bitwise_xor.accumulate(flips, axis=1)[:, :-1].view(np.bool_)


def _flip(flips: NDArray[np.uint8], edges: NDArray[np.float64]) -> None:
    """Changes `flips` [H, W + 1] where `edges` [N, 2, 2], pairs of x and y, cross a row."""
    height, columns = flips.shape
    downward = np.where(edges[:, :1, 1:] <= edges[:, 1:, 1:], edges, edges[:, ::-1])
    starts, ends = np.clip(np.ceil(downward[..., 1]), 0, height).astype(np.int64).T
    edge = np.repeat(np.arange(len(edges)), ends - starts)  # for each crossing
    rows = np.concatenate([np.arange(start, end) for start, end in zip(starts, ends, strict=True)])
    (x0, y0), (x1, y1) = downward[edge].transpose(1, 2, 0)
    crossings = np.ceil(x0 + (rows - y0) * (x1 - x0) / (y1 - y0))
    np.bitwise_xor.at(flips, (rows, np.clip(crossings, 0, columns - 1).astype(np.int64)), np.uint8(1))


def trace_outlines(mask: NDArray[np.uint8], left: int = 0, top: int = 0) -> list[tuple[Ring, list[Ring]]]:
    """Returns the outline and the holes of each 8-connected part of a mask [H, W], along the edges of pixels.

    `left` and `top` are the position of the mask in its picture. A ring touches itself where two pixels of a
    part share only a corner.
    """
    # OpenCV's contours run through pixels. Of a mask of twice the size, each has one point at every corner.
    doubled = cv2.resize(mask, None, fx=2, fy=2, interpolation=cv2.INTER_NEAREST)
    contours, hierarchy = cv2.findContours(doubled, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    if hierarchy is None:
        return []
    parents = hierarchy[0][:, 3].tolist()  # the outline around a hole; −1: none
    rings: defaultdict[int, list[Ring]] = defaultdict(list)
    for contour, parent in zip(contours, parents, strict=True):
        corners = [(left + (x + 1) // 2, top + (y + 1) // 2) for x, y in contour[:, 0].tolist()]
        ring = (corner for before, corner in pairwise([corners[-1], *corners]) if corner != before)
        rings[parent].append(tuple(ring))
    outer = [number for number, parent in enumerate(parents) if parent < 0]
    return [(ring, rings[number]) for number, ring in zip(outer, rings[-1], strict=True)]
