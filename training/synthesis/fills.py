"""Pixels of a synthetic defect, computed from the surface below it and from other good images."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from training.synthesis.defect_shapes import log_uniform

Image = NDArray[np.uint8]
Pixels = NDArray[np.float32]
Fill = Callable[[Pixels, Sequence[Image], np.random.Generator], Pixels]
"""Function of the surface [r, c, C], other good images and the generator; returns pixels [r, c, C]."""

DARK_SHARE = 0.75
"""Share of darker defects among those of another brightness: reflections look like bright ones."""

MIN_SPREAD = 6.0
"""Minimum standard deviation assumed of a surface, levels."""


def change_brightness(surface: Pixels, _textures: Sequence[Image], random: np.random.Generator) -> Pixels:
    """Returns a darker or brighter surface with part of its texture."""
    return _shift(surface, random, keep=random.uniform(0.0, 1.0))


def shift_brightness(surface: Pixels, _textures: Sequence[Image], random: np.random.Generator) -> Pixels:
    """Returns a darker or brighter surface with most of its texture."""
    return _shift(surface, random, keep=random.uniform(0.6, 1.0))


def blur(surface: Pixels, _textures: Sequence[Image], random: np.random.Generator) -> Pixels:
    """Returns the surface without its texture, at the same brightness."""
    return smooth(surface, log_uniform(random, (1.2, 8.0)))


def change_texture(surface: Pixels, _textures: Sequence[Image], random: np.random.Generator) -> Pixels:
    """Returns the surface with a stronger or weaker texture."""
    coarse = smooth(surface, log_uniform(random, (2.0, 8.0)))
    gain = random.uniform(0.0, 0.6) if random.random() < 0.5 else random.uniform(1.6, 3.0)
    return coarse + np.float32(gain) * (surface - coarse)


def insert_texture(surface: Pixels, textures: Sequence[Image], random: np.random.Generator) -> Pixels:
    """Returns (1 − b) · A + b · I, b ~ U(0, 0.8); I is the surface, A a texture, rotated, scaled and with
    changed contrast.

    Source: Zavrtanik et al., "DRAEM", 2021.
    """
    texture = _texture_piece(surface.shape, textures, random, max_zoom=3.0)
    middle = _channel_means(texture)
    gain = log_uniform(random, (0.4, 2.5))
    spread = _spread(surface)
    shift = random.normal(0.0, 2.0 * spread) + spread * _tint(surface, random)
    kept = random.uniform(0.0, 0.8)
    return _pixels((1.0 - kept) * (middle + gain * (texture - middle) + shift) + kept * surface)


def move_surface(surface: Pixels, textures: Sequence[Image], random: np.random.Generator) -> Pixels:
    """Returns a rotated piece of a good image with slightly changed brightness."""
    shift = np.float32(random.normal(0.0, _spread(surface)))
    return _texture_piece(surface.shape, textures, random, max_zoom=1.3) + shift


def _shift(surface: Pixels, random: np.random.Generator, keep: float) -> Pixels:
    middle = _channel_means(surface)
    levels = 2.0 * _spread(surface)
    sign = -1.0 if random.random() < DARK_SHARE else 1.0
    if not 0.0 <= float(middle.mean()) + sign * levels <= 255.0:
        sign = -sign
    tint = 1.0 + _tint(surface, random)
    return _pixels(middle + keep * (surface - middle) + sign * levels * tint)


def _pixels(values: NDArray[Any] | float) -> Pixels:
    return np.asarray(values, np.float32)


def _channel_means(surface: Pixels) -> Pixels:
    return _pixels(surface.mean(axis=(0, 1)))


def _spread(surface: Pixels) -> float:
    return max(MIN_SPREAD, float(surface.std()))


def _tint(surface: Pixels, random: np.random.Generator) -> Pixels:
    """Relative change of each channel; 0 for a grey image."""
    channels = surface.shape[2]
    if channels == 1:
        return np.zeros(1, np.float32)
    return _pixels(random.uniform(0.0, 0.6) * random.standard_normal(channels))


def smooth(pixels: Pixels, sigma_px: float, border: int = cv2.BORDER_REPLICATE) -> Pixels:
    """Returns the pixels [h, w, C] after a Gaussian blur."""
    return np.asarray(cv2.GaussianBlur(pixels, (0, 0), sigma_px, borderType=border), np.float32).reshape(
        pixels.shape
    )


def _texture_piece(
    shape: tuple[int, ...], textures: Sequence[Image], random: np.random.Generator, max_zoom: float
) -> Pixels:
    """A rotated and scaled piece of a texture, reflected beyond its border."""
    texture = np.ascontiguousarray(textures[int(random.integers(len(textures)))])
    rows, columns = shape[:2]
    zoom = math.exp(random.uniform(-1.0, 1.0) * math.log(max_zoom))
    angle = random.uniform(0.0, 2.0 * math.pi)
    cosine, sine = math.cos(angle) / zoom, math.sin(angle) / zoom
    down, right = random.uniform(0.0, texture.shape[0]), random.uniform(0.0, texture.shape[1])
    # Maps the piece to the texture.
    matrix = np.array(
        [
            [cosine, -sine, right - cosine * columns / 2.0 + sine * rows / 2.0],
            [sine, cosine, down - sine * columns / 2.0 - cosine * rows / 2.0],
        ]
    )
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    piece = cv2.warpAffine(texture, matrix, (columns, rows), flags=flags, borderMode=cv2.BORDER_REFLECT)
    return np.asarray(piece, np.float32).reshape(shape)
