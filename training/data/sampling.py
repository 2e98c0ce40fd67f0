"""The order of the training images and of added defects: a function of seed and stage."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segdec.errors import DatasetError
from training.config import Sampling

Indices = NDArray[np.int64]

UNCHANGED, SYNTHETIC, FEATURE_NOISE = -1, -2, -3
"""Source of a defect other than another image: the image itself, synthetic, or noise in features."""

_PROBABILITIES, _HOSTS, _DONORS, _NOISES = 2**32 - 1, 2**32 - 2, 2**32 - 3, 2**32 - 4
"""Streams of random numbers; class indices are used too."""

MAX_ROUNDS = 64
"""Maximum number of rounds in which `frequency` draws all good images."""


def draw_order(sampling: Sampling, labels: Sequence[int], draws: int, seed: Sequence[int]) -> Indices:
    """Returns indices [draws] of the images to train on; a longer order starts with the shorter one.

    `alternate` and `frequency` alternate defective and good images. The defect classes alternate too; each is
    shuffled anew once all of its images were drawn. With `alternate` the good images are shuffled in the same
    way. `frequency` draws as many good images per round as there are defective ones, preferring those drawn
    less often (Božič et al. 2021). `shuffled` shuffles all images regardless of their classes (0 is good).
    Raises a `DatasetError` if there is no good or no defective image.
    """
    classes = np.asarray(labels, np.int64)
    defects = [int(label) for label in np.unique(classes) if label]
    good = np.flatnonzero(classes == 0)
    if not defects or not len(good):
        raise DatasetError(
            f"None of the {len(classes)} training images is {'good' if defects else 'defective'}. Expected "
            "good and defective ones: check the splits."
        )
    if sampling == "shuffled":
        return _rounds(np.arange(len(classes)), draws, seed)
    order = np.empty(draws, np.int64)
    if sampling == "frequency":
        order[1::2] = _rarest_first(good, len(classes) - len(good), draws // 2, [*seed, 0])
    else:
        order[1::2] = _rounds(good, draws // 2, [*seed, 0])
    defective = np.arange(0, draws, 2)
    for number, label in enumerate(defects):
        positions = defective[number :: len(defects)]
        order[positions] = _rounds(np.flatnonzero(classes == label), len(positions), [*seed, label])
    return order


class SampleOrder(NamedTuple):
    """Indices [N] of images in the order of training, and the sources of the defects added to good ones.

    `defect_sources` are these sources: index of another image, `SYNTHETIC`, `FEATURE_NOISE` or `UNCHANGED`.
    """

    images: Indices
    defect_sources: Indices


def sample_order(
    sampling: Sampling,
    labels: Sequence[int],
    drawn_masks: Sequence[bool],
    draws: int,
    seed: Sequence[int],
    *,
    synthetic: float = 0.0,
    transplant: float = 0.0,
    feature_noise: float = 0.0,
) -> SampleOrder:
    """Draws the order like `draw_order`, and the good images that get a defect.

    With `alternate` and `frequency` a good image with an added defect replaces a defective one: with
    probability `synthetic` it gets a synthetic defect, otherwise with probability `transplant` the defect of
    the replaced image, if this has a drawn mask. With `shuffled` a good image gets one with the same
    probabilities. Without defective images every defective position gets a synthetic defect. Each synthetic
    defect is noise in features with probability `feature_noise`. Raises a `DatasetError` if there is no good
    image, or no defective one and `synthetic` is 0.
    """
    classes = np.asarray(labels, np.int64)
    good = np.flatnonzero(classes == 0)
    if synthetic and len(good) == len(classes) > 0:
        order = _good_sample_order(sampling, good, draws, seed, synthetic)
    else:
        order = _mixed_sample_order(sampling, classes, drawn_masks, draws, seed, synthetic, transplant)
    noise = np.random.default_rng([*seed, _NOISES]).random(draws) < feature_noise
    defect_sources = np.where(
        noise & (order.defect_sources == SYNTHETIC), FEATURE_NOISE, order.defect_sources
    )
    return SampleOrder(order.images, defect_sources)


def _mixed_sample_order(
    sampling: Sampling,
    classes: Indices,
    drawn_masks: Sequence[bool],
    draws: int,
    seed: Sequence[int],
    synthetic: float,
    transplant: float,
) -> SampleOrder:
    good = np.flatnonzero(classes == 0)
    images = draw_order(sampling, classes.tolist(), draws, seed)
    defect_sources = np.full(draws, UNCHANGED, np.int64)
    drawn = np.random.default_rng([*seed, _PROBABILITIES]).random((draws, 2))
    if sampling == "shuffled":
        candidates, sources = classes[images] == 0, _pick(np.flatnonzero(drawn_masks), draws, seed)
    else:
        candidates, sources = classes[images] != 0, images
    synthesized = candidates & (drawn[:, 0] < synthetic)
    known = np.append(np.asarray(drawn_masks, np.bool_), False)[sources]  # the last entry is for index −1
    transplanted = candidates & ~synthesized & known & (drawn[:, 1] < transplant)
    defect_sources[synthesized], defect_sources[transplanted] = SYNTHETIC, sources[transplanted]
    if sampling != "shuffled":
        changed = np.flatnonzero(defect_sources != UNCHANGED)
        images[changed] = _rounds(good, len(changed), [*seed, _HOSTS])
    return SampleOrder(images, defect_sources)


def _good_sample_order(
    sampling: Sampling, good: Indices, draws: int, seed: Sequence[int], synthetic: float
) -> SampleOrder:
    defect_sources = np.full(draws, UNCHANGED, np.int64)
    if sampling == "shuffled":
        drawn = np.random.default_rng([*seed, _PROBABILITIES]).random((draws, 2))
        defect_sources[drawn[:, 0] < synthetic] = SYNTHETIC
        return SampleOrder(_rounds(good, draws, seed), defect_sources)
    images = np.empty(draws, np.int64)
    images[0::2] = _rounds(good, len(images[0::2]), [*seed, _HOSTS])
    images[1::2] = _rounds(good, draws // 2, [*seed, 0])
    defect_sources[0::2] = SYNTHETIC
    return SampleOrder(images, defect_sources)


def _pick(indices: Indices, draws: int, seed: Sequence[int]) -> Indices:
    """One of them for each draw; -1 if there are none."""
    if not len(indices):
        return np.full(draws, -1, np.int64)
    chosen = np.random.default_rng([*seed, _DONORS]).random(draws) * len(indices)
    return indices[chosen.astype(np.int64)]


def _rounds(indices: Indices, draws: int, seed: Sequence[int]) -> Indices:
    """The indices repeatedly, each round in a new order."""
    if len(indices) == 1:  # faster, with the same result
        return np.full(draws, indices[0], np.int64)
    rounds = -(-draws // len(indices))
    orders = [np.random.default_rng([*seed, number]).permutation(indices) for number in range(rounds)]
    return np.concatenate([indices[:0], *orders])[:draws]


def frequency_log_weights(counts: Indices) -> NDArray[np.float64]:
    """Returns the logarithms [N] of the weights with which images are drawn; −∞ if others are preferred.

    The weights are (1 − f/max − median + 1)^(4 · ln N), where f is the number of draws of each of the N
    images, max the largest f and median that of 1 − f/max. Source: the code published with Božič et al. 2021.
    """
    rarity = 1.0 - counts / max(1, counts.max())
    with np.errstate(divide="ignore"):
        logs: NDArray[np.float64] = np.log(rarity - np.median(rarity) + 1.0)
    return logs * (4.0 * math.log(len(counts)))


def _rarest_first(indices: Indices, defective: int, draws: int, seed: Sequence[int]) -> Indices:
    """Rounds without replacement, with the length of those of the defective images."""
    length = min(len(indices), max(defective, -(-len(indices) // MAX_ROUNDS)))
    counts = np.zeros(len(indices), np.int64)
    orders = [indices[:0]]
    for number in range(-(-draws // length)):
        noise = np.random.default_rng([*seed, number]).gumbel(size=len(indices))
        # Gumbel-top-k: the largest sums are a weighted draw without replacement.
        chosen = np.argsort(-(noise + frequency_log_weights(counts)), kind="stable")[:length]
        counts[chosen] += 1
        orders.append(indices[chosen])
    return np.concatenate(orders)[:draws]
