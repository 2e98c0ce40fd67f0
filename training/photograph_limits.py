"""Chooses the limits of `segdec.photograph_check` from training photographs, at a stated false-alarm rate."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from segdec.artifact import TrainingPhotographs
from segdec.engines import Logits
from segdec.photograph_check import (
    SURFACE,
    MeasureLimit,
    PhotographLimits,
    Vector,
    decode_numbers,
    encode_numbers,
    measure_photograph,
)
from segdec.runtime.counts import count_of
from training.data.example_source import PhotographSource
from training.data.subsets import pick_evenly
from training.photograph_alterations import measure_alterations, measure_blur

Infer = Callable[[NDArray[np.uint8]], Logits]
"""Runs a network on prepared photographs [B, h, w, C]."""

FALSE_ALARM_RATE = 0.001
"""Share of photographs like those of the training that are unlike them by mistake."""

MIN_PHOTOGRAPHS = 10
"""With fewer there are no limits: their spread is unknown."""

MAX_PHOTOGRAPHS = 300
"""Photographs that are measured; more hardly change the limits."""

MAX_ALTERED = 8
"""Photographs that are altered to know the causes of a difference."""

MAX_REFERENCES = 128
"""Photographs that a new one is compared with."""

BLURRED = "texture", SURFACE
"""Measures with a limit in the direction of blur as well: it takes half of their rate."""

LAYOUT = "layout"
COMPARED_WITH_MEAN = LAYOUT, SURFACE
"""Measures that are compared with the mean: they have more elements than there may be photographs."""

MAX_DIRECTIONS = 64
"""Principal components of a measure with more elements."""

FOLDS = 10

MIN_SPREAD = 0.05
MIN_SPREADS = {"brightness": 0.1, SURFACE: 0.003}
"""Added to the spread of each element: any line changes so much. Its light changes more; the mean patch has
small elements."""

SURFACE_RATE_SHARE = 0.5
"""Share of the rate for `surface`, which recognises most; the other measures share the rest."""

SHRINKAGE = 0.3
"""Photographs per element as which the covariance counts that has no correlations (Ledoit and Wolf 2004)."""

TAIL = 0.9
"""Quantile of the distances above which their tail begins."""

TAIL_SCALE, SURFACE_TAIL_SCALE, TAIL_WEIGHT = 0.2, 0.1, 10
"""Usual mean of the tail's distances above that quantile, and how many photographs it counts as. The distance
of many elements varies less."""

FEW_PARTS = 3
"""Added to the tail: one more of it with so many parts, half of it with twice as many."""

MIN_LIMIT, MIN_SURFACE_LIMIT, MAX_TAIL = 1.0, 0.5, 3.0
"""Lowest limits, and highest distance of a limit above the quantile; they are logarithms."""

BLUR_TAIL_SCALE, MIN_BLUR_LIMIT = 0.5, 2.0
"""The same in the direction of blur, in units of the spread; a normal distribution has this tail."""


def add_limits(
    trained: TrainingPhotographs, photographs: PhotographSource, infer: Infer | None = None
) -> TrainingPhotographs:
    """Returns the facts about the training photographs with the limits of photographs like them.

    `infer` runs a network with a memory of good surface. Raises a `SegdecError` if a photograph has become
    unreadable.
    """
    chosen = pick_evenly(range(len(photographs)), MAX_PHOTOGRAPHS)
    measured = [measure_with(infer, photographs[index].image) for index in chosen]
    altered = [photographs[index].image for index in pick_evenly(chosen, MAX_ALTERED)]
    enough = len(chosen) >= MIN_PHOTOGRAPHS
    blur = measure_blur(altered, partial(measure_with, infer)) if enough else None
    limits = choose_limits(measured, [photographs.items[index].group for index in chosen], blur)
    if limits is None:
        print(
            f"note: The model inspects any photograph: {count_of(len(chosen), 'training photograph')} cannot "
            f"show which are unlike them. Expected at least {MIN_PHOTOGRAPHS}.",
            file=sys.stderr,
        )
        return trained.model_copy(update={"limits": None})
    limits = limits.model_copy(update={"alterations": measure_alterations(altered)})
    return trained.model_copy(update={"limits": limits})


def measure_with(infer: Infer | None, prepared: NDArray[np.uint8]) -> dict[str, Vector]:
    """Returns the measures of a photograph [h, w, C], with `surface` if `infer` returns it."""
    measured = measure_photograph(prepared)
    surface = None if infer is None else infer(prepared[None]).surface_of(0)
    return measured if surface is None else {**measured, SURFACE: surface.astype(np.float64)}


def choose_limits(
    measured: Sequence[Mapping[str, Vector]],
    parts: Sequence[str],
    blur: Mapping[str, Vector] | None = None,
    rate: float = FALSE_ALARM_RATE,
) -> PhotographLimits | None:
    """Returns the limits for measured photographs, each of a part; None if there are too few.

    The distances of photographs from those of other parts give the limit: the quantile that the rate requires
    is beyond all of them, so their tail is extrapolated (Weissman 1978). Measures share the rate.

    `blur` is the change of measures by blur. In its direction slight blur is recognised, which hardly
    increases the distance.
    """
    if len(measured) < MIN_PHOTOGRAPHS:
        return None
    several = parts if len(set(parts)) > 1 else [str(number) for number in range(len(measured))]
    vectors = {name: np.stack([each[name] for each in measured]) for name in measured[0]}
    others = (1 - SURFACE_RATE_SHARE) / (len(vectors) - 1) if SURFACE in vectors else 1 / len(vectors)
    measures = {
        name: _choose_limit(
            name,
            values,
            several,
            rate * (SURFACE_RATE_SHARE if name == SURFACE else others),
            None if blur is None or name not in BLURRED else blur[name],
        )
        for name, values in vectors.items()
    }
    return PhotographLimits(false_alarm_rate=rate, photographs=len(measured), measures=measures)


def _choose_limit(
    name: str, values: NDArray[np.float64], parts: Sequence[str], rate: float, blur: Vector | None
) -> MeasureLimit:
    known, of_part = np.unique(parts, return_inverse=True)
    order = np.random.default_rng(0).permutation(len(known))
    folds = order[of_part] % min(FOLDS, len(known))
    rate = rate if blur is None else rate / 2
    distances, blurred = np.zeros(len(values)), np.zeros(len(values))
    for fold in set(folds.tolist()):
        others, held = _describe(name, values[folds != fold]), values[folds == fold]
        distances[folds == fold] = [others.log_distance(vector) for vector in held]
        if blur is not None:
            blurred[folds == fold] = (held - others.centre) @ _discriminant(others, blur)
    usual = (SURFACE_TAIL_SCALE, MIN_SURFACE_LIMIT) if name == SURFACE else (TAIL_SCALE, MIN_LIMIT)
    limit_of_rate = _describe(name, values, extrapolate(distances, len(known), rate, *usual))
    if blur is None:
        return limit_of_rate
    limit = extrapolate(blurred, len(known), rate, BLUR_TAIL_SCALE, MIN_BLUR_LIMIT, math.inf)
    return limit_of_rate.model_copy(
        update={"blur": encode_numbers(_discriminant(limit_of_rate, blur) / limit)}
    )


def _discriminant(limit: MeasureLimit, change: Vector) -> NDArray[np.float64]:
    """Returns the direction [P] that separates changed photographs best, in units of the spread along it."""
    scale = decode_numbers(limit.scale).reshape(len(limit.centre), -1)
    scaled = change @ scale
    direction: NDArray[np.float64] = scale @ scaled / max(float(np.linalg.norm(scaled)), 1e-9)
    return direction


def extrapolate(
    distances: NDArray[np.float64],
    parts: int,
    rate: float,
    tail_scale: float = TAIL_SCALE,
    min_limit: float = MIN_LIMIT,
    max_tail: float = MAX_TAIL,
) -> float:
    """Returns the distance that a share `rate` exceeds, from distances of so many parts."""
    begin = float(np.quantile(distances, TAIL))
    tail = distances[distances > begin] - begin
    scale = (tail.sum() + TAIL_WEIGHT * tail_scale) / (len(tail) + TAIL_WEIGHT)
    beyond = scale * max(math.log((1 - TAIL) / rate), 0.0) * (1 + FEW_PARTS / parts)
    return max(begin + min(float(beyond), max_tail), min_limit)


def _describe(name: str, values: NDArray[np.float64], limit: float = 0.0) -> MeasureLimit:
    centre = values.mean(axis=0)
    directions = _principal_directions(values - centre)
    values_along = (values - centre) @ directions
    count, size = values_along.shape
    covariance = np.cov(values_along, rowvar=False, ddof=min(count - 1, 1)).reshape(size, size)
    own = SHRINKAGE * size / (count + SHRINKAGE * size) if name != LAYOUT else size / (count + size)
    spread = MIN_SPREADS.get(name, MIN_SPREAD)
    mixed = (1 - own) * covariance + own * np.diag(np.diagonal(covariance)) + spread**2 * np.eye(size)
    scale = directions @ np.linalg.cholesky(np.linalg.inv(mixed))
    chosen = [centre] if name in COMPARED_WITH_MEAN else pick_evenly(list(values), MAX_REFERENCES)
    return MeasureLimit(
        lowest=tuple(values.min(axis=0).tolist()),
        highest=tuple(values.max(axis=0).tolist()),
        centre=tuple(centre.tolist()),
        scale=encode_numbers(scale),
        references=encode_numbers((np.stack(chosen) - centre) @ scale),
        limit=limit,
    )


def _principal_directions(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns directions [P, Q] in which differences [N, P] are compared: the elements if they are few."""
    size = differences.shape[1]
    if size <= MAX_DIRECTIONS:
        return np.eye(size)
    return np.linalg.svd(differences, full_matrices=False)[2][:MAX_DIRECTIONS].T
