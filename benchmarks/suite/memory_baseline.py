"""Baseline from good photographs alone: distance to the nearest patch of a memory; nothing is trained.

Reference:
    K. Roth et al., Towards total recall in industrial anomaly detection, CVPR 2022.
"""

from collections.abc import Sequence

import cv2
import numpy as np
import tensorflow as tf

from benchmarks.suite.features import Encode, Floats, read_batches
from datasets.sample import DataSetItem

CHANNELS = 384
"""Channels of a patch after a random projection."""

PHOTOGRAPHS, PATCHES, MEMORY = 250, 20_000, 3_000
"""Limits on good photographs, on the patches drawn from them, and on the patches in the memory."""

BORDER = 2
"""Cells at each edge that are ignored: padding makes them unlike all others."""

SIGMA = 1.0
"""Standard deviation of the Gaussian filter of the distances, cells."""


def score(
    train: Sequence[DataSetItem], test: Sequence[DataSetItem], encode: Encode, size: tuple[int, int]
) -> list[float]:
    """Returns the largest smoothed distance of each test photograph to the memory of good ones in `train`."""
    random = np.random.default_rng(0)
    good = [item for item in train if not item.label]
    good = [good[place] for place in random.permutation(len(good))[:PHOTOGRAPHS]]
    drawn, share = [], max(1, PATCHES // len(good))
    for images, _ in read_batches(good, size):
        for patches in extract_patches(encode(images)):
            drawn.append(random.permutation(patches.reshape(-1, patches.shape[-1]))[:share])
    memory = choose_spread(np.concatenate(drawn), MEMORY)
    return [
        float(cv2.GaussianBlur(nearest_distances(patches, memory), (0, 0), SIGMA).max())
        for images, _ in read_batches(test, size)
        for patches in extract_patches(encode(images))
    ]


def extract_patches(features: Sequence[tf.Tensor]) -> Floats:
    """Returns patches [B, h, w, CHANNELS] of features of strides 8 and 16, averaged over 3 × 3 cells.

    Both strides have the same weight.
    """
    _, middle, coarse = features
    joined = []
    for part in (middle, tf.image.resize(coarse, middle.shape[1:3])):
        smooth = tf.nn.avg_pool2d(part, 3, 1, "SAME")
        joined.append(smooth / tf.sqrt(tf.reduce_mean(smooth**2, -1, keepdims=True) + 1e-6))
    patches = tf.concat(joined, -1)
    projection = np.random.default_rng(1).normal(size=(patches.shape[-1], CHANNELS)) / CHANNELS**0.5
    inner = slice(BORDER, -BORDER)
    found: Floats = (patches @ tf.constant(projection, tf.float32)).numpy()[:, inner, inner]
    return found


def choose_spread(patches: Floats, count: int) -> Floats:
    """Chooses up to `count` patches, each the one farthest from those chosen before (greedy k-center)."""
    squares, chosen = (patches**2).sum(1), [0]
    nearest = np.full(len(patches), np.inf, np.float32)
    while len(chosen) < min(count, len(patches)):
        last = patches[chosen[-1]]
        nearest = np.minimum(nearest, squares - patches @ (2 * last) + squares[chosen[-1]])
        chosen.append(int(nearest.argmax()))
    return patches[chosen]


def nearest_distances(patches: Floats, memory: Floats) -> Floats:
    """Returns the distance of patches [h, w, D] to the nearest one of the memory [M, D]: float32 [h, w]."""
    flat = patches.reshape(-1, patches.shape[-1])
    squares = (flat**2).sum(1)[:, None] + (memory**2).sum(1) - 2 * flat @ memory.T
    nearest = np.sqrt(np.maximum(squares.min(1), 0.0))
    return np.asarray(nearest.reshape(patches.shape[:2]), np.float32)
