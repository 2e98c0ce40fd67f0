"""Near duplicates: photographs of one thing with another exposure, position or compression.

Parts in a fixture look alike without being duplicates. The comparison therefore reduces each photograph to a
thumbnail with normalized brightness and contrast, removes the mean and the principal components of the set,
and correlates the rest. docs/datasets.md has measurements.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

THRESHOLD = 0.7
"""Minimum correlation of near duplicates. Photographs of different things reach 0.3 in KolektorSDD and 0.5 in
DAGM; five in six neighbouring exposures of a magnetic tile are above it. See docs/datasets.md."""

MIN_PHOTOGRAPHS = 10
"""Fewer photographs do not show what they have in common: none of them count as duplicates."""

MAX_PHOTOGRAPHS = 100_000
"""Larger sets are not compared. 100,000 photographs are 5·10⁹ pairs and take a minute or two."""

THUMBNAIL_SIDE = 16
"""Height and width of a thumbnail, cells. A shift by 1 % of the picture hardly changes it."""

THUMBNAIL_BYTES = THUMBNAIL_SIDE * THUMBNAIL_SIDE

_CONTRAST_SIGMA = 2.0  # cells: neighbourhood in which brightness and contrast are normalized
_MIN_CONTRAST = 1.0  # grey levels; smaller contrast is noise
_QUANTIZATION = 32  # int8 steps for a normalized contrast of 1

_MAX_SAMPLES = 2000  # photographs from which the mean and the components are estimated
_SAME = 0.9  # thumbnails that correlate more count as one there, so duplicates do not form a component,
_MAX_SAME = 10  # but at most this many: a larger group is a kind of part
_MAX_COMPONENTS = 20
_PHOTOGRAPHS_PER_COMPONENT = 25  # with fewer, a pair of duplicates would be a component
_MIN_RESIDUAL = 0.03  # length of a residual; a smaller one is rounding error
_BLOCK = 2048  # photographs whose pairs are in memory at a time: 16 MB


class Pairs(NamedTuple):
    """Pairs of photographs: index of the first, index of the second, their correlation, each [N]."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    correlation: NDArray[np.float32]


def normalized_thumbnail(image: NDArray[np.uint8]) -> bytes:
    """Returns the thumbnail of a photograph [H, W, C]: int8 [THUMBNAIL_SIDE, THUMBNAIL_SIDE], row by row."""
    cells = cv2.resize(image, (THUMBNAIL_SIDE, THUMBNAIL_SIDE), interpolation=cv2.INTER_AREA).reshape(
        THUMBNAIL_SIDE, THUMBNAIL_SIDE, -1
    )
    grey = cells.mean(axis=-1, dtype=np.float32)
    detail = grey - _blurred(grey)
    normalized = detail / (np.sqrt(_blurred(detail * detail)) + _MIN_CONTRAST)
    thumbnail: NDArray[np.int8] = np.clip(np.rint(_QUANTIZATION * normalized), -127, 127).astype(np.int8)
    return thumbnail.tobytes()


def distinctive_features(thumbnails: Sequence[bytes]) -> NDArray[np.float32]:
    """Removes from each thumbnail what all have in common.

    Returns:
        float32 [N, THUMBNAIL_BYTES]. Rows have length 1, so that their products are correlations, or are 0
        if a thumbnail shows nothing distinctive.
    """
    cells = np.frombuffer(b"".join(thumbnails), np.int8).reshape(-1, THUMBNAIL_BYTES).astype(np.float32)
    features = _unit_rows(cells - cells.mean(axis=1, keepdims=True), 1.0)
    used = np.flatnonzero(features.any(axis=1))
    if len(used) < MIN_PHOTOGRAPHS:
        return np.zeros_like(features)
    mean, components = _principal_components(features[used[:: -(-len(used) // _MAX_SAMPLES)]])
    residuals = features[used] - mean
    residuals -= residuals @ components.T @ components
    features[used] = _unit_rows(residuals, _MIN_RESIDUAL)
    return features


def similar_pairs(features: NDArray[np.float32]) -> Iterator[Pairs]:
    """Yields all pairs of near duplicates, block by block."""
    for top in range(0, len(features), _BLOCK):
        for left in range(top, len(features), _BLOCK):
            correlation = features[top : top + _BLOCK] @ features[left : left + _BLOCK].T
            rows, columns = np.nonzero(correlation >= THRESHOLD)
            upper = rows + top < columns + left
            rows, columns = rows[upper], columns[upper]
            yield Pairs(rows + top, columns + left, correlation[rows, columns])


def nearest_duplicates(
    features: NDArray[np.float32], is_relevant: Callable[[Pairs], NDArray[np.bool_]]
) -> Pairs:
    """Returns pairs of a photograph and its nearest near duplicate, highest correlation first.

    Args:
        features: From `distinctive_features`.
        is_relevant: Returns which pairs to consider.
    """
    best, nearest = np.zeros(len(features), np.float32), np.zeros(len(features), np.int64)
    for pairs in similar_pairs(features):
        relevant = is_relevant(pairs)
        first, second, correlation = (column[relevant] for column in pairs)
        for index, other in ((first, second), (second, first)):
            better = np.flatnonzero(correlation > best[index])
            better = better[np.argsort(correlation[better], kind="stable")]  # of several, the last is stored
            best[index[better]], nearest[index[better]] = correlation[better], other[better]
    found = np.flatnonzero(best)
    both = np.sort(np.stack([found, nearest[found]], axis=1), axis=1)
    unique, rows = np.unique(both, axis=0, return_index=True)  # two may be each other's nearest
    order = np.argsort(-best[found[rows]], kind="stable")
    return Pairs(unique[order, 0], unique[order, 1], best[found[rows]][order])


def duplicate_clusters(features: NDArray[np.float32]) -> list[NDArray[np.int64]]:
    """Returns the connected components of similar pairs, as indices; each has at least two photographs."""
    first = np.arange(len(features))
    for pairs in similar_pairs(features):
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


def _principal_components(rows: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and principal components; duplicates count as one row."""
    copies = np.minimum((rows @ rows.T > _SAME).sum(axis=1), _MAX_SAME)
    weights = (1 / copies).astype(np.float32)
    mean = weights @ rows / weights.sum()
    _, _, components = np.linalg.svd((rows - mean) * np.sqrt(weights)[:, None], full_matrices=False)
    return mean, components[: min(_MAX_COMPONENTS, len(rows) // _PHOTOGRAPHS_PER_COMPONENT)]


def _blurred(cells: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(
        cv2.GaussianBlur(cells, (0, 0), _CONTRAST_SIGMA, borderType=cv2.BORDER_REFLECT), np.float32
    )


def _unit_rows(rows: NDArray[np.float32], min_length: float) -> NDArray[np.float32]:
    """Scales rows to length 1; rows shorter than `min_length` become 0."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled = rows / np.maximum(lengths, min_length)
    return np.where(lengths < min_length, np.float32(0), scaled).astype(np.float32)
