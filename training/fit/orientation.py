"""In which orientations the parts are photographed."""

from collections.abc import Sequence

import keras
import numpy as np

from datasets.sample import DataSetItem
from segdec.network.surface_memory import distances_to
from training.config import ExperimentConfig
from training.data.array_cache import ArrayCache
from training.data.example_source import build_source
from training.data.feature_cache import FeatureCache
from training.data.run_data import build_model_config, item_reader
from training.data.subsets import pick_evenly
from training.fit.dataset_profile import Orientation
from training.optimization.pretrained import LoadPretrained, build_initial_network
from training.surface_patches import (
    Floats,
    Image,
    draw_patches,
    measure_distances,
    patch_describer,
    rotated_copies,
    set_projection,
)

PHOTOGRAPHS, PATCHES = 24, 3000
"""Good photographs, and random patches of other folds, that are compared."""

MIN_DECREASE, MAX_INCREASE = 0.01, 0.03
"""The orientation is arbitrary if the median of the logarithms of distances falls by more than the first when
rotated copies replace a part of the patches; the surface is isotropic if it rises by less than the second."""


def detect_orientation(
    config: ExperimentConfig,
    classes: tuple[str, ...],
    items: Sequence[DataSetItem],
    load_weights: LoadPretrained,
) -> Orientation:
    """Returns how good photographs relate to rotated copies of others, by the distances of their patches.

    The experiment has a memory of good surface, the items have folds. Raises a `SegdecError` if photographs
    or the encoder's weights cannot be read.
    """
    network = build_initial_network(config, load_weights(config))
    memory, random = network.memory, np.random.default_rng(config.seed)
    set_projection(memory, random)
    images = _read_good_images(config, classes, items)
    encode = FeatureCache(network.encoder, images[0][0].shape, ArrayCache(0), 0).find
    describe = patch_describer(memory, encode)
    originals = [[*map(describe, own)] for own in images]
    copies = [[*map(describe, rotated_copies(own))] for own in images]
    both = [own + rotated for own, rotated in zip(originals, copies, strict=True)]
    usual, with_copies = (_median_distance(memory, originals, pool, random) for pool in (originals, both))
    if with_copies < usual - MIN_DECREASE:
        return Orientation.ARBITRARY
    return Orientation.ISOTROPIC if with_copies < usual + MAX_INCREASE else Orientation.FIXED


def _read_good_images(
    config: ExperimentConfig, classes: tuple[str, ...], items: Sequence[DataSetItem]
) -> list[list[Image]]:
    folds = config.network.folds
    number, images = PHOTOGRAPHS // folds, []
    for fold in range(1, folds + 1):
        good = [item for item in items if item.fold == fold and not item.label]
        picked = pick_evenly(good, number)
        source = build_source(picked, item_reader(config), build_model_config(config, classes), ArrayCache(0))
        images.append([source[index].image for index in pick_evenly(range(len(source)), number)])
    return images


def _median_distance(
    memory: keras.Model,
    originals: Sequence[list[Floats]],
    pool: Sequence[list[Floats]],
    random: np.random.Generator,
) -> float:
    """Returns the median distance of patches of each fold to random ones of other folds in the pool."""
    distances: list[Floats] = []
    for fold, held_out in enumerate(originals):
        others, candidates = (_patches_of_other_folds(fold, each) for each in (originals, pool))
        number = min(PATCHES, sum(one[..., 0].size for one in others))
        near = distances_to(memory, draw_patches(candidates, number, random))
        distances += measure_distances(near, held_out)
    return float(np.median(distances))


def _patches_of_other_folds(fold: int, patches: Sequence[list[Floats]]) -> list[Floats]:
    return [one for place, own in enumerate(patches) if place != fold for one in own]
