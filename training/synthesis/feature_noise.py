"""Synthetic defects in an encoder's features: Gaussian noise under a mask of Perlin noise.

Source: Rolih et al., "SuperSimpleNet", 2024.
"""

from collections.abc import Mapping

import cv2
import numpy as np
from numpy.typing import NDArray

from training.synthesis.defect_shapes import log_uniform, perlin_noise

CELLS = 2.0, 32.0
"""Minimum and maximum number of noise cells along the shorter side."""

AREA_SHARES = 0.002, 0.12
"""Minimum and maximum share of the inspected area."""

STRENGTHS = 0.3, 2.0
"""Minimum and maximum standard deviation of the noise, relative to that of the channel."""


def draw_noise_mask(
    random: np.random.Generator, size: tuple[int, int], area: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8] | None:
    """Draws a mask, uint8 [h, w], 255 or 0: the highest values of Perlin noise within the inspected `area`.

    None if nothing is inspected.
    """
    inside = np.ones(size, np.bool_) if area is None else area > 0
    if not inside.any():
        return None
    cell_px = max(2.0, min(size) / log_uniform(random, CELLS))
    noise = perlin_noise(random, *size, cell_px)
    share = log_uniform(random, AREA_SHARES)
    mask = (noise >= np.quantile(noise[inside], 1.0 - share)) & inside
    return mask.view(np.uint8) * np.uint8(255)


def add_noise(
    features: Mapping[str, NDArray[np.float16]], mask: NDArray[np.uint8], random: np.random.Generator
) -> dict[str, NDArray[np.float16]]:
    """Returns the features, float16 [·, ·, C], with noise under the mask; each channel keeps its range."""
    strength = log_uniform(random, STRENGTHS)
    defective = (mask > 0).astype(np.float32)
    return {name: _noisy(one, defective, strength, random) for name, one in features.items()}


def _noisy(
    features: NDArray[np.float16],
    defective: NDArray[np.float32],
    strength: float,
    random: np.random.Generator,
) -> NDArray[np.float16]:
    rows, columns = features.shape[:2]
    share = cv2.resize(defective, (columns, rows), interpolation=cv2.INTER_AREA)
    covered = share > 0
    values = features.astype(np.float32)
    flat = values.reshape(-1, values.shape[2])
    lowest, highest, spread = flat.min(axis=0), flat.max(axis=0), flat.std(axis=0)
    noise = strength * spread * random.standard_normal((int(covered.sum()), values.shape[2]), np.float32)
    values[covered] = np.clip(values[covered] + share[covered][:, None] * noise, lowest, highest)
    return values.astype(features.dtype)
