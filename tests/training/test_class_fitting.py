"""The class of a defect from pooled features: the fitted map, and when the decision network is better."""

import weakref
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras

from segdec.config import NetworkConfig
from segdec.network.network import DEFECT_WEIGHTS, build_network
from tests.segdec.network.trained_encoder import HEAD
from tests.tiny_encoder import load_encoder
from tests.training.separable_classes import CHANNELS, make_separable, predict
from training import class_fitting
from training.class_fitting import fit_classes, fit_scale
from training.discriminant import ABSENT_LOGIT, fit_discriminant


def test_the_scale_gives_the_probability_with_which_the_class_is_correct():
    """By hand: of logits (0, 4), 3 of 4 are correct; the log-odds of 3/4 are log(3)."""
    logits = np.array([[0.0, 4, ABSENT_LOGIT]] * 4 + [[0, 4, ABSENT_LOGIT]])
    assert fit_scale(logits[:4], np.array([1, 1, 1, 0])) == pytest.approx(np.log(3) / 4, abs=1e-4)
    assert fit_scale(logits, np.array([1, 1, 1, 0, 2])) == pytest.approx(np.log(3) / 4, abs=1e-4)
    assert fit_scale(logits[:2], np.array([1, 1])) == pytest.approx(1, abs=1e-4)
    assert fit_scale(logits[:1], np.array([2])) == 1


class FittedLayer:
    """Stands for the layer of the network whose weights are set."""

    def use_decision(self):
        self.maps = {}

    def set_map(self, kernel, bias, without=None):
        self.maps[without] = kernel, bias


def fit(monkeypatch, pooled, labels, decided):
    """Returns the maps that are set, by the fold without which they are fitted; folds take turns."""

    def fold_outputs(*arguments):
        references = []
        for index in arguments[3]:
            features, outputs = pooled[index].copy(), {"class_logits": np.eye(3)[decided[index]]}
            references.append(weakref.ref(features))
            yield index, {"features": features, DEFECT_WEIGHTS: None, **outputs}
            del features
            assert sum(one() is not None for one in references) == 1  # those of many photographs are large

    monkeypatch.setattr(class_fitting, "fold_outputs", fold_outputs)
    monkeypatch.setattr(class_fitting, "pool_features", lambda _, each: each["features"].copy())
    layer = FittedLayer()
    network = SimpleNamespace(pooled_classes=layer, config=SimpleNamespace(num_classes=3, folds=3))
    fit_classes(network, SimpleNamespace(labels=labels, fold=lambda index: index % 3 + 1), None)
    return layer.maps


def test_each_fold_gets_a_map_that_is_fitted_without_it(monkeypatch):
    """Without fold 1, which has all of class 2, that is never predicted."""
    labels = np.array([2, 1, 1] * 12)
    pooled, _ = make_separable(labels)
    maps = fit(monkeypatch, pooled, labels, [0] * 36)
    assert list(maps) == [None, 0, 1, 2]
    assert predict(pooled, *maps[None]).tolist() == (labels - 1).tolist()
    assert set(predict(pooled, *maps[0])) == {0}
    for fold in (1, 2):
        others = np.arange(36) % 3 != fold
        kernel, bias = fit_discriminant(pooled[others], labels[others] - 1, 2)
        scale = maps[fold][1][1] / bias[1]
        assert 0 < scale <= 1
        for found, expected in zip(maps[fold], (kernel, bias), strict=True):
            np.testing.assert_allclose(found, scale * expected)


@pytest.mark.parametrize(("mistakes", "is_kept"), [(0, True), (11, False)])
def test_the_classes_of_the_decision_network_are_kept_if_they_are_better(monkeypatch, mistakes, is_kept):
    """Features carry no information; the decision network is right except for `mistakes` of 12 examples."""
    labels = [0] * 6 + [1, 2] * 6
    pooled = np.random.default_rng(0).normal(size=(len(labels), CHANNELS))
    decided = [3 - label if index < 6 + mistakes else label for index, label in enumerate(labels)]
    assert (fit(monkeypatch, pooled, labels, decided) == {}) == is_kept


def photograph(label, random):
    """A surface with a dark square (1), a bright one (2) or none."""
    image = random.integers(100, 140, (48, 64, 1), dtype=np.uint8)
    if label:
        left = 8 * int(random.integers(1, 6))
        image[16:32, left : left + 16] = (20, 230)[label - 1]
    return image


def test_the_network_has_the_map_that_was_fitted_without_the_fold(tiny_encoder, tiny_encoder_weights):
    """Its decision network is not trained, so that it cannot tell the classes apart."""
    keras.utils.set_random_seed(0)
    fields = {**HEAD, "heads": 2, "num_classes": 3, "pooled_classes": True}
    network = build_network(NetworkConfig(**fields, encoder=tiny_encoder))
    load_encoder(network, tiny_encoder_weights)
    random, labels = np.random.default_rng(0), [1, 1, 2, 2, 0, 0] * 5
    images = [photograph(label, random) for label in labels]

    class Examples:
        def __getitem__(self, index):
            return SimpleNamespace(image=images[index])

        def fold(self, index):
            return index % 2 + 1

    def encode(image):
        return {name: one[0].numpy() for name, one in network.encoder(image[None]).items()}

    examples = Examples()
    examples.labels = labels
    fit_classes(network, examples, encode)
    for fold in range(2):
        own = [index for index in range(fold, len(labels), 2) if labels[index]]
        logits = network.without_fold(fold)(np.stack([images[index] for index in own]))["class_logits"]
        assert (1 + np.argmax(logits[:, 1:], axis=1)).tolist() == [labels[index] for index in own]
