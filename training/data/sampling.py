"""The order of the images, and which good ones get a defect: a pure function of seed and stage."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segdec.errors import DatasetError

Indices = NDArray[np.int64]

Sampling = Literal["alternate", "frequency", "shuffled"]

UNCHANGED, SYNTHETIC, FEATURE_NOISE = -1, -2, -3
"""Where a defect comes from, if not from another image: its own, made up, or noise in features."""

_CHANCES, _HOSTS, _DONORS, _NOISES = 2**32 - 1, 2**32 - 2, 2**32 - 3, 2**32 - 4
"""Beside class indices in a seed."""

MAX_ROUNDS = 64
"""A round of good images is at least their number divided by this, so that they are gone through in few."""


def draw_order(
    sampling: Sampling,
    labels: Sequence[int],
    draws: int,
    seed: Sequence[int],
) -> Indices:
    """Returns indices of the images to train on; a longer order begins with the shorter ones.

    `alternate` and `frequency` take good and defective images in turn, whichever are the fewer; the
    defect classes take turns, and each is gone through whole, in a new order each time, before one of its
    images comes again. So are the good images with `alternate`. With `frequency` rounds of as many good
    images as there are defective ones are drawn, the more likely the less often they have been (Božič et al.
    2021). `shuffled` goes through all images whole, whatever their classes.

    Args:
        sampling: The policy.
        labels: Class of each image; 0 is good.
        draws: How many indices.
        seed: Numbers that decide the order.

    Returns:
        [draws].

    Raises:
        DatasetError: If there is no good or no defective image.
    """
    classes = np.asarray(labels, np.int64)
    defects = [int(label) for label in np.unique(classes) if label]
    _check_both(classes, defects)
    if sampling == "shuffled":
        return _rounds(np.arange(len(classes)), draws, seed)
    good = np.flatnonzero(classes == 0)
    order = np.empty(draws, np.int64)
    if sampling == "frequency":
        order[1::2] = _rarest_first(good, len(classes) - len(good), draws // 2, [*seed, 0])
    else:
        order[1::2] = _rounds(good, draws // 2, [*seed, 0])
    turns = np.arange(0, draws, 2)
    for number, label in enumerate(defects):
        places = turns[number :: len(defects)]
        order[places] = _rounds(np.flatnonzero(classes == label), len(places), [*seed, label])
    return order


class SampleOrder(NamedTuple):
    """What is trained on, in its order.

    Attributes:
        images: Index of the image whose turn it is [N].
        donors: Index of the image whose defect it gets, `SYNTHETIC`, `FEATURE_NOISE` or `UNCHANGED` [N]. What gets one
            is good.
    """

    images: Indices
    donors: Indices


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
    """Draws the order, as `draw_order` does, and which good images get a defect in it.

    `alternate` and `frequency` keep good and defective images in turn: a good image with a defect takes the
    turn of a defective one, with the chance `synthetic` a made-up one, else with the chance `transplant` the
    defect of the image whose turn it was. `shuffled` gives a good image one in its own turn, by the same
    chances. If no image is defective, each defective turn is that of a made-up one.

    Args:
        sampling: The policy.
        labels: Class of each image; 0 is good.
        outlined: Of which images the defect has a drawn mask.
        draws: How many turns.
        seed: Numbers that decide.
        synthetic: Chance of a made-up defect.
        transplant: Chance of another image's defect.
        feature_noise: Chance that a made-up defect is noise in features.

    Raises:
        DatasetError: If there is no good image, or no defective one and `synthetic` is 0.
    """
    classes = np.asarray(labels, np.int64)
    good = np.flatnonzero(classes == 0)
    if synthetic and len(good) == len(classes) > 0:
        turns = _good_sample_order(sampling, good, draws, seed, synthetic)
    else:
        turns = _mixed_sample_order(sampling, classes, drawn_masks, draws, seed, synthetic, transplant)
    noise = np.random.default_rng([*seed, _NOISES]).random(draws) < feature_noise
    return SampleOrder(
        turns.images, np.where(noise & (turns.donors == SYNTHETIC), FEATURE_NOISE, turns.donors)
    )


def _mixed_sample_order(
    sampling: Sampling,
    classes: Indices,
    drawn_masks: Sequence[bool],
    draws: int,
    seed: Sequence[int],
    synthetic: float,
    transplant: float,
) -> SampleOrder:
    """With defective images."""
    good = np.flatnonzero(classes == 0)
    images = draw_order(sampling, classes.tolist(), draws, seed)
    donors = np.full(draws, UNCHANGED, np.int64)
    chances = np.random.default_rng([*seed, _CHANCES]).random((draws, 2))
    if sampling == "shuffled":
        open_turns, sources = classes[images] == 0, _pick(np.flatnonzero(drawn_masks), draws, seed)
    else:
        open_turns, sources = classes[images] != 0, images
    made_up = open_turns & (chances[:, 0] < synthetic)
    known = np.append(np.asarray(drawn_masks, np.bool_), False)[sources]  # the last one is that of no source
    transplanted = open_turns & ~made_up & known & (chances[:, 1] < transplant)
    donors[made_up], donors[transplanted] = SYNTHETIC, sources[transplanted]
    if sampling != "shuffled":
        changed = np.flatnonzero(donors != UNCHANGED)
        images[changed] = _rounds(good, len(changed), [*seed, _HOSTS])
    return SampleOrder(images, donors)


def _good_sample_order(
    sampling: Sampling, good: Indices, draws: int, seed: Sequence[int], synthetic: float
) -> SampleOrder:
    """Without any defective image."""
    donors = np.full(draws, UNCHANGED, np.int64)
    if sampling == "shuffled":
        donors[np.random.default_rng([*seed, _CHANCES]).random((draws, 2))[:, 0] < synthetic] = SYNTHETIC
        return SampleOrder(_rounds(good, draws, seed), donors)
    images = np.empty(draws, np.int64)
    images[0::2] = _rounds(good, len(images[0::2]), [*seed, _HOSTS])
    images[1::2] = _rounds(good, draws // 2, [*seed, 0])
    donors[0::2] = SYNTHETIC
    return SampleOrder(images, donors)


def _pick(indices: Indices, draws: int, seed: Sequence[int]) -> Indices:
    """Any of them for each draw; -1 if there is none."""
    if not len(indices):
        return np.full(draws, -1, np.int64)
    chosen = np.random.default_rng([*seed, _DONORS]).random(draws) * len(indices)
    return indices[chosen.astype(np.int64)]


def _check_both(classes: Indices, defects: Sequence[int]) -> None:
    if not defects or not (classes == 0).any():
        missing = "defective" if not defects else "good"
        raise DatasetError(
            f"The training split has {len(classes)} images and none is {missing}. "
            "Expected good and defective ones: check the splits."
        )


def _rounds(indices: Indices, draws: int, seed: Sequence[int]) -> Indices:
    """The indices again and again, each round in its own order."""
    if len(indices) == 1:  # quickly, though it is the same
        return np.full(draws, indices[0], np.int64)
    rounds = -(-draws // len(indices))
    orders = [np.random.default_rng([*seed, number]).permutation(indices) for number in range(rounds)]
    return np.concatenate([indices[:0], *orders])[:draws]


def frequency_log_weights(counts: Indices) -> NDArray[np.float64]:
    """Returns the logarithms of the weights by which images are drawn.

    (1 − f/max − median + 1)^(4 · ln N), f being how often each of the N images was drawn, max the largest f
    and median that of 1 − f/max: what was drawn most hardly comes while others wait. Source: the method
    published with Božič et al. 2021.

    Args:
        counts: How often each image was drawn [N].

    Returns:
        [N], −∞ for what is not to be drawn while there is anything else.
    """
    rarity = 1.0 - counts / max(1, counts.max())
    with np.errstate(divide="ignore"):
        logs: NDArray[np.float64] = np.log(rarity - np.median(rarity) + 1.0)
    return logs * (4.0 * math.log(len(counts)))


def _rarest_first(indices: Indices, defective: int, draws: int, seed: Sequence[int]) -> Indices:
    """Rounds without replacement, as long as those of the defective images, but not many more than needed."""
    length = min(len(indices), max(defective, -(-len(indices) // MAX_ROUNDS)))
    counts = np.zeros(len(indices), np.int64)
    orders = [indices[:0]]
    for number in range(-(-draws // length)):
        noise = np.random.default_rng([*seed, number]).gumbel(size=len(indices))
        # The largest sums of log-weight and Gumbel noise are a weighted draw without replacement.
        chosen = np.argsort(-(noise + frequency_log_weights(counts)), kind="stable")[:length]
        counts[chosen] += 1
        orders.append(indices[chosen])
    return np.concatenate(orders)[:draws]
