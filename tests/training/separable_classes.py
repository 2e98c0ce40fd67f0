"""Features whose classes a linear map separates."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHANNELS = 60


def make_separable(
    classes: Sequence[int] | NDArray[np.int64], *, distance: float = 8.0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Returns features [N, F] of classes [N], each with a direction of its own, and the classes.

    Channels have different means and scales.
    """
    random = np.random.default_rng(0)
    directions = random.normal(size=(max(classes) + 1, CHANNELS))
    features = distance * directions[classes] / np.sqrt(CHANNELS)
    features += random.normal(size=features.shape)
    return 100 + features * np.geomspace(0.01, 10, CHANNELS), np.array(classes)


def predict(features: NDArray[np.float64], kernel: Any, bias: Any) -> Any:
    """Returns the class [N] with the highest logit."""
    return (features @ kernel + bias).argmax(axis=1)
