"""In which orientations the parts are photographed."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np

from datasets.sample import DataSetItem
from segdec.network.surface_memory import MIN_DISTANCE
from training.config import ExperimentConfig
from training.data.array_cache import ArrayCache
from training.data.augmentation import rotations_keeping_size
from training.data.example_source import build_source
from training.data.feature_cache import FeatureCache
from training.data.run_data import build_model_config, item_reader
from training.data.subsets import pick_evenly
from training.fit.dataset_profile import Orientation
from training.optimization.pretrained import LoadPretrained, build_initial_network
from training.surface_patches import Floats, Image, draw_patches, patch_describer, set_projection

PHOTOGRAPHS, PATCHES = 24, 3000
"""Good photographs that are compared, and random patches of them and their copies that show which cells are
unusual."""

PATCHES_AT_ONCE = 1000
"""Patches whose distances are computed together."""

UNUSUAL_CELLS, UNUSUAL_SHARE = 100, 1 / 8
"""Maximum number and share of the cells of a photograph that are compared: those farthest from other
photographs and their copies. The others are mostly background."""

MIN_NEARER, MIN_DECREASE = 0.25, 0.045
"""The orientation is fixed if a smaller share of these cells is nearer to rotated copies than to photographs.
It is arbitrary if the copies decrease the mean logarithm of their distances by more than the second;
otherwise the surface is isotropic."""


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
    images = _read_good_images(config, classes, items)
    encode = FeatureCache(network.encoder, images[0][0].shape, ArrayCache(0), 0).find
    set_projection(memory, encode, [image for own in images for image in own], random)
    describe = patch_describer(memory, encode)
    originals = [[*map(describe, own)] for own in images]
    turns = cycle(rotations_keeping_size(images[0][0].shape)[1:])
    copies = [
        [describe(np.ascontiguousarray(np.rot90(image, next(turns)))) for image in own] for own in images
    ]
    nearer, decrease = _compare_copies(originals, copies, random)
    if nearer < MIN_NEARER:
        return Orientation.FIXED
    return Orientation.ARBITRARY if decrease > MIN_DECREASE else Orientation.ISOTROPIC


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


def _compare_copies(
    originals: Sequence[list[Floats]], copies: Sequence[list[Floats]], random: np.random.Generator
) -> tuple[float, float]:
    """Compares unusual cells of each fold with the photographs of other folds and with their rotated copies.

    Returns the share of the cells that are nearer to the copies, and by how much the mean logarithm of the
    distance decreases with the copies. Patches are [h, w, D].
    """
    distances = []
    for fold, held_out in enumerate(originals):
        known, rotated = (_patches_of_other_folds(fold, each) for each in (originals, copies))
        some = draw_patches([*known, *rotated], PATCHES, random)
        cells = np.concatenate([_unusual_cells(one, some) for one in held_out])
        distances.append([_log_distances(cells, _patch_rows(patches)) for patches in (known, rotated)])
    to_photographs, to_copies = np.concatenate(distances, axis=1)
    return float((to_copies < to_photographs).mean()), float((to_photographs - to_copies).clip(0).mean())


def _patches_of_other_folds(fold: int, patches: Sequence[list[Floats]]) -> list[Floats]:
    return [one for place, own in enumerate(patches) if place != fold for one in own]


def _unusual_cells(patches: Floats, known: Floats) -> Floats:
    """Returns the patches [N, D] of a photograph [h, w, D] that are farthest from known ones [K, D]."""
    flat = _patch_rows([patches])
    number = max(1, min(UNUSUAL_CELLS, round(UNUSUAL_SHARE * len(flat))))
    return flat[np.argpartition(_log_distances(flat, known), -number)[-number:]]


def _patch_rows(patches: Sequence[Floats]) -> Floats:
    return np.concatenate([one.reshape(-1, one.shape[-1]) for one in patches])


def _log_distances(cells: Floats, patches: Floats) -> Floats:
    """Returns the logarithm of the distance of each cell [N, D] to the nearest patch [K, D]."""
    nearest = np.full(len(cells), np.inf, np.float32)
    for start in range(0, len(patches), PATCHES_AT_ONCE):
        part = patches[start : start + PATCHES_AT_ONCE]
        np.minimum(nearest, (np.square(part).sum(axis=1) - 2 * cells @ part.T).min(axis=1), out=nearest)
    squares = np.square(cells).sum(axis=1) + nearest
    return np.asarray(0.5 * np.log(np.maximum(squares, MIN_DISTANCE**2)))
