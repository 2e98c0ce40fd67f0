"""What a model proposes for a photograph: a label and a mask with the classes of the data set."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from api.data_sets.schemas import ProposalReason
from api.inspecting.background_inspector import BackgroundResult
from segdec.config import GOOD, ModelConfig
from segdec.images import encode_png
from segdec.inference.postprocessing import Prediction
from segdec.runtime.label_names import plain_label

UNCERTAIN_LOG_ODDS = 1.0
"""A score closer to the threshold, in log-odds, is uncertain: from 0.27 to 0.73 around a threshold of 0.5."""
MIN_PROBABILITY = 1e-9
"""Thresholds of 0 and 1 have no log-odds."""


@dataclass(frozen=True)
class NewProposal:
    """A proposal.

    `label`, `score` (1 − P(good)) and `distance` between score and threshold, in log-odds, are None if the
    model refused the photograph. `mask` is a PNG of class values; None without a defect that has a place.
    """

    label: str | None
    score: float | None
    distance: float | None
    reason: ProposalReason
    mask: bytes | None = None

    @property
    def certainty(self) -> float:
        """How sure the model is, in log-odds: 0 about a photograph unlike those of the training."""
        if self.reason == "unlike_training" or self.distance is None:
            return 0.0
        return min(self.distance, UNCERTAIN_LOG_ODDS) if self.reason == "uncertain" else self.distance


def make_proposal(result: BackgroundResult, model: ModelConfig, classes: Sequence[str]) -> NewProposal:
    """Returns the proposal for a photograph. Slow, so call it in a thread.

    The first of `classes`, those of the data set, is proposed for a class of the model that it does not have.
    """
    prediction = result.prediction
    if prediction is None:
        return NewProposal(None, None, None, "unlike_training")
    distance = measure_distance(prediction, model)
    in_doubt = distance < UNCERTAIN_LOG_ODDS or _is_for_review(prediction, model)
    reason: ProposalReason = "uncertain" if in_doubt else "sure"
    if result.unlike is not None:
        reason = "unlike_training"
    if prediction.label == model.classes[0]:
        return NewProposal(GOOD, prediction.score, distance, reason)
    values = [0, *(find_value(name, classes) for name in model.classes[1:])]
    value = values[model.classes.index(prediction.label)]
    mask = _encode_mask(prediction, values, value)
    return NewProposal(classes[value - 1], prediction.score, distance, reason, mask)


def measure_distance(prediction: Prediction, model: ModelConfig) -> float:
    """Returns the distance between score and threshold in log-odds, also where the score rounds to 0 or 1."""
    calibration = model.calibration
    odds = calibration.slope * prediction.log_odds + calibration.intercept
    threshold = min(max(prediction.threshold, MIN_PROBABILITY), 1 - MIN_PROBABILITY)
    return abs(odds - math.log(threshold / (1 - threshold)))


def _is_for_review(prediction: Prediction, model: ModelConfig) -> bool:
    review = model.thresholds.review
    return review is not None and review <= prediction.score < prediction.threshold


def find_value(name: str, classes: Sequence[str]) -> int:
    """Returns the mask value of a model's class: that of the class with this name, else of the first one."""
    if name in classes:
        return classes.index(name) + 1
    plain = [plain_label(known) for known in classes]
    return plain.index(plain_label(name)) + 1 if plain_label(name) in plain else 1


def _encode_mask(prediction: Prediction, values: Sequence[int], value: int) -> bytes | None:
    """Returns a PNG of class values; `value` is that of the label, for a model with one mask."""
    if not prediction.mask.any():
        return None
    if prediction.class_mask is None:
        return encode_png(np.where(prediction.mask > 0, np.uint8(value), np.uint8(0)))
    return encode_png(np.array(values, np.uint8)[prediction.class_mask])
