"""Chooses the limits of `segdec.photograph_check` from training photographs.

The distance of a new part to those of the training is a nearly constant multiple of their distances to each
other, however many they are. The limits are such multiples; `benchmarks.unlike_training` measures them.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from segdec.artifact import TrainingPhotographs
from segdec.engines import Logits
from segdec.photograph_check import (
    PROPORTIONS,
    SURFACE,
    MeasureLimit,
    PhotographLimits,
    Vector,
    encode_numbers,
    measure_photograph,
    measure_proportions,
)
from segdec.photograph_reasons import is_refused
from segdec.runtime.counts import count_of
from training.data.example_source import PhotographSource
from training.data.subsets import pick_evenly
from training.metrics.intervals import count_parts
from training.photograph_alterations import DEFOCUS, measure_alterations, measure_blur

Array = NDArray[np.float64]
Infer = Callable[[NDArray[np.uint8]], Logits]
"""Runs a network on prepared photographs [B, h, w, C]."""

MIN_PHOTOGRAPHS = 5
"""With fewer there are no limits: their spread is unknown."""

MAX_PHOTOGRAPHS = 300
"""Photographs that are measured; more hardly change the limits."""

MAX_ALTERED = 8
"""Photographs that are altered to know the causes of a difference."""

FOLDS = 10

MIN_PARTS = 3
"""With fewer, each photograph counts as a part."""

LIMIT = 3.2
LIMITS = {"brightness": 2.4, SURFACE: 1.9}
"""Limits, as multiples of the root mean square distance of a part to the others."""

REFUSED = {SURFACE: 2.7 / LIMITS[SURFACE], PROPORTIONS: 2.0}
"""Multiples of the limit above which a photograph certainly shows something else."""

FEW_PARTS = 2
"""Added to a limit: its double with so many parts, half of it with twice as many."""

BLURRED = "texture", SURFACE
"""Measures with a limit in the direction of slight blur as well."""

DEFOCUS_SHARE = 0.7
"""Share of the change of `surface` by strong defocus that is certainly defocus."""

MIN_SPREAD = 0.05
MIN_SPREADS = {"brightness": 0.1, SURFACE: 0.003, PROPORTIONS: 0.03}
"""Added to the spread of each element: any line changes so much. Its light changes more; the mean patch has
small elements."""


def add_limits(
    trained: TrainingPhotographs, photographs: PhotographSource, infer: Infer | None = None
) -> TrainingPhotographs:
    """Returns the facts about the training photographs with the limits of photographs like them.

    `infer` runs a network with a memory of good surface. Raises a `SegdecError` if a photograph has become
    unreadable.
    """
    chosen = pick_evenly(range(len(photographs)), MAX_PHOTOGRAPHS)
    if len(chosen) < MIN_PHOTOGRAPHS:
        print(
            f"note: The model inspects any photograph: {count_of(len(chosen), 'training photograph')} cannot "
            f"show which are unlike them. Expected at least {MIN_PHOTOGRAPHS}.",
            file=sys.stderr,
        )
        return trained.model_copy(update={"limits": None})
    measured = [
        {
            **measure_with(infer, photographs[index].image),
            PROPORTIONS: measure_proportions(*photographs.size(index)),
        }
        for index in chosen
    ]
    altered = [photographs[index].image for index in pick_evenly(chosen, MAX_ALTERED)]
    parts = [photographs.items[index].group for index in chosen]
    blur = BlurChanges.of(altered, infer)
    limits = choose_limits(measured, parts, blur)
    refused, warned = count_unlike(measured, parts, blur)
    changes = {
        "limits": limits.model_copy(update={"alterations": measure_alterations(altered)}),
        "refused": count_parts(refused),
        "warned": count_parts(warned),
    }
    return trained.model_copy(update=changes)


def measure_with(infer: Infer | None, prepared: NDArray[np.uint8]) -> dict[str, Vector]:
    """Returns the measures of a photograph [h, w, C], with `surface` if `infer` returns it."""
    measured = measure_photograph(prepared)
    surface = None if infer is None else infer(prepared[None]).surface_of(0)
    return measured if surface is None else {**measured, SURFACE: surface.astype(np.float64)}


@dataclass(frozen=True)
class BlurChanges:
    """Mean change of each measure by slight blur and by strong defocus."""

    slight: Mapping[str, Vector]
    strong: Mapping[str, Vector]

    @classmethod
    def of(cls, photographs: Sequence[NDArray[np.uint8]], infer: Infer | None = None) -> Self:
        """Measures the changes of photographs [h, w, C]; `infer` as for `measure_with`."""
        measure = partial(measure_with, infer)
        return cls(measure_blur(photographs, measure), measure_blur(photographs, measure, DEFOCUS))


def choose_limits(
    measured: Sequence[Mapping[str, Vector]], parts: Sequence[str], blur: BlurChanges | None = None
) -> PhotographLimits:
    """Returns the limits for at least `MIN_PHOTOGRAPHS` measured photographs, each of a part.

    With `blur`, slight blur is recognised, which hardly increases the distance, and strong defocus is
    refused.
    """
    return PhotographLimits(
        photographs=len(measured),
        measures={
            name: _choose_limit(name, np.stack([each[name] for each in measured]), parts, blur)
            for name in measured[0]
        },
    )


def count_unlike(
    measured: Sequence[Mapping[str, Vector]], parts: Sequence[str], blur: BlurChanges | None = None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Returns which parts [N] have a refused photograph, and which only a warning, by limits without them.

    Without `MIN_PHOTOGRAPHS` parts N is 0.
    """
    names, of_part, folds = _split_parts(parts)
    refused, warned = np.zeros(len(names), np.bool_), np.zeros(len(names), np.bool_)
    if len(names) < MIN_PHOTOGRAPHS:
        return refused[:0], warned[:0]
    for fold in set(folds.tolist()):
        others = np.flatnonzero(folds != fold).tolist()
        own, of_own = [measured[index] for index in others], [parts[index] for index in others]
        limits = choose_limits(own, of_own, blur)
        for index in np.flatnonzero(folds == fold).tolist():
            refused[of_part[index]] |= is_refused(limits, measured[index])
            warned[of_part[index]] |= max(limits.distances(measured[index]).values()) > 1
    return refused, warned & ~refused


