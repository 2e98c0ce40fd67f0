"""Builds the memory of good surface from good photographs, without gradient steps."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cv2
import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from segdec.errors import DatasetError
from segdec.network.network import SegDecNet
from segdec.network.surface_memory import (
    DEVIATION,
    NEAREST,
    PATCH_STRIDES,
    PATCHES,
    POSITIONS,
    NearestPatch,
    distances_to,
    distances_without_fold,
)
from training.data.array_cache import Arrays
from training.data.example_source import ExampleSource
from training.data.subsets import pick_evenly

Floats = NDArray[np.floating[Any]]
Encode = Callable[[NDArray[np.uint8]], Arrays]
"""Returns the encoder's features by name of a prepared image, uint8 [h, w, C]."""

MAX_PHOTOGRAPHS = 250
"""Maximum number of photographs; with more of them, evenly chosen ones are used."""

CANDIDATES, ROTATED_CANDIDATES = 20_000, 60_000
"""Patches among which the remembered ones are chosen, without and with rotated copies."""

COMPARED_PHOTOGRAPHS, COMPARED_PATCHES = 24, 3000
"""Photographs with rotated copies, and random patches, that show whether the orientation of parts is
arbitrary."""

ROTATED_PHOTOGRAPHS = 80
"""Maximum number of photographs whose rotated copies are remembered."""

HIGH, MIN_GAIN = 0.99, 0.02
"""The orientation of parts is arbitrary if this quantile of the logarithms of distances falls by more than
this when copies replace a part of the patches."""

BORDER = 4
"""Distance from the sides of the image, in cells, from which zero padding is hardly noticeable."""

MIN_SPREAD, MIN_DEVIATION = 0.01, 0.1
"""Lower limits of the spread of logarithms of distances, and of the deviation of the highest one in a
photograph, for photographs that are nearly identical."""

USUAL_LOG_ODDS = -3.0
"""Log-odds of an average good photograph; one standard deviation is 1."""

SEED = 2**32 - 5
"""Separates these random numbers from those of training."""


