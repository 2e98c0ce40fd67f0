"""Fits the combination of decision, mask, memory and pooled features to out-of-fold scores."""

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from segdec.network.network import EVIDENCE, FEATURE_STATISTICS, SegDecNet
from segdec.network.pooled_score import PooledScore
from training.data.example_source import ExampleSource
from training.data.subsets import pick_of_both_kinds
from training.discriminant import fit_log_odds
from training.fold_outputs import fold_outputs
from training.surface_patches import Encode

Floats = NDArray[np.float64]

MAX_EXAMPLES = 2000
"""Maximum number of good examples, and of defective ones, to which the pooled score is fitted."""

MIN_DEFECTIVE = 5
"""Defective examples from which the weights are fitted; with fewer the decision alone counts."""


def combine_scores(network: SegDecNet, examples: ExampleSource, encode: Encode, *, balanced: bool) -> None:
    """Sets how a network with heads and a memory combines both, from the examples with a fold.

    Each example is scored by the head, the memory and the map of pooled features that were built without it.
    `balanced` says whether the heads were trained on as many defective as good images.
    """
    if network.combination is None:
        return
    names = [EVIDENCE] if network.pooled_score is None else [EVIDENCE, FEATURE_STATISTICS]

    def select(model: keras.Model) -> dict[str, Any]:
        return {name: model.get_layer(name).output for name in names}

    outputs = fold_outputs(network, examples, encode, range(len(examples)), select)
    found = [(index, *(each[name] for name in names)) for index, each in outputs]
    indices, evidence, *statistics = (np.array(each) for each in zip(*found, strict=True))
    defective = np.array([examples.labels[index] != 0 for index in indices])
    evidence = evidence.astype(np.float64)
    if network.pooled_score is not None:
        folds = np.array([examples.fold(index) for index in indices])
        evidence[:, -1] = fit_pooled_score(network.pooled_score, statistics[0], defective, folds)
    network.combination.set_combination(*fit_combination(defective, evidence, balanced=balanced))


def fit_pooled_score(
    layer: PooledScore,
    statistics: NDArray[np.float32],
    defective: NDArray[np.bool_],
    folds: NDArray[np.int64],
) -> Floats:
    """Sets the maps of `layer`, fitted to the statistics [N, F] of examples with folds [N], from 1.

    Returns:
        The log-odds [N] of each example by the map without its fold.
    """
    log_odds, maps = np.zeros(len(defective)), []
    used = np.array(pick_of_both_kinds(range(len(defective)), defective.tolist(), MAX_EXAMPLES))
    for fold in range(layer.folds + 1):  # no example is in fold 0: the first map is that of all
        others = used[folds[used] != fold]
        kernel, bias = fit_log_odds(statistics[others].astype(np.float64), defective[others])
        maps.append((kernel, bias))
        own = folds == fold
        log_odds[own] = statistics[own] @ kernel + bias
    center = statistics[used].mean(axis=0, dtype=np.float64)
    layer.set_maps(maps, center, (log_odds.min(), log_odds.max()))
    return log_odds


def fit_combination(labels: NDArray[np.bool_], evidence: Floats, *, balanced: bool) -> tuple[Floats, float]:
    """Fits weights [E] and a bias to the evidence [N, E] of images by logistic regression.

    Weights are not negative: evidence with a negative weight is ignored. The decision, which is the first
    evidence, alone counts if no weight is positive, or if there are fewer than `MIN_DEFECTIVE` defective
    images or good ones.
    """
    decision_alone = np.eye(evidence.shape[1])[0], 0.0
    if min(labels.sum(), (~labels).sum()) < MIN_DEFECTIVE:
        return decision_alone
    used = np.flatnonzero(evidence.std(axis=0))
    scaler = StandardScaler().fit(evidence)
    scaled = scaler.transform(evidence)
    regression = LogisticRegression(class_weight="balanced" if balanced else None)
    while len(used):
        fitted = regression.fit(scaled[:, used], labels).coef_[0]
        if (fitted > 0).all():
            break
        used = used[fitted > 0]
    else:
        return decision_alone
    weights = np.zeros(evidence.shape[1])
    weights[used] = fitted / scaler.scale_[used]
    return weights, float(regression.intercept_[0] - weights @ scaler.mean_)
