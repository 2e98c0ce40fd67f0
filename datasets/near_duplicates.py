"""Near twins: photographs of one and the same thing, at another exposure, moved or compressed anew.

Photographs of parts that lie in a fixture are alike without being twins. So what is compared is what a
photograph shows beside what the set has in common: of small pictures whose brightness and contrast are
evened out, the set's mean and its strongest patterns (principal components) are taken away, and the rest
is correlated.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

THRESHOLD = 0.7
"""Near twins correlate by as much. Photographs of different things reach 0.3 in KolektorSDD, 0.5 in DAGM; of
neighbouring exposures of a magnetic tile, five in six lie above. docs/datasets.md has the figures."""

MIN_PHOTOGRAPHS = 10
"""Of fewer photographs nobody can tell what they have in common: no two of them are called twins."""

MAX_PHOTOGRAPHS = 100_000
"""More photographs are not compared: these are five thousand million pairs, a minute or two."""

THUMBNAIL_SIDE = 16
"""Height and width of the small picture, cells: twins moved by a hundredth of the picture stay alike."""

THUMBNAIL_BYTES = THUMBNAIL_SIDE * THUMBNAIL_SIDE

_SURROUNDINGS = 2.0  # cells: sigma of what brightness and contrast are measured in
_NOISE = 1.0  # grey levels: less contrast than this is not stretched to full contrast
_STEPS = 32  # values of a small picture for a contrast of one

_SAMPLED = 2000  # photographs that tell what the set has in common
_ALIKE = 0.9  # small pictures as alike as this count as one there, so that twins do not hide themselves,
_MOST_ALIKE = 10  # but no more of them than exposures of one thing: else they are one kind of part
_MOST_PATTERNS = 20
_PHOTOGRAPHS_A_PATTERN = 25  # of fewer, a pair of twins would be a pattern
_LEAST_OWN = 0.03  # of a small picture; below it lies what rounding leaves
_BLOCK = 2048  # photographs whose pairs are held at a time: 16 MB


class Pairs(NamedTuple):
    """Photographs two by two: places of the one and of the other, and how they correlate, each [N]."""

    one: NDArray[np.int64]
    other: NDArray[np.int64]
    alike: NDArray[np.float32]


def normalized_thumbnail(image: NDArray[np.uint8]) -> bytes:
    """Returns what is kept of a photograph [H, W, C] to find its near twins: int8 [GRID, GRID], by rows."""
    cells = cv2.resize(image, (THUMBNAIL_SIDE, THUMBNAIL_SIDE), interpolation=cv2.INTER_AREA).reshape(
        THUMBNAIL_SIDE, THUMBNAIL_SIDE, -1
    )
    grey = cells.mean(axis=-1, dtype=np.float32)
    detail = grey - _blurred(grey)
    even = detail / (np.sqrt(_blurred(detail * detail)) + _NOISE)
    small: NDArray[np.int8] = np.clip(np.rint(_STEPS * even), -127, 127).astype(np.int8)
    return small.tobytes()


def distinctive_features(pictures: Sequence[bytes]) -> NDArray[np.float32]:
    """Returns what each small picture shows beside what all have in common, [N, SMALL_BYTES].

    Rows are of length 1, so that their products are correlations; all 0 where a picture shows nothing of its
    own.
    """
    cells = np.frombuffer(b"".join(pictures), np.int8).reshape(-1, THUMBNAIL_BYTES).astype(np.float32)
    shown = _of_length_1(cells - cells.mean(axis=1, keepdims=True), 1.0)
    known = np.flatnonzero(shown.any(axis=1))
    if len(known) < MIN_PHOTOGRAPHS:
        return np.zeros_like(shown)
    mean, patterns = _common(shown[known[:: -(-len(known) // _SAMPLED)]])
    own = shown[known] - mean
    own -= own @ patterns.T @ patterns
    shown[known] = _of_length_1(own, _LEAST_OWN)
    return shown


def similar_pairs(features: NDArray[np.float32]) -> Iterator[Pairs]:
    """Yields all pairs of near twins, those of a block of photographs with another at a time."""
    for top in range(0, len(features), _BLOCK):
        for left in range(top, len(features), _BLOCK):
            alike = features[top : top + _BLOCK] @ features[left : left + _BLOCK].T
            rows, columns = np.nonzero(alike >= THRESHOLD)
            upper = rows + top < columns + left
            rows, columns = rows[upper], columns[upper]
            yield Pairs(rows + top, columns + left, alike[rows, columns])


def nearest_duplicates(features: NDArray[np.float32], counts: Callable[[Pairs], NDArray[np.bool_]]) -> Pairs:
    """Returns each photograph that has near twins with the nearest of them, the nearest pairs first.

    Args:
        features: Of `distinctive_features`.
        counts: Tells which pairs are to be looked at.
    """
    best, twin = np.zeros(len(features), np.float32), np.zeros(len(features), np.int64)
    for pairs in similar_pairs(features):
        chosen = counts(pairs)
        one, other, alike = pairs.one[chosen], pairs.other[chosen], pairs.alike[chosen]
        for place, beside in ((one, other), (other, one)):
            better = np.flatnonzero(alike > best[place])
            better = better[np.argsort(alike[better], kind="stable")]  # of several, the last is kept
            best[place[better]], twin[place[better]] = alike[better], beside[better]
    found = np.flatnonzero(best)
    both = np.sort(np.stack([found, twin[found]], axis=1), axis=1)
    nearest, place = np.unique(both, axis=0, return_index=True)  # two may be each other's nearest
    alike = best[found[place]]
    order = np.argsort(-alike, kind="stable")
    return Pairs(nearest[order, 0], nearest[order, 1], alike[order])


def duplicate_clusters(features: NDArray[np.float32]) -> list[NDArray[np.int64]]:
    """Returns the places of photographs that near twins connect, also over others; two at least."""
    first = np.arange(len(features))
    for pairs in similar_pairs(features):
        one, other = pairs.one, pairs.other
        while len(one):
            lower, upper = np.minimum(first[one], first[other]), np.maximum(first[one], first[other])
            first[upper] = lower
            while (first != first[first]).any():
                first = first[first]
            apart = first[one] != first[other]
            one, other = one[apart], other[apart]
    order = np.argsort(first, kind="stable")
    clusters = np.split(order, np.flatnonzero(np.diff(first[order])) + 1)
    return [cluster for cluster in clusters if len(cluster) > 1]


def _common(shown: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and strongest patterns of small pictures, twins counting as one."""
    alike = np.minimum((shown @ shown.T > _ALIKE).sum(axis=1), _MOST_ALIKE)
    weights = (1 / alike).astype(np.float32)
    mean = weights @ shown / weights.sum()
    _, _, patterns = np.linalg.svd((shown - mean) * np.sqrt(weights)[:, None], full_matrices=False)
    return mean, patterns[: min(_MOST_PATTERNS, len(shown) // _PHOTOGRAPHS_A_PATTERN)]


def _blurred(cells: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(
        cv2.GaussianBlur(cells, (0, 0), _SURROUNDINGS, borderType=cv2.BORDER_REFLECT), np.float32
    )


def _of_length_1(rows: NDArray[np.float32], least: float) -> NDArray[np.float32]:
    """Those that are shorter than `least` become 0."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(lengths < least, np.float32(0), rows / np.maximum(lengths, least)).astype(np.float32)
