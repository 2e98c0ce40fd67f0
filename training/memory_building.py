"""Builds the memory of good surface from good photographs, without gradient steps."""

from collections.abc import Iterator, Sequence
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
    SMOOTHED,
)
from training.data.example_source import ExampleSource
from training.data.subsets import pick_evenly

Floats = NDArray[np.floating[Any]]

MAX_PHOTOGRAPHS = 250
"""Maximum number of photographs; with more of them, evenly chosen ones are used."""

CANDIDATES = 20_000
"""Patches among which the remembered ones are chosen."""

BLOCKS = 8
"""Blocks of consecutive photographs, of which every other one belongs to the same half: photographs of one
part are mostly consecutive, and a memory must not be measured on parts that it knows."""

BORDER = 4
"""Distance from the sides of the image, in cells, from which zero padding is hardly noticeable."""

MIN_SPREAD, MIN_DEVIATION = 0.01, 0.1
"""Lower limits of the spread of logarithms of distances, and of the deviation of the highest one in a
photograph, for photographs that are nearly identical."""

USUAL_LOG_ODDS = -3.0
"""Log-odds of an average good photograph; one standard deviation is 1."""

SEED = 2**32 - 5
"""Separates these random numbers from those of training."""


def build_memory(network: SegDecNet, examples: ExampleSource, seed: int) -> None:
    """Sets the weights of a network's memory from the good ones among the training examples.

    Which distances are usual, and how much they spread, is measured on photographs that are not in the
    memory: each half of them with a memory of the other half.

    Raises:
        DatasetError: If there are fewer than two good examples.
    """
    good = [index for index, label in enumerate(examples.labels) if not label]
    if len(good) < 2:
        raise DatasetError(
            f"The training split has {len(good)} good examples. Expected two or more for network.memory: add "
            "good photographs, or set network.memory to 0 and augmentation.synthetic above 0."
        )
    chosen = [good[place] for place in pick_evenly(range(len(good)), MAX_PHOTOGRAPHS)]
    random = np.random.default_rng([seed, SEED])
    (head,) = network.heads

    # === Patches ===
    _set_projection(head, random)
    images = (examples[index].image for index in chosen)
    patches = [one.astype(np.float16) for one in _encode(network.encoder, head, images)]
    center = np.mean([one.mean(axis=(0, 1), dtype=np.float32) for one in patches], axis=0)
    head.get_layer(f"{PATCHES}_8").bias.assign(-center)
    patches = [one - center.astype(np.float16) for one in patches]

    # === Usual distances ===
    memory, size = head.get_layer(NEAREST), network.config.memory
    measured: list[Floats] = []
    for known, others in _halves(patches):
        memory.set_patches(choose_coreset(_candidates(known, CANDIDATES // 2, random), size))
        measured += _distances(head, others)
    _set_deviation(head, np.stack(measured))

    # === Memory ===
    memory.set_patches(choose_coreset(_candidates(patches, CANDIDATES, random), size))


def choose_coreset(patches: Floats, size: int) -> Floats:
    """Chooses `size` of the patches [N, C], each the one farthest from those before it (k-centre, greedy).

    With fewer than `size` patches, some are repeated.
    """
    squares = np.square(patches).sum(axis=1)
    chosen, nearest = [0], np.full(len(patches), np.inf, np.float32)
    while len(chosen) < min(size, len(patches)):
        last = chosen[-1]
        np.minimum(nearest, squares + squares[last] - 2 * (patches @ patches[last]), out=nearest)
        chosen.append(int(nearest.argmax()))
    coreset: Floats = patches[np.resize(chosen, size)]
    return coreset


def _set_projection(head: keras.Model, random: np.random.Generator) -> None:
    """Sets the projections to orthogonal ones, which keep distances on average."""
    layers = [head.get_layer(f"{PATCHES}_{stride}") for stride in PATCH_STRIDES]
    channels = [layer.kernel.shape[0] for layer in layers]
    # With fewer channels than numbers of a patch, the columns cannot all be orthogonal.
    width = layers[0].width
    normal = random.normal(size=(max(sum(channels), width), width))
    kernel = np.linalg.qr(normal)[0][: sum(channels)] / np.sqrt(width)
    for layer, part in zip(layers, np.split(kernel, np.cumsum(channels)[:-1]), strict=True):
        layer.set_weights([part, np.zeros(width)])


def _encode(encoder: Any, head: keras.Model, images: Iterator[NDArray[np.uint8]]) -> Iterator[Floats]:
    """Yields the patches [h / 8, w / 8, D] of each image [h, w, C]."""
    patches = keras.Model(head.input, head.get_layer(PATCHES).output)
    encode = tf.function(lambda image: patches(encoder(image, training=False)))
    for image in images:
        yield encode(tf.constant(image[None], tf.float32))[0].numpy()


def _halves(patches: Sequence[Floats]) -> Iterator[tuple[list[Floats], list[Floats]]]:
    """Yields each half of the photographs, together with the other one."""
    places = np.arange(len(patches))
    sides = places % 2 if len(patches) < BLOCKS else places * BLOCKS // len(patches) % 2
    halves = [[one for one, own in zip(patches, sides, strict=True) if own == side] for side in (0, 1)]
    yield halves[0], halves[1]
    yield halves[1], halves[0]


def _candidates(patches: Sequence[Floats], number: int, random: np.random.Generator) -> Floats:
    """Returns about `number` random patches [N, D], as many of each photograph."""
    share = max(1, number // len(patches))
    flat = [one.reshape(-1, one.shape[-1]) for one in patches]
    drawn = [one[random.permutation(len(one))[:share]] for one in flat]
    return np.concatenate(drawn).astype(np.float32)


def _distances(head: keras.Model, patches: Sequence[Floats]) -> Iterator[Floats]:
    """Yields the smoothed logarithms of the distances [h, w] of each photograph's patches [h, w, ·]."""
    part = keras.Model(head.get_layer(PATCHES).output, head.get_layer(SMOOTHED).output)
    measure = tf.function(lambda one: part(one, training=False))
    for one in patches:
        yield measure(tf.constant(one[None], tf.float32))[0, ..., 0].numpy()


def _set_deviation(head: keras.Model, distances: Floats) -> None:
    """Sets what is usual from the distances [N, h, w] of photographs that are not in the memory."""
    usual = _blur(distances.mean(axis=0), 1.0)
    exceeding = distances - usual
    spread = _spread(np.square(exceeding).mean(axis=0))
    highest = (exceeding / spread).max(axis=(1, 2))  # [N]
    deviation = max(float(highest.std(ddof=1)), MIN_DEVIATION)
    bias = np.float32(highest.mean() / deviation - USUAL_LOG_ODDS)
    cells = np.ix_(*(_grid_cells(side) for side in usual.shape))
    head.get_layer(DEVIATION).set_weights([usual[cells], deviation * spread[cells], bias])


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
