"""Fits the class of a defect to features of the encoder that are pooled over the defect."""

import warnings
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from segdec.encoders import JOINED_STRIDES
from segdec.network.network import DEFECT_WEIGHTS, SegDecNet
from segdec.network.pooled_classes import weights_of_stride
from training.data.array_cache import Arrays
from training.data.example_source import ExampleSource
from training.fold_outputs import fold_outputs
from training.surface_patches import Encode

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DECIDED = "class_logits"
"""Name of the output with the classes of the decision network."""

COMPONENTS = 40
"""Principal components of the pooled features that are used at most."""

SHRINKAGE = 0.2
"""Weight of the mean variance in the covariance within the classes, which few examples do not determine."""

ABSENT = -1e4
"""Logit of a class without examples."""


def fit_classes(network: SegDecNet, examples: ExampleSource, encode: Encode) -> None:
    """Sets how a network determines the class of a defect, from the defective examples with a fold.

    The features of each example are pooled by the head and the memory that were built without it. The classes
    of the decision network remain if more of them are correct out of fold.
    """
    layer = network.pooled_classes
    if layer is None:
        return
    layer.use_decision()
    defective = [index for index, label in enumerate(examples.labels) if label != 0]
    outputs = dict(fold_outputs(network, examples, encode, defective, _select))
    if not outputs:
        return
    classes = np.array([examples.labels[index] - 1 for index in outputs])
    folds = np.array([examples.fold(index) for index in outputs])
    pooled = np.array([pool_features(each[DEFECT_WEIGHTS], each) for each in outputs.values()])
    decided = np.array([each[DECIDED][1:].argmax() for each in outputs.values()])
    number = network.config.num_classes - 1
    maps = [
        fit_map(pooled[folds != fold + 1], classes[folds != fold + 1], number)
        for fold in range(network.config.folds)
    ]
    if (predict_by_fold(pooled, folds, maps) == classes).sum() < (decided == classes).sum():
        return
    layer.set_map(*fit_map(pooled, classes, number))
    for fold, (kernel, bias) in enumerate(maps):
        layer.set_map(kernel, bias, without=fold)


def _select(model: keras.Model) -> dict[str, Any]:
    return {DEFECT_WEIGHTS: model.get_layer(DEFECT_WEIGHTS).output, DECIDED: model.output[DECIDED]}


def pool_features(weights: NDArray[np.float32], features: Arrays) -> Floats:
    """Returns the means [2 · channels] of features by name, [h, w, ·] each, with weights [H/8, W/8, 2]."""
    means = []
    for stride in JOINED_STRIDES:
        own = np.asarray(weights_of_stride(weights[None], stride)[0], np.float64)
        means.append(np.einsum("hwk,hwc->kc", own, features[f"joined_{stride}"]))
    return np.concatenate(means, axis=1).ravel()


def predict_by_fold(pooled: Floats, folds: Integers, maps: Sequence[tuple[Floats, Floats]]) -> Integers:
    """Returns the class of each example [N] from pooled features [N, F], by the map of its fold, from 1."""
    parts = zip(pooled, folds, strict=True)
    logits = [features @ maps[fold - 1][0] + maps[fold - 1][1] for features, fold in parts]
    return np.argmax(logits, axis=1)


def fit_map(pooled: Floats, classes: Integers, number: int) -> tuple[Floats, Floats]:
    """Fits kernel [F, K] and bias [K] of the logits of K = `number` classes to pooled features [N, F].

    They are those of a linear discriminant analysis with shrinkage (Friedman, "Regularized discriminant
    analysis", 1989) of the principal components. A class without examples is never predicted; without two
    examples of any class, all others have the same logit.
    """
    kernel, bias = np.zeros((pooled.shape[1], number)), np.full(number, ABSENT)
    present = np.unique(classes)
    bias[present] = 0.0
    if 1 < len(present) < len(classes):
        pipeline = make_pipeline(
            StandardScaler(),
            PCA(min(COMPONENTS, *pooled.shape), random_state=0),
            LinearDiscriminantAnalysis(solver="lsqr", shrinkage=SHRINKAGE),
        )
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # about one example of a class
            pipeline.fit(pooled, classes)
        bias[present] = _logits(pipeline, np.zeros((1, pooled.shape[1])))[0]
        kernel[:, present] = _logits(pipeline, np.eye(pooled.shape[1])) - bias[present]
    return kernel, bias


def _logits(pipeline: Pipeline, pooled: Floats) -> Floats:
    """Returns a column for each class [N, K]; of two classes, scikit-learn returns only the difference."""
    decided = pipeline.decision_function(pooled)
    return np.stack([np.zeros_like(decided), decided], axis=1) if decided.ndim == 1 else decided
