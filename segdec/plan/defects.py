"""Finds the single defects of a prediction that an inspection plan judges."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from segdec.config import ModelConfig
from segdec.inference.mask_refinement import to_log_odds, to_scores
from segdec.inference.postprocessing import Prediction, raise_threshold
from segdec.plan.mask_parts import ConnectedParts, MaskPart

POSSIBLE_LOG_ODDS = 3.0
"""Pixels whose mask score is at most so much below the threshold, in log-odds, may belong to a defect."""


@dataclass(frozen=True)
class FoundDefect:
    """The pixels of a connected defect.

    Attributes:
        part: Pixels that belong to it; its mask.
        possible: Pixels that may belong to it, those of `part` included. Defects may share them.
        score_max: Highest mask score.
        classes: Its defect classes, the most frequent one first; empty if the mask has none.
    """

    part: MaskPart
    possible: MaskPart
    score_max: float
    classes: tuple[str, ...]


def find_defects(prediction: Prediction, config: ModelConfig) -> Iterator[FoundDefect]:
    """Yields the defects of a photograph, the largest first: at least one for each connected part of the
    pixels whose score reaches the model's mask threshold.

    `Prediction.mask` omits weak defects beside a strong one, since its threshold rises with the highest score
    of the photograph. Here the threshold rises with the highest score of each connected part.
    """
    thresholds, scores = config.thresholds, prediction.mask_scores
    network = scores if prediction.network_scores is None else prediction.network_scores
    inspected = True if prediction.area is None else prediction.area > 0
    reached = ((network >= thresholds.mask) | (prediction.mask > 0)) & inspected
    lowest = to_scores(to_log_odds(np.array(thresholds.mask, np.float32)) - POSSIBLE_LOG_ODDS)
    possible = ConnectedParts.of_mask(((network >= lowest) | reached) & inspected)
    share = thresholds.mask_share if prediction.class_mask is None else 0.0
    for extent in ConnectedParts.of_mask(reached).largest_first():
        highest = max(float(network[extent.window][extent.pixels].max()), thresholds.mask)
        limit = min(prediction.mask_threshold, raise_threshold(thresholds.mask, highest, share))
        certain = extent.pixels & (scores[extent.window] >= limit)
        mask = MaskPart(extent.window, certain if certain.any() else extent.pixels)
        for part in ConnectedParts(mask).largest_first():
            score_max = max(highest, float(scores[part.window][part.pixels].max()))
            yield FoundDefect(part, possible.around(extent), score_max, _classes(prediction, config, part))


def _classes(prediction: Prediction, config: ModelConfig, part: MaskPart) -> tuple[str, ...]:
    if prediction.class_mask is None:
        return config.classes[1:] if len(config.classes) == 2 else ()
    counts = np.bincount(prediction.class_mask[part.window][part.pixels], minlength=len(config.classes))[1:]
    order = np.argsort(-counts, kind="stable")
    return tuple(config.classes[1 + number] for number in order if counts[number])
