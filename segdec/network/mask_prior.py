"""Initial weights of a decision that starts from the mask."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="segdec")
class MaskPrior(keras.initializers.Initializer):
    """Initializer of the decision's last layer in which the last input, the mask's maximum, dominates.

    Adam changes a weight by at most the learning rate per step: within a few hundred steps a small random
    weight could not grow enough for the mask to decide, and the other inputs would memorise a dozen defects.

    Args:
        gain: Half the weight of the last input in the log-odds of a defect. With two classes it is the weight
            in the logit of the defect class, and its negative in that of good.
        even: Value of the last input at which the bias makes good and defective equal.
        alone: Whether the other inputs start at zero, so that only the mask decides; else random.
    """

    def __init__(self, gain: float, even: float, alone: bool) -> None:
        self.gain, self.even, self.alone = gain, even, alone
        self._others = keras.initializers.Zeros() if alone else keras.initializers.GlorotUniform()

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        """Returns the kernel [inputs, outputs] or the bias [outputs], for `DefectAndClass` or two classes."""
        outputs = shape[-1]
        weights = [-self.gain, self.gain] if outputs == 2 else [2 * self.gain] + [0.0] * (outputs - 1)
        prior = ops.convert_to_tensor(weights, dtype=dtype)
        if len(shape) == 1:
            return -self.even * prior
        return ops.concatenate([self._others(shape, dtype)[:-1], prior[None]])

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, "even": self.even, "alone": self.alone}
