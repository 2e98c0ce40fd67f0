"""Reduces large parts of a mask before steps that take long."""

import math

import numpy as np
from numpy.typing import NDArray

MAX_PIXELS = 2**18
"""Limit on the window of a part that is not reduced."""


def reduction_factor(part: NDArray[np.bool_]) -> int:
    """Returns the factor by which a part is reduced; 1: it is small enough."""
    return math.ceil(math.sqrt(part.size / MAX_PIXELS)) if part.size > MAX_PIXELS else 1


def reduce_mask(part: NDArray[np.bool_], factor: int) -> NDArray[np.bool_]:
    """Returns which squares of `factor` × `factor` px contain a pixel of the part."""
    rows, columns = (-(-side // factor) for side in part.shape)
    padded = np.zeros((rows * factor, columns * factor), np.bool_)
    padded[: part.shape[0], : part.shape[1]] = part
    return np.asarray(padded.reshape(rows, factor, columns, factor).any(axis=(1, 3)))
