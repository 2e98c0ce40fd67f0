"""Fits the combination of decision, mask and memory of good surface to out-of-fold scores."""

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from segdec.network.network import EVIDENCE, SegDecNet
from training.data.example_source import ExampleSource
from training.fold_outputs import fold_outputs
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
    outputs = fold_outputs(network, examples, encode, range(len(examples)), _select)
    found = [(examples.labels[index] != 0, each[EVIDENCE]) for index, each in outputs]
    defective, evidence = (np.array(each) for each in zip(*found, strict=True))
    fitted = fit_combination(defective, evidence.astype(np.float64), balanced=balanced)
    network.combination.set_combination(*fitted)


def _select(model: keras.Model) -> dict[str, Any]:
    return {EVIDENCE: model.get_layer(EVIDENCE).output}


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
