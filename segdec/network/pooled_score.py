"""Log-odds of a defect from the encoder's features of the whole photograph."""

from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from segdec.network.surface_memory import UNCHANGED


@keras.saving.register_keras_serializable(package="segdec")
class FeatureStatistics(keras.layers.Layer):
    """Returns mean and standard deviation of each feature over the photograph, [B, 2 · channels].

    Input: the features [B, h, w, ·] of each of `JOINED_STRIDES`.
    """

    def call(self, inputs: Any) -> Any:
        statistics = []
        for features in inputs:
            x = ops.cast(features, self.compute_dtype)
            mean = ops.mean(x, axis=(1, 2))
            deviation = ops.sqrt(ops.mean(ops.square(x - mean[:, None, None]), axis=(1, 2)))
            statistics += [mean, deviation]
        return ops.concatenate(statistics, axis=1)


@keras.saving.register_keras_serializable(package="segdec")
class PooledScore(keras.layers.Layer):
    """Maps statistics [B, F] of the features to log-odds of a defect [B, 1]; they are 0 at first.

    Nothing is trained by gradient: `training.score_combination` sets the weights. For training there is also
    a map for each of `folds`, fitted without its photographs; the call argument `without`, from 0, selects
    it.
    """

    def __init__(self, folds: int, **kwargs: Any) -> None:
        super().__init__(trainable=False, **kwargs)
        self.folds = folds

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.maps = []
        for end in ("", *(f"_without_{fold}" for fold in range(1, self.folds + 1))):
            kernel = self.add_weight((input_shape[1], 1), "zeros", name=f"kernel{end}", **UNCHANGED)
            bias = self.add_weight((1,), "zeros", name=f"bias{end}", **UNCHANGED)
            self.maps.append((kernel, bias))

    def set_map(self, kernel: NDArray[np.float64], bias: float, without: int | None = None) -> None:
        """Sets a map of the statistics: kernel [F] and bias."""
        weights, offset = self._select(without)
        weights.assign(kernel[:, None])
        offset.assign([bias])

    def call(self, inputs: Any, without: int | None = None) -> Any:
        kernel, bias = self._select(without)
        return ops.matmul(ops.cast(inputs, self.compute_dtype), kernel) + bias

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "folds": self.folds}

    def _select(self, without: int | None) -> tuple[Any, Any]:
        return self.maps[0 if without is None else without + 1]
