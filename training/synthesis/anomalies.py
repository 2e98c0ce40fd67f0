"""Defects that nobody has seen, made up on good photographs, each with its exact mask.

Pure functions of the generator's state. Sizes and strengths are relative to the photograph: lengths to its
side (the root of its area), brightness to how much the surface around varies by itself.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from training.synthesis.defect_shapes import Opacity, Shape, draw_blob, draw_crack, log_uniform
from training.synthesis.visibility import Surface

Image = NDArray[np.uint8]
Mask = NDArray[np.uint8]
Pixels = NDArray[np.float32]

MIN_LEVELS = 4
"""Levels of 255 by which a pixel of a made-up defect differs from the good photograph, at least, plus one."""

MIN_LEVEL_SHARE = 0.2
"""The same, as a part of how much a defect differs where it is strongest: soft edges fade into nothing."""

MIN_VISIBLE_PX = 12
"""Visible pixels of a defect, at least."""

VISIBILITY_RANGE = 0.6, 2.0
"""How much defects stand out: least and most, where 1 is the strongest that the good photograph shows."""

TOLERANCE = 0.8
"""Part of what is aimed at that will do."""

MIN_VISIBILITY = 0.3
"""How much a defect must stand out, whatever was aimed at."""

SMALL_PX, SMALL_POWER = 200, 0.4
"""A defect of fewer visible pixels has to stand out more: small extremes are what a good surface has."""

MAX_TRIES = 12
"""How often a defect is drawn that cannot stand out as it should, before the best of all is taken."""

MIN_LENGTH_PX = 6.0
"""Of a defect, whatever the size of the photograph."""

DARK = 0.75
"""Share of the defects of another brightness that are darker: bright ones are what reflections look like."""

MIN_SPREAD = 6.0
"""Levels by which a surface is taken to vary by itself, at least."""


def synthesize_anomaly(
    image: Image, textures: Sequence[Image], random: np.random.Generator, area: Mask | None = None
) -> tuple[Image, Mask | None]:
    """Puts a made-up defect onto a good photograph, where the part is and is inspected.

    Args:
        image: uint8 [h, w, C], good.
        textures: Other good photographs [·, ·, C], which areas are filled from; none = `image` alone.
        random: Is advanced.
        area: uint8 [h, w], above 0 where the photograph is inspected; None = everywhere.

    Returns:
        The photograph with the defect, and its mask, uint8 [h, w], 255 where a pixel differs by more than
        `MIN_LEVELS` levels; the photograph itself and None if nothing stands out after several tries.
    """
    if area is not None and not area.any():
        return image, None
    surface = Surface(image, area)
    aim = log_uniform(random, VISIBILITY_RANGE)
    best: tuple[float, Image, NDArray[np.bool_]] | None = None
    for _ in range(MAX_TRIES):
        kind = KINDS[int(random.choice(len(KINDS), p=KIND_PROBABILITIES))]
        drawn = image.astype(np.float32)
        for _ in range(_count(random)):
            place = _place(image, surface.part, random)
            shape = _clip(kind.draw(random, image.shape[:2], place), surface.part)
            if shape.opacity.any():
                _change(drawn, shape, kind.fill, textures or [image], random)
        made = _bring_out(image, drawn, surface, aim, kind.strongest)
        if made is not None and (best is None or made[0] > best[0]):
            best = made
        if best is not None and best[0] >= TOLERANCE * aim:
            break
    if best is None or best[0] < MIN_VISIBILITY:
        return image, None
    return best[1], best[2].view(np.uint8) * np.uint8(255)


def _bring_out(
    image: Image, drawn: Pixels, surface: Surface, aim: float, strongest: float
) -> tuple[float, Image, NDArray[np.bool_]] | None:
    """Makes a drawn defect stand out as it should: fainter, or up to `strongest` times as strong.

    Returns:
        How much it stands out, the photograph, and where the defect can be seen; None if nowhere.
    """
    difference, strength = drawn - image, 1.0
    made = None
    for _ in range(3):
        changed = np.rint(np.clip(image + strength * difference, 0.0, 255.0)).astype(np.uint8)
        visible = _visible(image, changed)
        if np.count_nonzero(visible) < MIN_VISIBLE_PX:
            return made
        small = min(1.0, np.count_nonzero(visible) / SMALL_PX) ** SMALL_POWER
        seen = small * surface.visibility(changed, visible)
        made = seen, changed, visible
        if TOLERANCE * aim <= seen <= aim / TOLERANCE or seen <= 0.0:
            break
        strength = min(strongest, strength * aim / seen)
    return made


def _visible(image: Image, changed: Image) -> NDArray[np.bool_]:
    difference = np.abs(changed.astype(np.int16) - image).max(axis=2)
    changes = difference[difference > 0]
    if not changes.size:
        return np.zeros(difference.shape, np.bool_)
    seen = difference > max(MIN_LEVELS, MIN_LEVEL_SHARE * float(np.quantile(changes, 0.95)))
    return np.asarray(seen, np.bool_)


def _count(random: np.random.Generator) -> int:
    return int(random.choice([1, 2, 3], p=[0.75, 0.17, 0.08]))


def _place(image: Image, part: NDArray[np.bool_] | None, random: np.random.Generator) -> tuple[int, int]:
    """Row and column of a pixel of the part, each as likely."""
    rows, columns = image.shape[:2]
    if part is None:
        return int(random.integers(rows)), int(random.integers(columns))
    row, column = divmod(int(random.choice(np.flatnonzero(part))), columns)
    return row, column


def _clip(shape: Shape, part: NDArray[np.bool_] | None) -> Shape:
    if part is None:
        return shape
    return Shape(shape.rows, shape.columns, shape.opacity * part[shape.rows, shape.columns])


def _change(
    image: Pixels, shape: Shape, fill: "Fill", textures: Sequence[Image], random: np.random.Generator
) -> None:
    """Covers the shape with what `fill` makes of the surface there."""
    window = image[shape.rows, shape.columns]
    window += shape.opacity[..., None] * (fill(window, shape.opacity, textures, random) - window)


# === What fills a defect ===

Fill = Callable[[Pixels, Opacity, Sequence[Image], np.random.Generator], Pixels]


def _other_brightness(
    surface: Pixels, _opacity: Opacity, _textures: Sequence[Image], random: np.random.Generator
) -> Pixels:
    """Darker or brighter, with more or less of the texture beneath."""
    return _shifted(surface, random, keep=random.uniform(0.0, 1.0))


def _faint_brightness(
    surface: Pixels, _opacity: Opacity, _textures: Sequence[Image], random: np.random.Generator
) -> Pixels:
    """A veil over the texture, which stays."""
    return _shifted(surface, random, keep=random.uniform(0.6, 1.0))


def _shifted(surface: Pixels, random: np.random.Generator, keep: float) -> Pixels:
    middle = _mean(surface)
    levels = 2.0 * _spread(surface)
    sign = -1.0 if random.random() < DARK else 1.0
    if not 0.0 <= float(middle.mean()) + sign * levels <= 255.0:
        sign = -sign
    tint = 1.0 + _tint(surface, random)
    return _pixels(middle + keep * (surface - middle) + sign * levels * tint)


def _pixels(values: NDArray[Any] | float) -> Pixels:
    return np.asarray(values, np.float32)


def _mean(surface: Pixels) -> Pixels:
    """Of each channel."""
    return _pixels(surface.mean(axis=(0, 1)))


def _spread(surface: Pixels) -> float:
    return max(MIN_SPREAD, float(surface.std()))


def _tint(surface: Pixels, random: np.random.Generator) -> Pixels:
    """Change of colour; none of a grey photograph."""
    channels = surface.shape[2]
    if channels == 1:
        return np.zeros(1, np.float32)
    return _pixels(random.uniform(0.0, 0.6) * random.standard_normal(channels))


def _blurred(
    surface: Pixels, _opacity: Opacity, _textures: Sequence[Image], random: np.random.Generator
) -> Pixels:
    """Smeared: the texture is lost, its brightness stays."""
    sigma_px = log_uniform(random, (1.2, 8.0))
    return _smooth(surface, sigma_px)


def _rougher(
    surface: Pixels, _opacity: Opacity, _textures: Sequence[Image], random: np.random.Generator
) -> Pixels:
    """The texture stronger or weaker than around."""
    smooth = _smooth(surface, log_uniform(random, (2.0, 8.0)))
    gain = random.uniform(0.0, 0.6) if random.random() < 0.5 else random.uniform(1.6, 3.0)
    return smooth + np.float32(gain) * (surface - smooth)


def _smooth(surface: Pixels, sigma_px: float) -> Pixels:
    blurred = cv2.GaussianBlur(surface, (0, 0), sigma_px, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(blurred, np.float32).reshape(surface.shape)


def _foreign_texture(
    surface: Pixels, _opacity: Opacity, textures: Sequence[Image], random: np.random.Generator
) -> Pixels:
    """(1 − b) · A + b · I, b ~ U(0, 0.8), A turned, scaled and of other contrast (DRAEM, Zavrtanik 2021)."""
    texture = _piece(surface.shape, textures, random, most_zoom=3.0)
    middle = _mean(texture)
    gain = log_uniform(random, (0.4, 2.5))
    spread = _spread(surface)
    shift = random.normal(0.0, 2.0 * spread) + spread * _tint(surface, random)
    kept = random.uniform(0.0, 0.8)
    return _pixels((1.0 - kept) * (middle + gain * (texture - middle) + shift) + kept * surface)


def _moved(
    surface: Pixels, _opacity: Opacity, textures: Sequence[Image], random: np.random.Generator
) -> Pixels:
    """Another place of a good photograph, turned, as it is but for some brightness."""
    shift = np.float32(random.normal(0.0, _spread(surface)))
    return _piece(surface.shape, textures, random, most_zoom=1.3) + shift


def _piece(
    shape: tuple[int, ...], textures: Sequence[Image], random: np.random.Generator, most_zoom: float
) -> Pixels:
    """A piece of a texture, turned and scaled; beyond its border it is reflected."""
    texture = np.ascontiguousarray(textures[int(random.integers(len(textures)))])
    rows, columns = shape[:2]
    zoom = math.exp(random.uniform(-1.0, 1.0) * math.log(most_zoom))
    angle = random.uniform(0.0, 2.0 * math.pi)
    cosine, sine = math.cos(angle) / zoom, math.sin(angle) / zoom
    down, right = random.uniform(0.0, texture.shape[0]), random.uniform(0.0, texture.shape[1])
    # From the piece back to the texture.
    matrix = np.array(
        [
            [cosine, -sine, right - cosine * columns / 2.0 + sine * rows / 2.0],
            [sine, cosine, down - sine * columns / 2.0 - cosine * rows / 2.0],
        ]
    )
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    piece = cv2.warpAffine(texture, matrix, (columns, rows), flags=flags, borderMode=cv2.BORDER_REFLECT)
    return np.asarray(piece, np.float32).reshape(shape)


# === The kinds ===


class Kind:
    """A kind of defect: what it looks like, and how its shape is drawn.

    Args:
        fill: What covers the surface.
        length: Shortest and longest, as parts of the side.
        softness: Of a blob's edge, sharpest and softest, as parts of half its length.
        crack: Whether it is a line.
        strongest: How many times as strong as `fill` says it may be made.
    """

    def __init__(
        self,
        fill: Fill,
        length: tuple[float, float],
        softness: tuple[float, float] = (0.0, 0.4),
        *,
        crack: bool = False,
        strongest: float = 1.0,
    ) -> None:
        self.fill, self.strongest = fill, strongest
        self._length, self._softness, self._crack = length, softness, crack

    def draw(self, random: np.random.Generator, size: tuple[int, ...], place: tuple[int, int]) -> Shape:
        """Draws a shape of this kind around `place` of an image of `size`."""
        side = math.sqrt(size[0] * size[1])
        length_px = max(MIN_LENGTH_PX, side * log_uniform(random, self._length))
        if self._crack:
            width_px = log_uniform(random, (1.0, max(2.0, 0.016 * side)))
            return draw_crack(random, (size[0], size[1]), place, length_px, min(width_px, length_px / 4.0))
        return draw_blob(random, (size[0], size[1]), place, length_px, random.uniform(*self._softness))


KINDS = (
    Kind(_other_brightness, (0.05, 0.6), crack=True, strongest=6.0),
    Kind(_other_brightness, (0.015, 0.12), strongest=6.0),
    Kind(_faint_brightness, (0.05, 0.4), (0.4, 1.0), strongest=6.0),
    Kind(_blurred, (0.03, 0.35), (0.0, 0.6)),
    Kind(_rougher, (0.03, 0.35), (0.0, 0.6)),
    Kind(_foreign_texture, (0.02, 0.4)),
    Kind(_moved, (0.03, 0.3)),
)
KIND_PROBABILITIES = (0.4, 0.1, 0.08, 0.14, 0.08, 0.13, 0.07)
"""How often each kind is drawn."""
