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
        gain: Weight of the last input in the logit of each defect class; its negative for good.
        even: Value of the last input at which the bias makes all classes equal.
        alone: Whether the other inputs start at zero, so that only the mask decides; else random.
    """

    def __init__(self, gain: float, even: float, alone: bool) -> None:
        self.gain, self.even, self.alone = gain, even, alone
        self._others = keras.initializers.Zeros() if alone else keras.initializers.GlorotUniform()

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        """Returns the kernel [inputs, classes] or the bias [classes]; class 0 is good."""
        prior = ops.convert_to_tensor([-self.gain] + [self.gain] * (shape[-1] - 1), dtype=dtype)
        if len(shape) == 1:
            return -self.even * prior
        return ops.concatenate([self._others(shape, dtype)[:-1], prior[None]])

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, "even": self.even, "alone": self.alone}
