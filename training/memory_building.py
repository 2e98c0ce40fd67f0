"""Builds the memory of good surface from good photographs, without gradient steps."""

from collections.abc import Sequence
from itertools import chain

import cv2
import keras
import numpy as np
from numpy.typing import NDArray

from segdec.errors import DatasetError
from segdec.network.network import SegDecNet
from segdec.network.surface_memory import DEVIATION, NEAREST, POSITIONS, NearestPatch, distances_without_fold
from training.data.example_source import ExampleSource
from training.data.subsets import pick_evenly
from training.surface_patches import (
    Encode,
    Floats,
    draw_patches,
    measure_distances,
    patch_describer,
    rotated_copies,
    set_projection,
)

MAX_PHOTOGRAPHS = 250
"""Maximum number of photographs; with more of them, evenly chosen ones are used."""

CANDIDATES, ROTATED_CANDIDATES, CANDIDATE_FACTOR = 20_000, 60_000, 20
"""Minimum number of patches among which the remembered ones are chosen, without and with rotated copies, and
its ratio to the number of the remembered ones."""

ROTATED_PHOTOGRAPHS = 80
"""Maximum number of photographs whose rotated copies are remembered."""

PROJECTION_PHOTOGRAPHS = 60
"""Maximum number of photographs whose features determine the projection of patches."""

FARTHEST_PATCHES = 256
"""Patches among which the farthest ones are chosen without comparing all of them again."""

BORDER = 4
"""Distance from the sides of the image, in cells, from which zero padding is hardly noticeable."""

MIN_SPREAD, MIN_DEVIATION = 0.01, 0.1
"""Lower limits of the spread of logarithms of distances, and of the deviation of the highest one in a
photograph, for photographs that are nearly identical."""

MIN_PHOTOGRAPHS, MAX_OUTLIER_SHARE = 20, 0.2
"""Photographs that show what is usual, and the maximum share of those that are unlike the others."""

OUTLIER_DEVIATION = 5.0
"""Robust standard deviations above the median from which a photograph is unlike the others."""

USUAL_LOG_ODDS = -3.0
"""Log-odds of an average good photograph; one standard deviation is 1."""

SEED = 2**32 - 5
"""Separates these random numbers from those of training."""


