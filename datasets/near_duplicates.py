"""Near duplicates: photographs of one thing with another exposure, position or compression.

Parts in a fixture look alike without being duplicates. A pair therefore counts only if its distance after
registration is small compared with the distances of both photographs, and of the median photograph of the
set, to their neighbours, most of which show other parts. Photographs of one part have the same neighbours.
If those of the pairs differ, parts vary continuously, for instance in orientation: each resembles others at
similar angles. Then a pair counts only if its distance is small compared with that of nearest neighbours.

Only the nearest candidates of each photograph are registered: the thumbnails whose coarse cells correlate
most, then those nearest to its tangent plane. docs/datasets.md has measurements.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from datasets.registration import RegistrationGrid

MAX_RELATIVE_DISTANCE = 0.5
"""Distance of near duplicates, relative to that of neighbours which show other parts."""

NEIGHBOUR = 8
"""The neighbour whose distance counts as that of another part: a thing has fewer photographs, mostly."""

MIN_SHARED_NEIGHBOURS = (0.5, 0.8)
"""Mean share of the neighbours of near duplicates that both have; smaller if parts vary continuously.

The first is for parts that look alike: others are almost as near as duplicates. The last is for unlike parts.
"""

MIN_PHOTOGRAPHS = 10
"""Fewer photographs do not show how much parts differ: none of them count as duplicates."""

MAX_PHOTOGRAPHS = 10_000
"""Larger sets are not compared: the time, a few minutes for so many, grows faster than their number."""

THUMBNAIL_SIDE = 64
"""Height and width of a thumbnail, cells."""

THUMBNAIL_BYTES = THUMBNAIL_SIDE * THUMBNAIL_SIDE

_CONTRAST_SIGMA = 4.0  # cells: neighbourhood in which brightness and contrast are normalized
_MIN_CONTRAST = 1.0  # grey levels; smaller contrast is noise,
_MIN_CONTRAST_SHARE = 0.3  # as is contrast that is small compared with the rest of the photograph
_QUANTIZATION = 32  # int8 steps for a normalized contrast of 1

_COARSE_SIDE, _MIDDLE_SIDE = 16, 32  # cells
_COARSE_CANDIDATES, _CANDIDATES = 256, 24
_SMOOTHING_SIGMA = 1.0  # cells; linear interpolation and gradients need smooth pictures,
_MIDDLE_SMOOTHING_SIGMA = 1.5  # and even more so without registration
_MARGIN_SHARE = 8  # a margin of 1/8 of the side is not compared: it may be moved out of the picture
_MIN_NEIGHBOUR_DISTANCE = 0.02  # smaller ones are noise of the quantization: all neighbours are duplicates
_SHARED_BEYOND_DISTANCE = 0.25  # how much larger the share must be than the usual distance of parts
_NEIGHBOURHOOD = 1.5  # times the largest distance of near duplicates
_NEAREST_QUANTILE = 1 / 3  # some parts have no neighbour at a similar angle
_MAX_TANGENT_DISTANCE = 0.8  # beyond, no registration makes a pair similar
_BLOCK = 1024  # photographs whose pairs are in memory at a time: 40 MB for 10,000


Distances = dict[tuple[int, int], float]
"""Pairs of photographs, lower index first."""


class Pairs(NamedTuple):
    """Near duplicates, nearest first: index of the first, of the second, relative distance, each [N]."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    distance: NDArray[np.float32]


def normalized_thumbnail(image: NDArray[np.uint8]) -> bytes:
    """Returns the thumbnail of a photograph [H, W, C]: int8 [THUMBNAIL_SIDE, THUMBNAIL_SIDE], row by row."""
    cells = cv2.resize(image, (THUMBNAIL_SIDE, THUMBNAIL_SIDE), interpolation=cv2.INTER_AREA).reshape(
        THUMBNAIL_SIDE, THUMBNAIL_SIDE, -1
    )
    grey = cells.mean(axis=-1, dtype=np.float32)
    detail = grey - _blurred(grey, _CONTRAST_SIGMA)
    contrast = np.sqrt(np.maximum(_blurred(detail * detail, _CONTRAST_SIGMA), 0))
    normalized = detail / (contrast + _MIN_CONTRAST + _MIN_CONTRAST_SHARE * detail.std())
    thumbnail: NDArray[np.int8] = np.clip(np.rint(_QUANTIZATION * normalized), -127, 127).astype(np.int8)
    return thumbnail.tobytes()


