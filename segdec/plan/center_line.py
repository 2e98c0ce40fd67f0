"""The length of a bent part of a mask, along its centre line."""

import heapq

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.plan.reduction import reduce_mask, reduction_factor

Part = NDArray[np.bool_]
Place = tuple[int, int]
"""Row and column of a pixel."""
Graph = dict[Place, dict[Place, float]]
"""Pixels of a skeleton, each with its neighbours and their distances, px."""

NEIGHBOURS = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
"""Rows and columns of the eight neighbours, clockwise from above."""

SPUR_FACTOR = 1.5
"""A branch that is shorter than so many times the distance of its fork to the border ends in a corner, and is
no part of the centre line."""


def center_line_length(part: Part) -> float:
    """Returns the length of the longest path along the centre line of a connected part, to its ends, px.

    A line around a hole may touch itself anywhere: its length is its area, divided by its mean width. Large
    parts are reduced first, since thinning takes long.
    """
    factor = reduction_factor(part)
    if factor > 1:
        return factor * center_line_length(reduce_mask(part, factor))
    padded = np.pad(part.view(np.uint8), 1)
    radius = cv2.distanceTransform(padded, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)[1:-1, 1:-1]
    radius = np.maximum(radius - 0.5, 0.5)  # to the border, not to the centre of the pixel behind it
    graph = _without_spurs(_graph(thin(part)), radius)
    if not graph:
        return 0.0
    window = max(1, round(float(np.mean([radius[place] for place in graph]))))
    if all(len(near) == 2 for near in graph.values()):
        return _closed_length(graph, window)
    if _has_hole(part, float(radius.max())):
        return float(np.count_nonzero(part) / _mean_width(part, graph))
    path = _longest_path(graph)
    line = _smooth(np.array(path, np.float64), window)
    skeleton = np.zeros(part.shape, np.uint8)
    skeleton[tuple(np.transpose(list(graph)))] = 1
    _, nearest = cv2.distanceTransformWithLabels(
        1 - skeleton, cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    ends = sum(
        _to_border(np.argwhere(part & (nearest == nearest[path[end]])), line[::-step], window)
        for end, step in ((0, 1), (-1, -1))
        if len(graph[path[end]]) < 2
    )
    return float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum() + ends)


def _closed_length(graph: Graph, window: int) -> float:
    """Returns the length of a skeleton without ends or forks, px."""
    path = [next(iter(graph))]
    while ahead := [place for place in graph[path[-1]] if place not in path[-2:-1] and place != path[0]]:
        path.append(ahead[0])
    line = np.array(path[-window:] + path + path[: window + 1], np.float64)
    smooth = _smooth(line, window)[window:-window]
    return float(np.linalg.norm(np.diff(smooth, axis=0), axis=1).sum())


def _mean_width(part: Part, graph: Graph) -> float:
    """Returns the mean width of a part along its skeleton, px, from distances on a grid of half pixels."""
    highest = np.asarray(cv2.dilate(half_pixel_distances(part), np.ones((3, 3), np.uint8)))
    rows, columns = np.transpose(list(graph))
    return float(highest[2 * rows + 1, 2 * columns + 1].mean())


