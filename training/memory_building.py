"""Builds the memory of good surface from good photographs, without gradient steps."""

from collections.abc import Iterator, Sequence

import cv2
import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from segdec.errors import DatasetError
from segdec.network.network import SegDecNet
from segdec.network.surface_memory import (
    BORDER,
    DEVIATION,
    NEAREST,
    PATCH_STRIDES,
    PATCH_WIDTH,
    PATCHES,
    POSITIONS,
    SMOOTHED,
    border_distance,
)
from training.data.example_source import ExampleSource
from training.data.subsets import pick_evenly

Floats = NDArray[np.float32]

MAX_PHOTOGRAPHS = 250
"""Maximum number of photographs; with more of them, evenly chosen ones are used."""

CANDIDATES = 20_000
"""Patches among which the remembered ones are chosen."""

BLOCKS = 8
"""Blocks of consecutive photographs, of which every other one belongs to the same half: photographs of one
part are mostly consecutive, and a memory must not be measured on parts that it knows."""

MIN_SPREAD, MIN_DEVIATION = 0.02, 0.1
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
    head = network.head
    assert head is not None

    # === Patches ===
    _set_projection(head, random)
    images = (examples[index].image for index in chosen)
    patches = [one.astype(np.float16) for one in _encode(network, images)]
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
    return patches[np.resize(chosen, size)]


def _set_projection(head: keras.Model, random: np.random.Generator) -> None:
    """Sets the projections to orthogonal ones, which keep distances on average."""
    layers = [head.get_layer(f"{PATCHES}_{stride}") for stride in PATCH_STRIDES]
    channels = [layer.kernel.shape[0] for layer in layers]
    # With fewer channels than numbers of a patch, the columns cannot all be orthogonal.
    normal = random.normal(size=(max(sum(channels), PATCH_WIDTH), PATCH_WIDTH))
    kernel = np.linalg.qr(normal)[0][: sum(channels)] / np.sqrt(PATCH_WIDTH)
    for layer, part in zip(layers, np.split(kernel, np.cumsum(channels)[:-1]), strict=True):
        layer.set_weights([part, np.zeros(PATCH_WIDTH)])


def _encode(network: SegDecNet, images: Iterator[NDArray[np.uint8]]) -> Iterator[Floats]:
    """Yields the patches [h / 8, w / 8, PATCH_WIDTH] of each image [h, w, C]."""
    head = network.head
    patches = keras.Model(head.input, head.get_layer(PATCHES).output)
    encode = tf.function(lambda image: patches(network.encoder(image, training=False)))
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
    """Returns about `number` random patches [N, PATCH_WIDTH], as many of each photograph."""
    share = max(1, number // len(patches))
    flat = [one.reshape(-1, PATCH_WIDTH) for one in patches]
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
    usual = cv2.GaussianBlur(distances.mean(axis=0), (0, 0), 1.0, borderType=cv2.BORDER_REPLICATE)
    exceeding = distances - usual
    spread = np.sqrt(np.square(exceeding).mean(axis=0))  # [h, w]
    overall = max(float(spread.mean()), MIN_SPREAD)
    rows, columns = (
        np.maximum(_border_profile(spread.mean(axis=axis)), MIN_SPREAD) / overall for axis in (1, 0)
    )
    height, width = usual.shape
    spread = overall * np.outer(_along(rows, height), _along(columns, width))
    highest = (exceeding / spread).max(axis=(1, 2))  # [N]
    deviation = max(float(highest.std(ddof=1)), MIN_DEVIATION)
    grid = usual[np.ix_(_grid_places(height), _grid_places(width))]
    bias = np.float32(highest.mean() / deviation - USUAL_LOG_ODDS)
    head.get_layer(DEVIATION).set_weights([grid, rows * overall * deviation, columns, bias])


def _border_profile(values: Floats) -> Floats:
    """Returns the means of values [side] by distance to the nearer end: [BORDER + 1]."""
    near = np.asarray(border_distance(np.arange(len(values)), len(values)))
    inside = values[near == BORDER] if (near == BORDER).any() else values
    means = [
        values[near == place].mean() if (near == place).any() else inside.mean() for place in range(BORDER)
    ]
    return np.array([*means, inside.mean()], np.float32)


def _along(profile: Floats, side: int) -> Floats:
    """Returns the entry of a profile for each of `side` cells."""
    return profile[np.asarray(border_distance(np.arange(side), side))]


def _grid_places(side: int) -> NDArray[np.int64]:
    """Returns the cell whose value each grid line stores, so that the network reads that of every cell."""
    return ((np.arange(POSITIONS) + 1) * side - 1) // POSITIONS
