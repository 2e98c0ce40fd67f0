"""Fits the class of a defect to features of the encoder that are pooled over the defect."""

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from segdec.encoders import JOINED_STRIDES
from segdec.network.network import DEFECT_WEIGHTS, SegDecNet
from segdec.network.pooled_classes import weights_of_stride
from training.data.array_cache import Arrays
from training.data.example_source import ExampleSource
from training.discriminant import ABSENT_LOGIT, fit_discriminant
from training.fold_outputs import fold_outputs
from training.surface_patches import Encode

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CLASS_LOGITS = "class_logits"
"""Name of the output with the classes of the decision network."""

MIN_SCALE = 0.02
"""Lower limit of the factor of all logits."""


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
    outputs = fold_outputs(network, examples, encode, defective, _select)
    # Features are large: those of a few examples at a time are in memory.
    found = [
        (index, pool_features(each[DEFECT_WEIGHTS], each), each[CLASS_LOGITS][1:].argmax())
        for index, each in outputs
    ]
    if not found:
        return
    indices, pooled, decided = (np.array(each) for each in zip(*found, strict=True))
    classes = np.array([examples.labels[index] - 1 for index in indices])
    folds = np.array([examples.fold(index) for index in indices])
    number = network.config.num_classes - 1
    # Folds are numbered from 1, so that the first map is that of all examples.
    maps = [
        fit_discriminant(pooled[folds != fold], classes[folds != fold], number)
        for fold in range(network.config.folds + 1)
    ]
    logits = np.array([x @ maps[fold][0] + maps[fold][1] for x, fold in zip(pooled, folds, strict=True)])
    if (logits.argmax(axis=1) == classes).sum() < (decided == classes).sum():
        return
    scale = fit_scale(logits, classes)
    for fold, (kernel, bias) in enumerate(maps):
        layer.set_map(scale * kernel, scale * bias, without=fold - 1 if fold else None)


def _select(model: keras.Model) -> dict[str, Any]:
    return {DEFECT_WEIGHTS: model.get_layer(DEFECT_WEIGHTS).output, CLASS_LOGITS: model.output[CLASS_LOGITS]}


def pool_features(weights: NDArray[np.float32], features: Arrays) -> Floats:
    """Returns the means [2 · channels] of features by name, [h, w, ·] each, with weights [H/8, W/8, 2]."""
    means = []
    for stride in JOINED_STRIDES:
        own = np.asarray(weights_of_stride(weights[None], stride)[0], np.float64)
        means.append(np.einsum("hwk,hwc->kc", own, features[f"joined_{stride}"]))
    return np.concatenate(means, axis=1).ravel()


def fit_scale(logits: Floats, classes: Integers) -> float:
    """Returns the factor, at most 1, of out-of-fold logits [N, K] with the lowest log loss; classes are [N].

    Few examples make a discriminant analysis too certain; the factor corrects that (Guo et al., "On
    calibration of modern neural networks", 2017). Examples of classes that other folds lack do not count.
    """
    own = logits[np.arange(len(classes)), classes]
    known = own > ABSENT_LOGIT
    if not known.any():
        return 1.0

    def log_loss(scale: float) -> float:
        return float((np.logaddexp.reduce(scale * logits[known], axis=1) - scale * own[known]).mean())

    return float(minimize_scalar(log_loss, bounds=(MIN_SCALE, 1.0), method="bounded").x)
