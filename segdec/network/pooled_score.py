"""Log-odds of a defect from the encoder's features of the whole image."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from segdec.network.surface_memory import UNCHANGED

Floats = NDArray[np.float64]


@keras.saving.register_keras_serializable(package="segdec")
class FeatureStatistics(keras.layers.Layer):
    """Returns mean and standard deviation of each feature over the image, [B, 2 · channels].

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

    They stay between `lowest` and `highest`, because a map of many features can give any number for
    photographs unlike those that it was fitted to. Nothing is trained by gradient:
    `training.score_combination` sets the weights. For training there is also a map for each of `folds`,
    fitted without its photographs; the call argument `without`, from 0, selects it.
    """

    def __init__(self, folds: int, **kwargs: Any) -> None:
        super().__init__(trainable=False, **kwargs)
        self.folds = folds

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        number = input_shape[1]
        self.center = self.add_weight((number,), "zeros", name="center", **UNCHANGED)
        self.lowest = self.add_weight((), "zeros", name="lowest", **UNCHANGED)
        self.highest = self.add_weight((), "zeros", name="highest", **UNCHANGED)
        self.maps = []
        for end in ("", *(f"_without_{fold}" for fold in range(1, self.folds + 1))):
            kernel = self.add_weight((number,), "zeros", name=f"kernel{end}", **UNCHANGED)
            bias = self.add_weight((), "zeros", name=f"bias{end}", **UNCHANGED)
            self.maps.append((kernel, bias))

    def set_maps(
        self, maps: Sequence[tuple[Floats, float]], center: Floats, limits: tuple[float, float]
    ) -> None:
        """Sets the map of all photographs, then those without a fold: kernel [F] and bias of each.

        Rounding errors are small near `center` [F], a typical value of the statistics. `limits` are the
        lowest and the highest log-odds.
        """
        self.center.assign(center)
        self.lowest.assign(limits[0])
        self.highest.assign(limits[1])
        for (weights, offset), (kernel, bias) in zip(self.maps, maps, strict=True):
            weights.assign(kernel)
            offset.assign(bias + kernel @ center)

    def call(self, inputs: Any, without: int | None = None) -> Any:
        kernel, bias = self.maps[0 if without is None else without + 1]
        # OpenVINO rounds a matrix product to bfloat16, but not this sum.
        products = (ops.cast(inputs, self.compute_dtype) - self.center) * kernel
        log_odds = ops.sum(products, axis=1, keepdims=True) + bias
        return ops.minimum(ops.maximum(log_odds, self.lowest), self.highest)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "folds": self.folds}