def near_duplicate_pairs(thumbnails: Sequence[bytes]) -> Pairs:
    """Finds near duplicates; none among fewer than `MIN_PHOTOGRAPHS`.

    The last result is stored: `fit` and its training search the same photographs.
    """
    return _search(tuple(thumbnails))


@lru_cache(maxsize=1)
def _search(thumbnails: tuple[bytes, ...]) -> Pairs:
    count = len(thumbnails)
    if count < MIN_PHOTOGRAPHS:
        return _as_pairs({})
    distances: Distances = {}
    neighbours: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for index, others, registered in _candidates(thumbnails):
        for other, distance in zip(others.tolist(), registered.tolist(), strict=True):
            pair = (min(index, other), max(index, other))
            distances[pair] = min(distance, distances.get(pair, 1.0))  # registration is not quite symmetric
            neighbours[index].append(pair)
    place = min(NEIGHBOUR, (count - 1) // 2) - 1
    usual = {
        index: max(sorted(distances[pair] for pair in pairs)[place], _MIN_NEIGHBOUR_DISTANCE)
        for index, pairs in neighbours.items()
    }
    typical = float(np.median(list(usual.values()) or [1.0]))
    # Rare parts have distant neighbours, although they may resemble each other by chance: not above typical.
    relative = {
        pair: distance / min(typical, *(usual.get(index, typical) for index in pair))
        for pair, distance in distances.items()
    }
    if _shared_neighbours(relative) < np.clip(typical + _SHARED_BEYOND_DISTANCE, *MIN_SHARED_NEIGHBOURS):
        nearest = _nearest_distance(distances, count)
        relative = {
            pair: distances[pair] / nearest
            for pair, value in relative.items()
            if value < MAX_RELATIVE_DISTANCE
        }
    return _as_pairs({pair: value for pair, value in relative.items() if value < MAX_RELATIVE_DISTANCE})


def _shared_neighbours(relative: Distances) -> float:
    """Returns the mean share of the neighbours of near duplicates that are near duplicates of both."""
    near, around = (_neighbours(relative, factor * MAX_RELATIVE_DISTANCE) for factor in (1, _NEIGHBOURHOOD))
    shares = [
        len(near[first] & near[second]) / len(around[first] | around[second])
        for (first, second), value in relative.items()
        if value < MAX_RELATIVE_DISTANCE
    ]
    return float(np.mean(shares or [1.0]))


def _neighbours(relative: Distances, limit: float) -> dict[int, set[int]]:
    """Returns those of each photograph, and itself: photographs in pairs below a distance."""
    neighbours: dict[int, set[int]] = defaultdict(set)
    for pair, value in relative.items():
        if value < limit:
            for index in pair:
                neighbours[index].update(pair)
    return neighbours


def _nearest_distance(distances: Distances, count: int) -> float:
    """Returns the distance to the nearest neighbour of photographs that have another at a similar angle."""
    nearest = [1.0] * count
    for pair, distance in distances.items():
        for index in pair:
            nearest[index] = min(nearest[index], distance)
    return max(float(np.quantile(nearest, _NEAREST_QUANTILE)), _MIN_NEIGHBOUR_DISTANCE)


def nearest_pairs(pairs: Pairs) -> Pairs:
    """Returns the pair of each photograph and its nearest near duplicate, nearest first."""
    photographs = np.stack([pairs.first, pairs.second], axis=1).ravel()
    rows = np.unique(np.unique(photographs, return_index=True)[1] // 2)
    return select_pairs(pairs, rows)


def select_pairs(pairs: Pairs, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Pairs:
    """Returns the pairs of these rows."""
    return Pairs(pairs.first[rows], pairs.second[rows], pairs.distance[rows])


def duplicate_clusters(count: int, pairs: Pairs) -> list[NDArray[np.int64]]:
    """Returns the connected components of `count` photographs, as indices; each has at least two."""
    first = np.arange(count)
    a, b = pairs.first, pairs.second
    while len(a):
        lower, upper = np.minimum(first[a], first[b]), np.maximum(first[a], first[b])
        first[upper] = lower
        while (first != first[first]).any():
            first = first[first]
        apart = first[a] != first[b]
        a, b = a[apart], b[apart]
    order = np.argsort(first, kind="stable")
    clusters = np.split(order, np.flatnonzero(np.diff(first[order])) + 1)
    return [cluster for cluster in clusters if len(cluster) > 1]


def _candidates(thumbnails: Sequence[bytes]) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.float32]]]:
    """Yields photographs that may have near duplicates, their candidates, and the registered distances."""
    fine = RegistrationGrid(THUMBNAIL_SIDE, THUMBNAIL_SIDE // _MARGIN_SHARE)
    middle = RegistrationGrid(_MIDDLE_SIDE, _MIDDLE_SIDE // _MARGIN_SHARE)
    rows = np.stack([middle.unit_row(_cells(one, _MIDDLE_SIDE)) for one in thumbnails]).astype(np.float16)
    for index, correlated in _correlated(thumbnails):
        near = middle.tangent_distances(
            _cells(thumbnails[index], _MIDDLE_SIDE), rows[correlated].astype(np.float32)
        )
        if near.min() > _MAX_TANGENT_DISTANCE:
            continue
        others = correlated[np.argsort(near, kind="stable")[:_CANDIDATES]]
        pictures = [_cells(thumbnails[other], THUMBNAIL_SIDE) for other in others]
        yield (index, others, fine.registered_distances(_cells(thumbnails[index], THUMBNAIL_SIDE), pictures))


def _correlated(thumbnails: Sequence[bytes]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yields each photograph and those whose coarse cells correlate most with its own."""
    whole = RegistrationGrid(_COARSE_SIDE, 0)
    rows = np.stack([whole.unit_row(_cells(one, _COARSE_SIDE)) for one in thumbnails])
    limit = min(_COARSE_CANDIDATES, len(rows) - 1)
    for start in range(0, len(rows), _BLOCK):
        correlation = rows[start : start + _BLOCK] @ rows.T
        for offset, values in enumerate(correlation):
            values[start + offset] = -np.inf
            yield start + offset, np.sort(np.argpartition(values, -limit)[-limit:])


def _cells(thumbnail: bytes, side: int) -> NDArray[np.float32]:
    """The normalized contrast of a thumbnail, float32 [side, side], smoothed for the registration."""
    stored = np.frombuffer(thumbnail, np.int8).reshape(THUMBNAIL_SIDE, THUMBNAIL_SIDE)
    cells: NDArray[np.float32] = stored.astype(np.float32) / np.float32(_QUANTIZATION)
    if side < THUMBNAIL_SIDE:
        cells = np.asarray(cv2.resize(cells, (side, side), interpolation=cv2.INTER_AREA), np.float32)
    return _blurred(cells, _MIDDLE_SMOOTHING_SIGMA if side == _MIDDLE_SIDE else _SMOOTHING_SIGMA)


def _blurred(cells: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    return np.asarray(cv2.GaussianBlur(cells, (0, 0), sigma, borderType=cv2.BORDER_REFLECT), np.float32)


def _as_pairs(distances: Distances) -> Pairs:
    ordered = sorted((distance, *pair) for pair, distance in distances.items())
    return Pairs(
        np.array([first for _, first, _ in ordered], np.int64),
        np.array([second for _, _, second in ordered], np.int64),
        np.array([distance for distance, _, _ in ordered], np.float32),
    )
