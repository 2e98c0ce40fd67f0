"""One score from trained heads, the memory of good surface and pooled features."""

from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from segdec.network.surface_memory import UNCHANGED

UNUSUAL_LOG_ODDS = -1.0
"""Added to the memory's highest logit: a good photograph that is four standard deviations above the average
gets the log-odds 0 (`training.memory_building.USUAL_LOG_ODDS` is the average)."""

NEVER = -1e9
"""Log-odds of a photograph that the memory does not find unusual."""


@keras.saving.register_keras_serializable(package="segdec")
class Evidence(keras.layers.Layer):
    """Describes a photograph for `ScoreCombination`.

    Input: the mean of the decisions [B, C], logits of the memory [B, h, w, 1], in a list the mask logits [B,
    H, W, M] of each head, and in another one the output of `PooledScore` [B, 1], if there is one. Output [B,
    3] or [B, 4]: the log-odds of a defect, the highest mask logit (mean over the heads), the highest logit of
    the memory, and the pooled score.
    """

    def call(self, inputs: Any) -> Any:
        (decided,), (memory_logits,), mask_logits, pooled = (
            [ops.cast(one, self.compute_dtype) for one in part] for part in inputs
        )
        # With several defect classes, the log-odds are a logit of their own: see `DefectAndClass`.
        log_odds = decided[:, 0] if decided.shape[1] > 2 else decided[:, 1] - decided[:, 0]
        # The highest logit of the mean mask would be lower than that of one head, which is what the weights
        # and the thresholds are chosen on.
        highest_of_heads = [_highest(one) for one in mask_logits]
        highest = sum(highest_of_heads[1:], highest_of_heads[0]) / len(highest_of_heads)
        found = [log_odds, highest, _highest(memory_logits), *(one[:, 0] for one in pooled)]
        return ops.stack(found, axis=1)


@keras.saving.register_keras_serializable(package="segdec")
class ScoreCombination(keras.layers.Layer):
    """Combines evidence [B, N] to log-odds of a defect and changes the decision [B, C] accordingly.

    With weights w and bias b, the log-odds are log(exp(w · evidence + b) + exp(u)), where u is the highest
    logit of the memory plus `unusual`: what is very unlike good surface is not outvoted. Initially the
    decision does not change. Nothing is trained by gradient: `training.score_combination` sets the weights.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trainable=False, **kwargs)

    def build(self, input_shape: list[tuple[int | None, ...]]) -> None:
        number = input_shape[1][-1] or 0
        decision_only = keras.initializers.Constant(np.eye(number)[0])
        self.kernel = self.add_weight((number,), decision_only, name="kernel", **UNCHANGED)
        self.bias = self.add_weight((), "zeros", name="bias", **UNCHANGED)
        never = keras.initializers.Constant(NEVER)
        self.unusual = self.add_weight((), never, name="unusual", **UNCHANGED)

    def set_combination(
        self, weights: NDArray[np.float64], bias: float, unusual: float = UNUSUAL_LOG_ODDS
    ) -> None:
        """Sets the weights [N] of the evidence, their bias, and what is added to the memory's logit."""
        for variable, value in zip(self.weights, (weights, bias, unusual), strict=True):
            variable.assign(value)

    def call(self, inputs: Any) -> Any:
        decided, evidence = (ops.cast(one, self.compute_dtype) for one in inputs)
        combined = ops.sum(evidence * self.kernel, axis=1) + self.bias
        combined = combined + ops.softplus(evidence[:, 2] + self.unusual - combined)
        change = (combined - evidence[:, 0])[:, None]
        place = 0 if decided.shape[1] > 2 else 1
        changed = decided[:, place : place + 1] + change
        return ops.concatenate([decided[:, :place], changed, decided[:, place + 1 :]], axis=1)


def _highest(logits: Any) -> Any:
    return ops.max(logits, axis=(1, 2, 3))