def _split_parts(parts: Sequence[str]) -> tuple[Sequence[str], NDArray[np.intp], NDArray[np.int64]]:
    """Returns the names of the parts, and the index of its part and the fold of each photograph."""
    names, of_part = np.unique(parts, return_inverse=True)
    folds = np.random.default_rng(0).permutation(len(names))[of_part] % min(FOLDS, len(names))
    return names.tolist(), of_part, folds


def _choose_limit(name: str, values: Array, parts: Sequence[str], blur: BlurChanges | None) -> MeasureLimit:
    widened = 1 + FEW_PARTS / len(set(parts))
    if len(set(parts)) < MIN_PARTS:
        parts = [str(number) for number in range(len(values))]
    names, of_part, folds = _split_parts(parts)
    weights = 1 / np.bincount(of_part)[of_part] / len(names)
    spread = MIN_SPREADS.get(name, MIN_SPREAD)
    slight = blur.slight[name] if blur is not None and name in BLURRED else np.zeros(values.shape[1])
    squares, blurred = np.zeros(len(values)), np.zeros(len(values))
    for fold in set(folds.tolist()):
        held, others = folds == fold, folds != fold
        centre, scale = _describe(values[others], weights[others], len(set(of_part[others].tolist())), spread)
        squares[held] = np.mean(((values[held] - centre) @ scale) ** 2, axis=1)
        blurred[held] = (values[held] - centre) @ _discriminant(scale, slight)
    centre, scale = _describe(values, weights, len(names), spread)
    # Training photographs that are very alike must not give limits below the smallest spread.
    distance, usual_blur = (max(math.sqrt(float(weights @ each)), 1.0) for each in (squares, blurred**2))
    directions = {}
    if slight.any():
        directions["blur"] = encode_numbers(_discriminant(scale, slight) / (LIMIT * widened * usual_blur))
    if blur is not None and name == SURFACE:
        change = blur.strong[name]
        size = max(float(change @ change), len(change) * spread**2)
        directions["defocus"] = encode_numbers(change / (DEFOCUS_SHARE * size))
    limit = LIMITS.get(name, LIMIT) * widened * distance
    return MeasureLimit(
        lowest=tuple(values.min(axis=0).tolist()),
        highest=tuple(values.max(axis=0).tolist()),
        centre=tuple(centre.tolist()),
        scale=encode_numbers(scale / limit),
        refused=REFUSED.get(name),
        **directions,
    )


def _describe(values: Array, weights: Array, parts: int, spread: float) -> tuple[Array, Array]:
    """Returns mean [P] and the matrix [P, P] that converts a difference to units of the spread of parts.

    The covariance is shrunk to a multiple of the identity (OAS, Chen et al. 2010) for the number of parts.
    """
    weights = weights / weights.sum()
    centre = weights @ values
    difference, size = values - centre, values.shape[1]
    covariance = (difference * weights[:, None]).T @ difference * parts / (parts - 1)
    mean, square = float(np.trace(covariance)) / size, float(np.mean(covariance**2))
    excess = (parts + 1) * (square - mean**2 / size)
    share = min((square + mean**2) / excess, 1.0) if excess > 0 else 1.0
    shrunk = (1 - share) * covariance + (share * mean + spread**2) * np.eye(size)
    return centre, np.linalg.cholesky(np.linalg.inv(shrunk))


def _discriminant(scale: Array, change: Vector) -> Array:
    """Returns the direction [P] that separates changed photographs best, in units of the spread along it."""
    scaled = change @ scale
    direction: Array = scale @ scaled / max(float(np.linalg.norm(scaled)), 1e-9)
    return direction
