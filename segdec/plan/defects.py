"""Finds the single defects of a prediction that an inspection plan judges."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from segdec.config import ModelConfig
from segdec.inference.mask_refinement import to_log_odds, to_scores
from segdec.inference.postprocessing import Prediction, raise_threshold
from segdec.plan.mask_parts import MaskPart, connected_parts

POSSIBLE_LOG_ODDS = 3.0
"""Pixels whose mask score is at most so much below the threshold, in log-odds, may belong to a defect."""


@dataclass(frozen=True)
class FoundDefect:
    """The pixels of a connected defect.

    Attributes:
        part: Pixels that belong to it; its mask.
        extent: Connected pixels whose score reaches the model's mask threshold, those of `part` included.
        possible: Connected pixels that may belong to it, those of `extent` included.
        score_max: Highest mask score.
        classes: Its defect classes, the most frequent one first; empty if the mask has none.
    """

    part: MaskPart
    extent: MaskPart
    possible: MaskPart
    score_max: float
    classes: tuple[str, ...]


def find_defects(prediction: Prediction, config: ModelConfig) -> Iterator[FoundDefect]:
    """Yields the defects of a photograph: at least one for each connected part of the pixels whose score
    reaches the model's mask threshold.

    `Prediction.mask` omits weak defects beside a strong one, since its threshold rises with the highest score
    of the photograph. Here the threshold rises with the highest score of each connected part.
    """
    thresholds, scores = config.thresholds, prediction.mask_scores
    network = scores if prediction.network_scores is None else prediction.network_scores
    inspected = True if prediction.area is None else prediction.area > 0
    extents = ((network >= thresholds.mask) | (prediction.mask > 0)) & inspected
    lowest = to_scores(to_log_odds(np.array(thresholds.mask, np.float32)) - POSSIBLE_LOG_ODDS)
    share = thresholds.mask_share if prediction.class_mask is None else 0.0
    for possible in connected_parts(((network >= lowest) | extents) & inspected):
        for extent in possible.within(extents).connected_parts():
            highest = max(float(network[extent.window][extent.pixels].max()), thresholds.mask)
            limit = min(prediction.mask_threshold, raise_threshold(thresholds.mask, highest, share))
            certain = extent.pixels & (scores[extent.window] >= limit)
            mask = MaskPart(extent.window, certain if certain.any() else extent.pixels)
            for part in mask.connected_parts():
                score_max = float(scores[part.window][part.pixels].max())
                classes = _classes(prediction, config, part)
                yield FoundDefect(part, extent, possible, score_max, classes)


def _classes(prediction: Prediction, config: ModelConfig, part: MaskPart) -> tuple[str, ...]:
    if prediction.class_mask is None:
        return config.classes[1:] if len(config.classes) == 2 else ()
    counts = np.bincount(prediction.class_mask[part.window][part.pixels], minlength=len(config.classes))[1:]
    order = np.argsort(-counts, kind="stable")
    return tuple(config.classes[1 + number] for number in order if counts[number])
