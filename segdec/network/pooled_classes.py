"""The class of a defect from the encoder's features where the defect is."""

from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from segdec.config import STRIDE
from segdec.encoders import JOINED_STRIDES
from segdec.network.surface_memory import UNCHANGED

KINDS = 2
"""Kinds of weights of `DefectWeights`."""


@keras.saving.register_keras_serializable(package="segdec")
class DefectWeights(keras.layers.Layer):
    """Returns weights of the cells for means over the defect, of two kinds: [B, H/8, W/8, 2]; each sums to 1.

    They are proportional to the mask's probability, and to the exponential of mask logit plus memory logit,
    which selects the cells that differ most from good ones.

    Input: the coarse mask logits [B, H/8, W/8, M] of each head, and in a list the logits of the memory [B,
    H/8, W/8, 1], if there is one.
    """

    def call(self, inputs: Any) -> Any:
        masks, memory = ([ops.cast(one, self.compute_dtype) for one in part] for part in inputs)
        mask = ops.max(sum(masks[1:], masks[0]) / len(masks), axis=-1, keepdims=True)
        logits = ops.concatenate([ops.log_sigmoid(mask), sum(memory, mask)], axis=-1)
        return _normalized(ops.exp(logits - ops.max(logits, axis=(1, 2), keepdims=True)))


@keras.saving.register_keras_serializable(package="segdec")
class PooledClasses(keras.layers.Layer):
    """Replaces the logits of defect classes in a decision by an affine map of means of features.

    The features are first mapped in each cell, by a convolution, then averaged with `DefectWeights`. Output 0
    of the decision, the log-odds of a defect, stays. Initially nothing changes. Nothing is trained by
    gradient: `training.class_fitting` sets the weights. For training there is also a map for each of `folds`,
    fitted without its photographs; the call argument `without`, from 0, selects it.

    Input: the decision [B, C], the weights [B, H/8, W/8, 2] and the features [B, h, w, ·] of each of
    `JOINED_STRIDES`. Output [B, C].
    """

    def __init__(self, folds: int, **kwargs: Any) -> None:
        super().__init__(trainable=False, **kwargs)
        self.folds = folds

    def build(self, input_shape: list[tuple[int | None, ...]]) -> None:
        decided, _, *features = (shape[-1] or 0 for shape in input_shape)
        self.classes = decided - 1
        self.decided_share = self.add_weight((), "ones", name="decided_share", **UNCHANGED)
        self.maps = []
        for end in ("", *(f"_without_{fold}" for fold in range(1, self.folds + 1))):
            kernels = []
            for stride, channels in zip(JOINED_STRIDES, features, strict=True):
                shape, name = (channels, KINDS * self.classes), f"kernel_{stride}{end}"
                kernels.append(self.add_weight(shape, "zeros", name=name, **UNCHANGED))
            bias = self.add_weight((self.classes,), "zeros", name=f"bias{end}", **UNCHANGED)
            self.maps.append((*kernels, bias))

    def set_map(
        self, kernel: NDArray[np.float64], bias: NDArray[np.float64], without: int | None = None
    ) -> None:
        """Sets a map of the means: kernel [2 · channels of all features, C − 1] and bias [C − 1].

        The first half of the kernel is for the first kind of weights.
        """
        *kernels, variable = self._select(without)
        variable.assign(bias)
        ends = np.cumsum([one.shape[0] for one in kernels])[:-1]
        parts = np.split(kernel.reshape(KINDS, -1, self.classes), ends, axis=1)
        for one, part in zip(kernels, parts, strict=True):
            one.assign(part.transpose(1, 0, 2).reshape(one.shape))
        self.decided_share.assign(0.0)

    def use_decision(self) -> None:
        """Leaves the classes to the decision network."""
        for variable in self.weights:
            variable.assign(ops.zeros_like(variable))
        self.decided_share.assign(1.0)

    def call(self, inputs: Any, without: int | None = None) -> Any:
        decided, weights, *features = (ops.cast(one, self.compute_dtype) for one in inputs)
        *kernels, bias = self._select(without)
        classes = bias + self.decided_share * decided[:, 1:]
        for stride, kernel, x in zip(JOINED_STRIDES, kernels, features, strict=True):
            mapped = ops.conv(x, kernel[None, None])  # [B, h, w, 2 · (C − 1)]
            own, number = weights_of_stride(weights, stride), self.classes
            weighted = (
                own[:, :, :, :1] * mapped[:, :, :, :number] + own[:, :, :, 1:] * mapped[:, :, :, number:]
            )
            classes = classes + ops.sum(weighted, axis=(1, 2))
        return ops.concatenate([decided[:, :1], classes], axis=1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "folds": self.folds}

    def _select(self, without: int | None) -> tuple[Any, ...]:
        return self.maps[0 if without is None else without + 1]


def weights_of_stride(weights: Any, stride: int) -> Any:
    """Returns the weights [B, h, w, 2] of the cells of features from those of stride 8; each sums to 1."""
    if stride <= STRIDE:  # finer features are averaged to that stride
        return weights
    return _normalized(ops.average_pool(weights, stride // STRIDE, padding="same"))


def _normalized(weights: Any) -> Any:
    return weights / ops.sum(weights, axis=(1, 2), keepdims=True)
