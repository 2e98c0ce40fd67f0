"""Outputs of each fold's part, of tiny networks that average their input."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras

from training.fold_outputs import EXAMPLES_AT_ONCE, fold_outputs


def without_fold(fold, *, encoded):
    """The mean of all features, times the number of the fold."""
    assert encoded
    shapes = {"joined_8": (None, None, 2), "joined_16": (None, None, 3)}
    features = {name: keras.Input(shape, name=name) for name, shape in shapes.items()}
    means = [keras.ops.mean(one, axis=(1, 2, 3)) for one in features.values()]
    return keras.Model(features, (fold + 1) * (means[0] + means[1]))


class Examples:
    """Numbered examples with these folds."""

    def __init__(self, folds):
        self.fold = folds.__getitem__

    def __getitem__(self, index):
        return SimpleNamespace(image=index)


def test_examples_share_batches_with_those_of_their_fold():
    folds = [1] * (EXAMPLES_AT_ONCE + 3) + [None, 2, 2]
    network = SimpleNamespace(config=SimpleNamespace(folds=2), without_fold=without_fold)
    encoded = []

    def encode(image):
        encoded.append(image)
        shapes = {"joined_8": (4, 2, 2), "joined_16": (2, 1, 3)}
        return {name: np.full(shape, image, np.float16) for name, shape in shapes.items()}

    indices = [index for index in range(len(folds)) if index != 1]
    found = fold_outputs(network, Examples(folds), encode, indices, lambda model: {"mean": model.output})
    first, outputs = next(found)
    assert first == 0 and len(encoded) == EXAMPLES_AT_ONCE
    assert outputs["joined_8"].shape == (4, 2, 2)
    answers = {first: outputs["mean"], **{index: each["mean"] for index, each in found}}
    assert answers == {index: 2 * index * folds[index] for index in indices if folds[index] is not None}
