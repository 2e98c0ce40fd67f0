"""Defects that no photograph shows: noise in an encoder's features, each with its exact mask.

Pure functions of the generator's state. Source: Rolih et al., "SuperSimpleNet", 2024: noise under a mask of
Perlin noise makes the features of a good photograph those of a defective one.
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from training.data.array_cache import Arrays
from training.synthesis.defect_shapes import log_uniform, perlin_noise

BUMPS = 2.0, 32.0
"""Of Perlin noise along the shorter side: fewest and most."""

AREA_SHARES = 0.002, 0.12
"""Part of the photograph that the noise lies in: least and most."""

STRENGTHS = 0.3, 2.0
"""Standard deviation of the noise, in those of the channel over the photograph: least and most."""


def draw_noise_mask(
    random: np.random.Generator, size: tuple[int, int], area: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8] | None:
    """Draws where the noise lies: the highest parts of Perlin noise.

    Args:
        random: Is advanced.
        size: Rows and columns of the photograph.
        area: uint8 [h, w], above 0 where the photograph is inspected; None = everywhere.

    Returns:
        uint8 [h, w], 255 or 0; None if nothing is inspected.
    """
    inside = np.ones(size, np.bool_) if area is None else area > 0
    if not inside.any():
        return None
    cell_px = max(2.0, min(size) / log_uniform(random, BUMPS))
    noise = perlin_noise(random, *size, cell_px)
    share = log_uniform(random, AREA_SHARES)
    mask = (noise >= np.quantile(noise[inside], 1.0 - share)) & inside
    return mask.view(np.uint8) * np.uint8(255)


def add_noise(features: Arrays, mask: NDArray[np.uint8], random: np.random.Generator) -> Arrays:
    """Returns the features with noise where the mask is, each channel within what it shows elsewhere.

    Args:
        features: By name, float16 [·, ·, C].
        mask: uint8 [h, w], above 0 where the noise lies.
        random: Is advanced.
    """
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
    places = share > 0
    values = features.astype(np.float32)
    flat = values.reshape(-1, values.shape[2])
    least, most, spread = flat.min(axis=0), flat.max(axis=0), flat.std(axis=0)
    noise = strength * spread * random.standard_normal((int(places.sum()), values.shape[2]), np.float32)
    values[places] = np.clip(values[places] + share[places][:, None] * noise, least, most)
    return values.astype(features.dtype)
