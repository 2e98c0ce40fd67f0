"""Chooses the limits of `segdec.photograph_check` from training photographs, at a stated false-alarm rate."""

import math
import sys
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from segdec.artifact import TrainingPhotographs
from segdec.photograph_check import (
    MeasureLimit,
    PhotographLimits,
    Vector,
    encode_numbers,
    measure_photograph,
)
from training.data.example_source import PhotographSource
from training.data.subsets import pick_evenly

FALSE_ALARM_RATE = 0.001
"""Share of photographs like those of the training that are unlike them by mistake."""

MIN_PHOTOGRAPHS = 10
"""With fewer there are no limits: their spread is unknown."""

MAX_PHOTOGRAPHS = 300
"""Photographs that are measured; more hardly change the limits."""

MAX_REFERENCES = 128
"""Photographs that a new one is compared with."""

SINGLE_REFERENCE = "layout"
"""Measure that is compared with the mean: it has more elements than there may be photographs."""

FOLDS = 10

MIN_SPREAD, MIN_LIGHT_SPREAD = 0.05, 0.1
"""Added to the spread of each element: any line changes so much; its light (`brightness`) changes more."""

SHRINKAGE = 0.3
"""Photographs per element as which the covariance counts that has no correlations (Ledoit and Wolf 2004)."""

TAIL = 0.9
"""Quantile of the distances above which their tail begins."""

TAIL_SCALE, TAIL_WEIGHT = 0.2, 10
"""Usual mean of the tail's distances above that quantile, and how many photographs it counts as."""

FEW_PARTS = 3
"""Added to the tail: one more of it with so many parts, half of it with twice as many."""

MIN_LIMIT, MAX_TAIL = 1.0, 3.0
"""Lowest limit, and highest distance of a limit above the quantile; both are logarithms."""


def add_limits(trained: TrainingPhotographs, photographs: PhotographSource) -> TrainingPhotographs:
    """Returns the facts about the training photographs with the limits of photographs like them.

    Raises:
        SegdecError: If a photograph has become unreadable.
    """
    chosen = pick_evenly(range(len(photographs)), MAX_PHOTOGRAPHS)
    measured = [measure_photograph(photographs[index].image) for index in chosen]
    limits = choose_limits(measured, [photographs.records[index].group for index in chosen])
    if limits is None:
        print(
            f"note: The model inspects any photograph: {len(chosen)} training photographs are too few to "
            f"tell which are unlike them. Expected at least {MIN_PHOTOGRAPHS}.",
            file=sys.stderr,
        )
    return trained.model_copy(update={"limits": limits})


def choose_limits(
    measured: Sequence[Mapping[str, Vector]], parts: Sequence[str], rate: float = FALSE_ALARM_RATE
) -> PhotographLimits | None:
    """Returns the limits for measured photographs, each of a part; None if there are too few.

    The distances of photographs from those of other parts give the limit: the quantile that the rate requires
    is beyond all of them, so their tail is extrapolated (Weissman 1978). Measures share the rate.
    """
    if len(measured) < MIN_PHOTOGRAPHS:
        return None
    several = parts if len(set(parts)) > 1 else [str(number) for number in range(len(measured))]
    vectors = {name: np.stack([each[name] for each in measured]) for name in measured[0]}
    measures = {
        name: _choose_limit(name, values, several, rate / len(vectors)) for name, values in vectors.items()
    }
    return PhotographLimits(false_alarm_rate=rate, photographs=len(measured), measures=measures)


def _choose_limit(name: str, values: NDArray[np.float64], parts: Sequence[str], rate: float) -> MeasureLimit:
    known, of_part = np.unique(parts, return_inverse=True)
    order = np.random.default_rng(0).permutation(len(known))
    folds = order[of_part] % min(FOLDS, len(known))
    distances = np.zeros(len(values))
    for fold in set(folds.tolist()):
        others = _describe(name, values[folds != fold])
        distances[folds == fold] = [others.distance(vector) for vector in values[folds == fold]]
    return _describe(name, values, extrapolate(distances, len(known), rate))


def extrapolate(distances: NDArray[np.float64], parts: int, rate: float) -> float:
    """Returns the distance that a share `rate` exceeds, from logarithms of distances of so many parts."""
    begin = float(np.quantile(distances, TAIL))
    tail = distances[distances > begin] - begin
    scale = (tail.sum() + TAIL_WEIGHT * TAIL_SCALE) / (len(tail) + TAIL_WEIGHT)
    beyond = scale * max(math.log((1 - TAIL) / rate), 0.0) * (1 + FEW_PARTS / parts)
    return max(begin + min(float(beyond), MAX_TAIL), MIN_LIMIT)


def _describe(name: str, values: NDArray[np.float64], limit: float = 0.0) -> MeasureLimit:
    count, size = values.shape
    centre = values.mean(axis=0)
    covariance = np.cov(values, rowvar=False, ddof=min(count - 1, 1)).reshape(size, size)
    own = SHRINKAGE * size / (count + SHRINKAGE * size) if name != SINGLE_REFERENCE else size / (count + size)
    spread = MIN_LIGHT_SPREAD if name == "brightness" else MIN_SPREAD
    mixed = (1 - own) * covariance + own * np.diag(np.diagonal(covariance)) + spread**2 * np.eye(size)
    scale = np.linalg.cholesky(np.linalg.inv(mixed))
    chosen = [centre] if name == SINGLE_REFERENCE else pick_evenly(list(values), MAX_REFERENCES)
    return MeasureLimit(
        lowest=tuple(values.min(axis=0).tolist()),
        highest=tuple(values.max(axis=0).tolist()),
        centre=tuple(centre.tolist()),
        scale=encode_numbers(scale),
        references=encode_numbers((np.stack(chosen) - centre) @ scale),
        limit=limit,
    )