def build_memory(network: SegDecNet, examples: ExampleSource, encode: Encode, seed: int) -> None:
    """Sets the weights of a network's memory from the good ones among the training examples.

    If the orientation of the parts is arbitrary, copies that are rotated by right angles are remembered too.
    Which distances are usual, and how much they spread, is measured on the photographs of each fold with
    patches that are chosen without them.

    Args:
        network: A network with a memory.
        examples: The training examples, each with its fold.
        encode: Encodes an image.
        seed: Seed of the choice.

    Raises:
        DatasetError: If a fold has no good example.
    """
    memory, folds = network.memory, network.config.folds
    chosen = _choose_examples(examples, folds)
    random = np.random.default_rng([seed, SEED])

    # === Patches ===
    set_projection(memory, random)
    images = (examples[index].image for indices in chosen for index in indices)
    patches = [one.astype(np.float16) for one in _describe(memory, map(encode, images))]
    center = np.mean([one.mean(axis=(0, 1), dtype=np.float32) for one in patches], axis=0)
    memory.get_layer(f"{PATCHES}_8").bias.assign(-center)
    own = iter([one - center.astype(np.float16) for one in patches])
    by_fold = [[next(own) for _ in indices] for indices in chosen]

    # === Rotated copies ===
    def describe_copies(number: int) -> list[list[Floats]]:
        picked = [pick_evenly(indices, number // folds) for indices in chosen]
        return _describe_rotated(memory, encode, [[examples[one].image for one in own] for own in picked])

    remembered, number = by_fold, CANDIDATES
    compared = [pick_evenly(each, COMPARED_PHOTOGRAPHS // folds) for each in by_fold]
    if _has_arbitrary_orientation(
        memory, compared, describe_copies(COMPARED_PHOTOGRAPHS), random.spawn(1)[0]
    ):
        copies = describe_copies(ROTATED_PHOTOGRAPHS)
        remembered = [own + others for own, others in zip(by_fold, copies, strict=True)]
        number = ROTATED_CANDIDATES

    # === Memory ===
    drawn = [_candidates(each, number // folds, random) for each in remembered]
    _set_patches(memory.get_layer(NEAREST), drawn, network.config.memory)
    parts = [distances_without_fold(memory, fold) for fold in range(folds)]
    measured = [
        one for part, each in zip(parts, by_fold, strict=True) for one in _measure_distances(part, each)
    ]
    _set_deviation(memory, np.stack(measured))


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
    chosen: list[int] = []
    nearest = np.full(len(patches), np.inf, np.float32)
    while len(chosen) < min(size, len(patches)):
        last = int(kept[len(chosen)] if len(chosen) < len(kept) else nearest.argmax())
        chosen.append(last)
        np.minimum(nearest, squares + squares[last] - 2 * (patches @ patches[last]), out=nearest)
    return np.resize(np.array(chosen), size)


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


def set_projection(memory: keras.Model, random: np.random.Generator) -> None:
    """Sets the projections of a memory to orthogonal ones, which keep distances on average."""
    layers = [memory.get_layer(f"{PATCHES}_{stride}") for stride in PATCH_STRIDES]
    channels = [layer.kernel.shape[0] for layer in layers]
    # With fewer channels than numbers of a patch, the columns cannot all be orthogonal.
    width = layers[0].width
    normal = random.normal(size=(max(sum(channels), width), width))
    kernel = np.linalg.qr(normal)[0][: sum(channels)] / np.sqrt(width)
    for layer, part in zip(layers, np.split(kernel, np.cumsum(channels)[:-1]), strict=True):
        layer.set_weights([part, np.zeros(width)])


def _describe(memory: keras.Model, features: Iterator[Arrays]) -> Iterator[Floats]:
    """Yields the patches [h / 8, w / 8, D] of the features of each image."""
    part = keras.Model(memory.input, memory.get_layer(PATCHES).output)
    names, describe = list(memory.input), tf.function(lambda inputs: part(inputs, training=False))
    for one in features:
        yield describe({name: tf.constant(one[name][None], tf.float32) for name in names})[0].numpy()


def _describe_rotated(
    memory: keras.Model, encode: Encode, by_fold: Sequence[Sequence[NDArray[np.uint8]]]
) -> list[list[Floats]]:
    """Returns the patches of copies of images [h, w, C], rotated by the right angles that keep the size."""
    height, width = by_fold[0][0].shape[:2]
    turns = (1, 2, 3) if height == width else (2,)
    images = (image for images in by_fold for image in images)
    copies = (np.ascontiguousarray(np.rot90(image, turn)) for image in images for turn in turns)
    described = _describe(memory, map(encode, copies))
    return [[next(described) for _ in images for _ in turns] for images in by_fold]


def _candidates(patches: Sequence[Floats], number: int, random: np.random.Generator) -> Floats:
    """Returns about `number` random patches [N, D], as many of each photograph."""
    share = max(1, number // len(patches))
    flat = [one.reshape(-1, one.shape[-1]) for one in patches]
    drawn = [one[random.permutation(len(one))[:share]] for one in flat]
    return np.concatenate(drawn).astype(np.float32)


def _has_arbitrary_orientation(
    memory: keras.Model,
    originals: Sequence[list[Floats]],
    copies: Sequence[list[Floats]],
    random: np.random.Generator,
) -> bool:
    """Whether photographs resemble rotated copies of others as much as these others.

    Distances of the patches of each fold to random ones of the other folds are compared with those to as many
    random ones of the other folds and their rotated copies.
    """
    high = []
    for pools in (originals, [own + rotated for own, rotated in zip(originals, copies, strict=True)]):
        distances: list[Floats] = []
        for fold, held_out in enumerate(originals):
            others, pool = (_patches_of_other_folds(fold, each) for each in (originals, pools))
            number = min(COMPARED_PATCHES, sum(one[..., 0].size for one in others))
            distances += _measure_distances(distances_to(memory, _candidates(pool, number, random)), held_out)
        high.append(float(np.quantile(distances, HIGH)))
    return high[0] - high[1] > MIN_GAIN


def _patches_of_other_folds(fold: int, patches: Sequence[list[Floats]]) -> list[Floats]:
    return [one for place, own in enumerate(patches) if place != fold for one in own]


def _measure_distances(distances: keras.Model, patches: Sequence[Floats]) -> Iterator[Floats]:
    """Yields the smoothed logarithms of distances [h, w] of the patches [h, w, D] of each photograph."""
    for one in patches:
        yield distances(tf.constant(one[None], tf.float32), training=False)[0, ..., 0].numpy()


def _set_deviation(memory: keras.Model, distances: Floats) -> None:
    """Sets what is usual from the distances [N, h, w] of photographs that are not in the memory."""
    usual = _blur(distances.mean(axis=0), 1.0)
    exceeding = distances - usual
    spread = _spread(np.square(exceeding).mean(axis=0))
    highest = (exceeding / spread).max(axis=(1, 2))  # [N]
    deviation = max(float(highest.std(ddof=1)), MIN_DEVIATION)
    bias = np.float32(highest.mean() / deviation - USUAL_LOG_ODDS)
    cells = np.ix_(*(_grid_cells(side) for side in usual.shape))
    memory.get_layer(DEVIATION).set_weights([usual[cells], deviation * spread[cells], bias])


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
