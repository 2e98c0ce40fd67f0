"""Synthetic defects on good images, each with its exact mask, determined by the generator's state."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.synthesis.defect_shapes import DefectShape, draw_blob, draw_crack, log_uniform
from training.synthesis.fills import (
    Fill,
    Image,
    Pixels,
    blur,
    change_brightness,
    change_texture,
    insert_texture,
    move_surface,
    shift_brightness,
)
from training.synthesis.visibility import SurfaceStrength

Mask = NDArray[np.uint8]

MIN_LEVELS = 4
"""A pixel belongs to the mask if it differs from the good image by more than this many of 255 levels …"""

MIN_LEVEL_SHARE = 0.2
"""… and by more than this share of the strongest difference: soft edges fade into nothing."""

MIN_VISIBLE_PX = 12
"""Minimum number of mask pixels."""

VISIBILITY_RANGE = 0.6, 2.0
"""Range of the target visibility; 1 is the strongest structure of the good image."""

TOLERANCE = 0.8
"""Share of the target visibility that is accepted."""

MIN_VISIBILITY = 0.3
"""Minimum visibility of a defect, whatever the target."""

SMALL_PX, SMALL_POWER = 200, 0.4
"""Defects with fewer mask pixels need a higher visibility: good surfaces have small extremes too."""

MAX_TRIES = 12
"""Number of drawings before the most visible one is used."""

MIN_LENGTH_PX = 6.0
"""Minimum length of a defect."""


def synthesize_anomaly(
    image: Image, textures: Sequence[Image], random: np.random.Generator, area: Mask | None = None
) -> tuple[Image, Mask | None]:
    """Adds a synthetic defect to a good image, within the part and the inspected area.

    Args:
        image: uint8 [h, w, C], good.
        textures: Other good images [·, ·, C] as a source of texture; none = `image` itself.
        random: Generator of all random numbers.
        area: uint8 [h, w], above 0 where the image is inspected; None = everywhere.

    Returns:
        The image with the defect and its mask, uint8 [h, w], 255 or 0; the image itself and None if no defect
        reaches the minimum visibility.
    """
    if area is not None and not area.any():
        return image, None
    surface = SurfaceStrength(image, area)
    target = log_uniform(random, VISIBILITY_RANGE)
    best: tuple[float, Image, NDArray[np.bool_]] | None = None
    for _ in range(MAX_TRIES):
        kind = KINDS[int(random.choice(len(KINDS), p=KIND_PROBABILITIES))]
        drawn = image.astype(np.float32)
        for _ in range(int(random.choice([1, 2, 3], p=[0.75, 0.17, 0.08]))):
            shape = kind.draw(random, image.shape, _draw_center(image, surface.part, random))
            opacity = shape.opacity
            if surface.part is not None:
                opacity = opacity * surface.part[shape.rows, shape.columns]
            if opacity.any():
                window = drawn[shape.rows, shape.columns]
                window += opacity[..., None] * (kind.fill(window, textures or [image], random) - window)
        scaled = _scale_visibility(image, drawn, surface, target, kind.max_strength)
        if scaled is not None and (best is None or scaled[0] > best[0]):
            best = scaled
        if best is not None and best[0] >= TOLERANCE * target:
            break
    if best is None or best[0] < MIN_VISIBILITY:
        return image, None
    return best[1], best[2].view(np.uint8) * np.uint8(255)


def _scale_visibility(
    image: Image, drawn: Pixels, surface: SurfaceStrength, target: float, max_strength: float
) -> tuple[float, Image, NDArray[np.bool_]] | None:
    """Scales the difference to the good image by at most `max_strength` to reach the target visibility.

    Returns visibility, image, and visible pixels; None if there are too few.
    """
    difference, strength = drawn - image, 1.0
    result = None
    for _ in range(3):
        changed = np.rint(np.clip(image + strength * difference, 0.0, 255.0)).astype(np.uint8)
        visible = _visible_pixels(image, changed)
        if np.count_nonzero(visible) < MIN_VISIBLE_PX:
            return result
        small = min(1.0, np.count_nonzero(visible) / SMALL_PX) ** SMALL_POWER
        visibility = small * surface.visibility(changed, visible)
        result = visibility, changed, visible
        if TOLERANCE * target <= visibility <= target / TOLERANCE or visibility <= 0.0:
            break
        strength = min(max_strength, strength * target / visibility)
    return result


def _visible_pixels(image: Image, changed: Image) -> NDArray[np.bool_]:
    difference = np.abs(changed.astype(np.int16) - image).max(axis=2)
    changes = difference[difference > 0]
    if not changes.size:
        return np.zeros(difference.shape, np.bool_)
    visible = difference > max(MIN_LEVELS, MIN_LEVEL_SHARE * float(np.quantile(changes, 0.95)))
    return np.asarray(visible, np.bool_)


def _draw_center(
    image: Image, part: NDArray[np.bool_] | None, random: np.random.Generator
) -> tuple[int, int]:
    """Row and column of a pixel of the part, uniformly."""
    rows, columns = image.shape[:2]
    if part is None:
        return int(random.integers(rows)), int(random.integers(columns))
    row, column = divmod(int(random.choice(np.flatnonzero(part))), columns)
    return row, column


@dataclass(frozen=True)
class DefectKind:
    """A kind of defect: its fill and how its shape is drawn, a crack or a blob.

    Attributes:
        length: Minimum and maximum length, relative to the root of the image's area.
        softness: Minimum and maximum width of a blob's edge, relative to half its length.
        max_strength: Maximum factor of the fill's difference to the surface.
    """

    fill: Fill
    length: tuple[float, float]
    softness: tuple[float, float] = (0.0, 0.4)
    crack: bool = False
    max_strength: float = 1.0

    def draw(
        self, random: np.random.Generator, size: tuple[int, ...], center: tuple[int, int]
    ) -> DefectShape:
        """Draws a shape of this kind around `center` in an image of `size`."""
        side = math.sqrt(size[0] * size[1])
        length_px = max(MIN_LENGTH_PX, side * log_uniform(random, self.length))
        if self.crack:
            width_px = log_uniform(random, (1.0, max(2.0, 0.016 * side)))
            return draw_crack(random, size, center, length_px, min(width_px, length_px / 4.0))
        return draw_blob(random, size, center, length_px, random.uniform(*self.softness))


KINDS = (
    DefectKind(change_brightness, (0.05, 0.6), crack=True, max_strength=6.0),
    DefectKind(change_brightness, (0.015, 0.12), max_strength=6.0),
    DefectKind(shift_brightness, (0.05, 0.4), (0.4, 1.0), max_strength=6.0),
    DefectKind(blur, (0.03, 0.35), (0.0, 0.6)),
    DefectKind(change_texture, (0.03, 0.35), (0.0, 0.6)),
    DefectKind(insert_texture, (0.02, 0.4)),
    DefectKind(move_surface, (0.03, 0.3)),
)
KIND_PROBABILITIES = (0.4, 0.1, 0.08, 0.14, 0.08, 0.13, 0.07)
"""Probability of each kind."""
