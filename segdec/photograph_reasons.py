"""Names the reason why a photograph is unlike those of the training, as a person would.

Black, white and flat photographs are recognised by their brightness. For the others, each known alteration is
subtracted from the measures: if the photograph then is like those of the training, this is the cause.
Otherwise it shows another part or scene.
"""

import math
from collections.abc import Mapping

import numpy as np

from segdec.photograph_check import PROPORTIONS, SURFACE, AlterationCause, PhotographLimits, Vector

THAN_TRAINING = "than those of the training"

BLACK = "black or almost black (lamp off, lens cap)"
WHITE = "white or almost white (overexposed)"
FLAT = "without contrast (one grey level or colour)"
OTHER_PROPORTIONS = f"of other proportions {THAN_TRAINING}"
OTHER_SIZE = f"of another size {THAN_TRAINING}"
COLOURS = f"of other colours {THAN_TRAINING}"
SCENE = f"of another part, position or scene {THAN_TRAINING}"
PART = f"of another part or surface {THAN_TRAINING}"
OTHER_PART = SCENE, PART
"""Reasons that a very large defect can have as well."""

CAUSES: dict[AlterationCause, str] = {
    "darker": f"darker {THAN_TRAINING}",
    "brighter": f"brighter {THAN_TRAINING}",
    "less contrast": f"lower in contrast {THAN_TRAINING}",
    "blurred": f"out of focus or blurred, less sharp {THAN_TRAINING}",
    "noisier": f"noisier {THAN_TRAINING}",
}

MAX_EXTREME = 48
"""Levels from black or from white within which the mean and two standard deviations are."""

FLAT_DEVIATION = 2.0
"""Standard deviation, levels, below which a photograph is flat. A camera's noise is about one level."""

MIN_EXTREME_DISTANCE = 0.5
"""Multiple of its limit that the brightness of a black, white or flat photograph must have. Usual ones of a
dark or flat part can be a little darker or flatter than all those of the training."""

MIN_DISTANCE = 0.2
"""Multiple of its limit that the largest distance must have to be explained."""

MAX_REMAINDER = 0.5
"""Share of the squared distances that may remain without the cause."""

MAX_REMAINING_DISTANCE = 0.75
"""Multiple of its limit that each distance may have without the cause: the photograph then is like those of
the training."""

STRENGTHS = 0.6, 0.8, 1.0, 1.25
"""Multiples of a known alteration that are subtracted, since a photograph can be altered more or less."""


def find_reason(
    limits: PhotographLimits, measured: Mapping[str, Vector], distances: Mapping[str, float]
) -> str | None:
    """Returns why a photograph is unlike those of the training; None if it exceeds no limit.

    `distances` are the `PhotographLimits.distances` of the measures.
    """
    if (extreme := _find_extreme(limits, measured)) is not None:
        return extreme
    if max(distances.values(), default=0.0) <= 1 and not limits.refuses(measured):
        return None
    proportions = {name: vector for name, vector in measured.items() if name == PROPORTIONS}
    if distances.get(PROPORTIONS, 0.0) > 1 or limits.refuses(proportions):
        return OTHER_PROPORTIONS
    other_part = SCENE if distances.get("layout", 0.0) > 1 else PART
    return _find_cause(limits, measured, distances) or other_part


def is_refused(limits: PhotographLimits, measured: Mapping[str, Vector]) -> bool:
    """Returns whether a photograph certainly shows something else than those of the training."""
    return _find_extreme(limits, measured) is not None or limits.refuses(measured)


def _find_extreme(limits: PhotographLimits, measured: Mapping[str, Vector]) -> str | None:
    """A photograph that shows nothing, where those of the training show something."""
    if "brightness" not in measured or "brightness" not in limits.measures:
        return None
    trained = limits.measures["brightness"]
    if trained.distance(measured["brightness"]) < MIN_EXTREME_DISTANCE:
        return None
    mean, contrast = measured["brightness"].tolist()
    level, deviation = 256 / (1 + math.exp(-mean)), math.exp(contrast) - 1
    if level + 2 * deviation <= MAX_EXTREME and mean < trained.lowest[0]:
        return BLACK
    if 256 - level + 2 * deviation <= MAX_EXTREME and mean > trained.highest[0]:
        return WHITE
    return FLAT if deviation < FLAT_DEVIATION and contrast < trained.lowest[1] else None


def _find_cause(
    limits: PhotographLimits, measured: Mapping[str, Vector], distances: Mapping[str, float]
) -> str | None:
    """The alteration, or the colours, without which the distances are smallest, if they then are small."""
    others = PROPORTIONS, SURFACE
    before = {name: distance for name, distance in distances.items() if name not in others}
    if not before or max(before.values()) < MIN_DISTANCE:
        return None
    remaining = {}
    for alteration in limits.alterations:
        for strength in STRENGTHS:
            shifts = {name: strength * np.array(shift) for name, shift in alteration.shifts.items()}
            restored = limits.distances({name: measured[name] - shifts[name] for name in before})
            remaining[_sum_squares(restored)] = CAUSES[alteration.cause], restored
    without_colour = {name: distance for name, distance in before.items() if name != "colour"}
    remaining[_sum_squares(without_colour)] = COLOURS, without_colour
    least = min(remaining)
    reason, left = remaining[least]
    explained = least <= MAX_REMAINDER * _sum_squares(before)
    return reason if explained and max(left.values(), default=0.0) <= MAX_REMAINING_DISTANCE else None


def _sum_squares(distances: Mapping[str, float]) -> float:
    return sum(distance**2 for distance in distances.values())
