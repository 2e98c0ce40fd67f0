"""Fits the combination of decision, mask and memory of good surface to out-of-fold scores."""

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from segdec.network.network import EVIDENCE, SegDecNet
from training.data.example_source import ExampleSource
from training.surface_patches import Encode

Floats = NDArray[np.float64]

MIN_DEFECTIVE = 5
"""Defective examples from which the weights are fitted; with fewer the decision alone counts."""

DECISION_ALONE = np.array([1.0, 0.0, 0.0])


def combine_scores(network: SegDecNet, examples: ExampleSource, encode: Encode, *, balanced: bool) -> None:
    """Sets how a network with heads and a memory combines both, from the examples with a fold.

    Each example is scored by the head and the memory that were built without it. `balanced` says whether the
    heads were trained on as many defective as good images.
    """
    if network.combination is None:
        return
    labels, evidence = _collect(network, examples, encode)
    network.combination.set_combination(*fit_combination(labels, evidence, balanced=balanced))


def fit_combination(labels: NDArray[np.bool_], evidence: Floats, *, balanced: bool) -> tuple[Floats, float]:
    """Fits weights [3] and a bias to the evidence [N, 3] of images by logistic regression.

    Weights are not negative: evidence with a negative weight is ignored. The decision alone counts if its
    own weight is not positive, or if there are fewer than `MIN_DEFECTIVE` defective images or good ones.
    """
    if min(labels.sum(), (~labels).sum()) < MIN_DEFECTIVE:
        return DECISION_ALONE, 0.0
    used = np.flatnonzero(evidence.std(axis=0))
    scaler = StandardScaler().fit(evidence)
    scaled = scaler.transform(evidence)
    while True:
        regression = LogisticRegression(class_weight="balanced" if balanced else None)
        fitted = regression.fit(scaled[:, used], labels).coef_[0] if len(used) else np.zeros(0)
        if (fitted > 0).all():
            break
        used = used[fitted > 0]
    if 0 not in used:
        return DECISION_ALONE, 0.0
    weights = np.zeros(evidence.shape[1])
    weights[used] = fitted / scaler.scale_[used]
    return weights, float(regression.intercept_[0] - weights @ scaler.mean_)


def _collect(network: SegDecNet, examples: ExampleSource, encode: Encode) -> tuple[NDArray[np.bool_], Floats]:
    """Returns which examples are defective [N], and the evidence [N, 3] of each without its fold."""
    labels: list[bool] = []
    evidence: list[Floats] = []
    for fold in range(network.config.folds):
        model = network.without_fold(fold, encoded=True)
        part = keras.Model(model.input, model.get_layer(EVIDENCE).output)
        describe = tf.function(lambda inputs, part=part: part(inputs, training=False))
        own = [index for index in range(len(examples)) if examples.fold(index) == fold + 1]
        for index in own:
            features = encode(examples[index].image)
            inputs = {name: tf.constant(features[name][None], tf.float32) for name in model.input}
            evidence.append(describe(inputs)[0].numpy())
            labels.append(examples.labels[index] != 0)
    return np.array(labels), np.array(evidence, np.float64)