def half_pixel_distances(part: Part) -> NDArray[np.float32]:
    """Returns distances to the border of a part [h, w], in half pixels.

    [2h + 2, 2w + 2], with a margin of one.
    """
    doubled = cv2.resize(part.view(np.uint8), None, fx=2, fy=2, interpolation=cv2.INTER_NEAREST)
    distances = cv2.distanceTransform(np.pad(doubled, 1), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return np.asarray(distances, np.float32)


def _has_hole(part: Part, radius: float) -> bool:
    """Returns whether a part encloses a hole that is larger than the largest circle inside the part."""
    outside = np.pad(~part, 1, constant_values=True).view(np.uint8)
    _, _, stats, _ = cv2.connectedComponentsWithStats(outside, connectivity=4)
    holes = np.asarray(stats)[2:, cv2.CC_STAT_AREA]  # after the part and its surroundings
    return bool((holes > np.pi * radius**2).any())


def _to_border(beyond: NDArray[np.int64], line: NDArray[np.float64], window: int) -> float:
    """Returns how far a part continues beyond the last place of a line [N, 2], in its direction, px.

    Thinning shortens a skeleton; `beyond` [M, 2] are the pixels to which its end is the nearest one.
    """
    direction = line[-1] - line[max(len(line) - 1 - 2 * window, 0)]
    norm = float(np.linalg.norm(direction)) or 1.0
    return float(((beyond - line[-1]) @ direction).max()) / norm + 0.5


def thin(part: Part) -> Part:
    """Returns the skeleton of a part, one pixel wide.

    Zhang and Suen, "A fast parallel algorithm for thinning digital patterns", 1984.
    """
    pixels = np.pad(part.view(np.uint8), 1)
    kernel = np.zeros((3, 3), np.float32)
    for bit, (row, column) in enumerate(NEIGHBOURS):
        kernel[1 + row, 1 + column] = 1 << bit
    while True:
        before = cv2.countNonZero(pixels)
        for removed in REMOVED:
            code = cv2.filter2D(pixels, cv2.CV_16S, kernel, borderType=cv2.BORDER_CONSTANT).astype(np.uint8)
            pixels[(pixels > 0) & (cv2.LUT(code, removed) > 0)] = 0
        if cv2.countNonZero(pixels) == before:
            return pixels[1:-1, 1:-1] > 0


def _removed_codes(step: int) -> NDArray[np.uint8]:
    """Returns for each code of eight neighbours whether the pixel is removed in the first or second step."""
    removed = np.zeros(256, np.uint8)
    for code in range(256):
        p = [code >> bit & 1 for bit in range(8)]  # above, above right, right, …
        changes = sum(not one and other for one, other in zip(p, [*p[1:], p[0]], strict=True))
        above, right, below, left = p[0], p[2], p[4], p[6]
        if step == 0:
            closed = above and right and below, right and below and left
        else:
            closed = above and right and left, above and below and left
        removed[code] = 2 <= sum(p) <= 6 and changes == 1 and not any(closed)
    return removed


REMOVED = _removed_codes(0), _removed_codes(1)


def _graph(skeleton: Part) -> Graph:
    places = set(zip(*(each.tolist() for each in np.nonzero(skeleton)), strict=True))
    graph: Graph = {}
    for row, column in places:
        near = {}
        for down, right in NEIGHBOURS:
            other = row + down, column + right
            # A diagonal step beside two straight ones would be a detour of no length.
            if other in places and not (
                down and right and ((row, other[1]) in places or (other[0], column) in places)
            ):
                near[other] = float(np.hypot(down, right))
        graph[row, column] = near
    return graph


def _without_spurs(graph: Graph, radius: NDArray[np.float32]) -> Graph:
    """Removes branches from forks to ends that are short compared with the width at the fork."""
    spurs: list[list[Place]] = []
    for end in (place for place, near in graph.items() if len(near) == 1):
        branch, length = [end], 0.0
        while True:
            ahead = [place for place in graph[branch[-1]] if place not in branch[-2:]]
            if len(ahead) != 1:
                break
            length += graph[branch[-1]][ahead[0]]
            branch.append(ahead[0])
        fork = branch[-1]
        if len(graph[fork]) > 2 and length < SPUR_FACTOR * radius[fork]:
            spurs.append(branch[:-1])
    removed = {place for branch in spurs for place in branch}
    return {
        place: {other: step for other, step in near.items() if other not in removed}
        for place, near in graph.items()
        if place not in removed
    }


def _longest_path(graph: Graph) -> list[Place]:
    """Returns the places of the longest of the shortest paths, found by two searches: exact without loops."""
    first, _ = _farthest(graph, next(iter(graph)))
    last, before = _farthest(graph, first)
    path = [last]
    while path[-1] != first:
        path.append(before[path[-1]])
    return path


def _farthest(graph: Graph, start: Place) -> tuple[Place, dict[Place, Place]]:
    """Returns the place with the longest shortest path from `start`, and the place before each (Dijkstra)."""
    found, before, waiting = {start: 0.0}, {start: start}, [(0.0, start)]
    while waiting:
        distance, place = heapq.heappop(waiting)
        if distance > found[place]:
            continue
        for other, step in graph[place].items():
            if distance + step < found.get(other, np.inf):
                found[other], before[other] = distance + step, place
                heapq.heappush(waiting, (distance + step, other))
    return max(found, key=lambda place: found[place]), before


def _smooth(line: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Returns the means of `2 · window + 1` places of a line [N, 2]; its ends stay."""
    if len(line) < 3:
        return line
    before, after = 2 * line[0] - line[window:0:-1], 2 * line[-1] - line[-2 : -window - 2 : -1]
    padded = np.concatenate([before, line, after])
    sums = np.cumsum(np.concatenate([np.zeros((1, 2)), padded]), axis=0)
    width = len(padded) - len(line) + 1
    return np.asarray((sums[width:] - sums[:-width]) / width)
