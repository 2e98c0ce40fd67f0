"""The order in which photographs are labelled, so that few labels teach a model much.

A photograph is useful if the model is uncertain about it and if it differs from those that are labelled. Each
place in the order goes to the photograph with the greatest product of both: a weight that falls with the
distance of its score to the threshold, and the distance of its description to the nearest photograph that is
labelled or has an earlier place. Without the weight this is the greedy k-center algorithm.

Reference:
    O. Sener, S. Savarese, Active learning for convolutional neural networks: a core-set approach, ICLR 2018.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from segdec.photograph_check import MEASURES, Vector

Floats = NDArray[np.float64]

DOUBT_WEIGHT = 4.0
"""A photograph about which the model is as sure as about the median one has the weight exp(−DOUBT_WEIGHT)."""

MAX_DEVIATION = 3.0
"""Elements of descriptions are limited to this many standard deviations from their mean, so that a photograph
that is unusual in one element is not far from all others.
"""

MAX_COMPARED = 1000
"""Places for which photographs are compared with each other; the most uncertain of the others comes next."""


def describe_photograph(measured: Mapping[str, Vector]) -> Vector:
    """Joins the measures of `segdec.photograph_check.measure_photograph`."""
    return np.concatenate([measured[name] for name in MEASURES if name in measured])


def order_photographs(
    certainties: Sequence[float], descriptions: Sequence[Vector], labelled: Sequence[Vector]
) -> list[int]:
    """Returns the positions of the photographs, the most useful one first. Slow, so call it in a thread.

    Args:
        certainties: Distances between score and threshold, in log-odds. The unit of the weights is their
            median, so the order is the same for a model whose scores are all twice as far from the threshold.
        descriptions: Of the same photographs, vectors of D elements.
        labelled: Of labelled photographs; may be empty.
    """
    if not certainties:
        return []
    weights = _log_weights(np.array(certainties, np.float64))
    own, known = _standardised(np.array(descriptions), np.array(labelled))
    nearest = np.full(len(own), np.inf)
    for one in known:
        nearest = np.minimum(nearest, _squares(own, one))
    order: list[int] = []
    waiting = np.ones(len(own), bool)
    while waiting.any() and len(order) < MAX_COMPARED:
        chosen = _most_useful(weights, nearest, waiting)
        order.append(chosen)
        waiting[chosen] = False
        nearest = np.minimum(nearest, _squares(own, own[chosen]))
    (others,) = np.nonzero(waiting)
    return [*order, *others[np.argsort(-weights[others], kind="stable")].tolist()]


def _log_weights(certainties: Vector) -> Vector:
    positive = certainties[certainties > 0]
    return -DOUBT_WEIGHT * certainties / (np.median(positive) if len(positive) else 1.0)


def _standardised(descriptions: Floats, labelled: Floats) -> tuple[Floats, Floats]:
    every = np.concatenate([descriptions, labelled]) if len(labelled) else descriptions
    deviation = every.std(axis=0)
    scaled = (every - every.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    scaled = np.clip(scaled, -MAX_DEVIATION, MAX_DEVIATION)
    return scaled[: len(descriptions)], scaled[len(descriptions) :]


def _squares(descriptions: Floats, other: Vector) -> Vector:
    return np.asarray(np.square(descriptions - other).sum(axis=1), np.float64)


def _most_useful(weights: Vector, nearest: Vector, waiting: NDArray[np.bool_]) -> int:
    """The position of the most useful photograph that is waiting, the first of equal ones.

    The weight alone decides if there is nothing to differ from, or no photograph differs from it.
    """
    (candidates,) = np.nonzero(waiting)
    own, squares = weights[candidates], nearest[candidates]
    if np.isfinite(squares).all() and squares.any():
        with np.errstate(divide="ignore"):
            own = own + np.log(squares) / 2
    return int(candidates[own.argmax()])
