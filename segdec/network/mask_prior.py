"""The first weights of a decision that starts from what the mask shows."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="segdec")
class MaskPrior(keras.initializers.Initializer):
    """First weights of the decision's last layer: its last input, the maximum of the mask, leads.

    It speaks for every defect and against good. Adam moves a weight by no more than the learning rate a
    step: in a few hundred steps a small random weight cannot grow to where the mask would decide, and the
    other inputs learn a dozen defects by heart.

    Args:
        gain: Weight of the last input in the logit of each defect class; that of good gets its negative.
        even: Value of the last input at which the bias makes all classes alike.
        alone: Whether the other inputs start at zero, so that the first answer is the mask's; else random.
    """

    def __init__(self, gain: float, even: float, alone: bool) -> None:
        self.gain = gain
        self.even = even
        self.alone = alone
        self._others = keras.initializers.Zeros() if alone else keras.initializers.GlorotUniform()

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        """Returns the kernel [inputs, classes] or the bias [classes]; class 0 is good."""
        prior = ops.convert_to_tensor([-self.gain] + [self.gain] * (shape[-1] - 1), dtype=dtype)
        if len(shape) == 1:
            return -self.even * prior
        return ops.concatenate([self._others(shape, dtype)[:-1], prior[None]])

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make this initializer again."""
        return {"gain": self.gain, "even": self.even, "alone": self.alone}