def build_memory(
    network: SegDecNet, examples: ExampleSource, encode: Encode, seed: int, *, rotate: bool
) -> list[int]:
    """Sets the weights of a network's memory from the good ones among training examples with folds.

    Which distances are usual, and how much they spread, is measured on the photographs of each fold with
    patches that are chosen without them. With `rotate`, copies rotated by right angles are remembered too.

    Returns:
        The indices of the examples that are far less like the others than usual, see `find_outliers`.

    Raises:
        DatasetError: If a fold has no good example.
    """
    memory, folds = network.memory, network.config.folds
    chosen = _choose_examples(examples, folds)
    random = np.random.default_rng([seed, SEED])

    # === Patches ===
    sampled = [index for indices in chosen for index in pick_evenly(indices, PROJECTION_PHOTOGRAPHS // folds)]
    set_projection(memory, encode, [examples[index].image for index in sampled], random)
    describe = patch_describer(memory, encode)
    by_fold = [
        [describe(examples[index].image).astype(np.float16) for index in indices] for indices in chosen
    ]

    # === Memory ===
    remembered, size = by_fold, network.config.memory
    if rotate:
        picked = [pick_evenly(indices, ROTATED_PHOTOGRAPHS // folds) for indices in chosen]
        copies = [rotated_copies(examples[index].image for index in indices) for indices in picked]
        remembered = [[*own, *map(describe, turned)] for own, turned in zip(by_fold, copies, strict=True)]
    number = max(ROTATED_CANDIDATES if rotate else CANDIDATES, CANDIDATE_FACTOR * size)
    drawn = [draw_patches(each, number // folds, random) for each in remembered]
    _set_patches(memory.get_layer(NEAREST), drawn, size)
    parts = [distances_without_fold(memory, fold) for fold in range(folds)]
    measured = [
        one for part, each in zip(parts, by_fold, strict=True) for one in measure_distances(part, each)
    ]
    outliers = find_outliers(_set_deviation(memory, np.stack(measured)))
    return [index for index, found in zip(chain.from_iterable(chosen), outliers, strict=True) if found]


def find_outliers(highest: Floats) -> NDArray[np.bool_]:
    """Returns which photographs [N] have a highest deviation far above the usual one: they may be defective.

    None if the photographs are too few to show what is usual, or too many are far above it.
    """
    from scipy.stats import median_abs_deviation  # takes a second to import

    spread = max(float(median_abs_deviation(highest, scale="normal")), MIN_DEVIATION)
    outliers = np.asarray(highest > np.median(highest) + OUTLIER_DEVIATION * spread)
    known = len(highest) >= MIN_PHOTOGRAPHS and outliers.mean() <= MAX_OUTLIER_SHARE
    return outliers if known else np.zeros_like(outliers)


def _choose_examples(examples: ExampleSource, folds: int) -> list[list[int]]:
    """The indices of good examples of each fold, at most `MAX_PHOTOGRAPHS` together."""
    good: list[list[int]] = [[] for _ in range(folds)]
    for index, label in enumerate(examples.labels):
        fold = examples.fold(index)
        if not label and fold is not None:
            good[fold - 1].append(index)
    if not all(good):
        raise DatasetError(
            f"The {folds} folds of the training photographs have {', '.join(str(len(own)) for own in good)} "
            "good examples. Expected some in each for network.memory: add good photographs, or set "
            "network.memory to 0."
        )
    return [pick_evenly(own, MAX_PHOTOGRAPHS // folds) for own in good]


def choose_coreset(patches: Floats, size: int, kept: Sequence[int] = ()) -> NDArray[np.int64]:
    """Chooses `size` of the patches [N, C], each the one farthest from those before it (k-centre, greedy).

    Returns their indices; `kept` are the first of them. With fewer than `size` patches, some are repeated.
    """
    squares = np.square(patches).sum(axis=1)
    nearest = np.full(len(patches), np.inf, np.float32)
    chosen: list[int] = []

    def add_chosen(indices: Sequence[int]) -> None:
        chosen.extend(indices)
        distances = squares[indices] - 2 * (patches @ patches[indices].T)  # without those of the rows
        np.minimum(nearest, squares + distances.min(axis=1), out=nearest)

    first = [*kept[:size]] or [0]
    for start in range(0, len(first), FARTHEST_PATCHES):
        add_chosen(first[start : start + FARTHEST_PATCHES])
    while (missing := min(size, len(patches)) - len(chosen)) > 0:
        far = np.argpartition(nearest, -min(FARTHEST_PATCHES, len(nearest)))[-FARTHEST_PATCHES:]
        add_chosen(_choose_farthest(patches[far], nearest[far], far, missing))
    return np.resize(np.array(chosen), size)


def _choose_farthest(patches: Floats, nearest: Floats, indices: NDArray[np.int64], most: int) -> list[int]:
    """Returns the next indices of the greedy choice, at most `most`.

    The patches are the farthest ones. While one of them is at least as far as the last one was, it is the
    farthest of all, since distances only decrease.
    """
    bound = nearest.min()
    chosen: list[int] = []
    while len(chosen) < most and (not chosen or nearest.max() >= bound):
        best = nearest.argmax()
        chosen.append(int(indices[best]))
        nearest = np.minimum(nearest, np.square(patches - patches[best]).sum(axis=1))
    return chosen


def _set_patches(nearest: NearestPatch, by_fold: Sequence[Floats], size: int) -> None:
    """Chooses `size` patches to remember, of all candidates and without each fold."""
    candidates = np.concatenate(by_fold)
    fold_of = np.repeat(range(len(by_fold)), [len(own) for own in by_fold])
    whole = choose_coreset(candidates, size)
    nearest.set_patches(candidates[whole])
    for fold in range(len(by_fold)):
        others = np.flatnonzero(fold_of != fold)
        # As many patches as possible are those of the whole memory, for which the usual distances that are
        # measured without a fold must hold too.
        kept = np.flatnonzero(np.isin(others, whole)).tolist()
        nearest.set_patches(candidates[others[choose_coreset(candidates[others], size, kept)]], fold)


def _set_deviation(memory: keras.Model, distances: Floats) -> Floats:
    """Sets what is usual from the distances [N, h, w] of photographs that are not in the memory.

    Returns the highest deviation [N] in each photograph.
    """
    usual = _blur(distances.mean(axis=0), 1.0)
    exceeding = distances - usual
    spread = _spread(np.square(exceeding).mean(axis=0))
    highest = np.asarray((exceeding / spread).max(axis=(1, 2)))
    deviation = max(float(highest.std(ddof=1)), MIN_DEVIATION)
    bias = np.float32(highest.mean() / deviation - USUAL_LOG_ODDS)
    cells = np.ix_(*(_grid_cells(side) for side in usual.shape))
    memory.get_layer(DEVIATION).set_weights([usual[cells], deviation * spread[cells], bias])
    return highest


def _spread(variance: Floats) -> Floats:
    """Returns the standard deviation at each position from a noisy estimate of the variance [h, w].

    It is the geometric mean of two estimates: one from the surrounding cells, and one from all cells at the
    same distances from the sides of the image. Zero padding makes cells at the border differ most.
    """
    variance = variance + MIN_SPREAD**2
    by_side = [_mean_by_border(variance.mean(axis=axis)) for axis in (1, 0)]
    by_border = np.outer(*by_side) / variance.mean()
    return np.asarray((_blur(variance, 2.0) * by_border) ** 0.25)


def _mean_by_border(values: Floats) -> Floats:
    """Replaces each value [side] by the mean of those at the same distance from the nearer end."""
    places = np.arange(len(values))
    near = np.minimum(np.minimum(places, places[::-1]), BORDER)
    return np.array([values[near == one].mean() for one in near])


def _blur(grid: Floats, sigma: float) -> Floats:
    return np.asarray(cv2.GaussianBlur(grid, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE))


def _grid_cells(side: int) -> NDArray[np.int64]:
    """Returns the cell whose value each grid line stores, so that the network reads that of every cell."""
    return ((np.arange(POSITIONS) + 1) * side - 1) // POSITIONS
