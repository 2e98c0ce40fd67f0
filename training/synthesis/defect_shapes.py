"""Shapes of synthetic defects: opacity maps of blobs and cracks, each in a window of the image."""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

Opacity = NDArray[np.float32]

BLOB_REACH = 1.3
"""Half a blob's window in half its length: the maximum extent of its noisy outline."""

CRACK_STEPS = 24
"""Number of straight segments of a crack."""

SUBPIXEL_BITS = 4


@dataclass(frozen=True)
class DefectShape:
    """The opacity of a defect, float32 [r, c], 0…1, in a window of the image."""

    rows: slice
    columns: slice
    opacity: Opacity


def log_uniform(random: np.random.Generator, bounds: tuple[float, float]) -> float:
    """Draws a log-uniformly distributed number between two bounds."""
    return math.exp(random.uniform(math.log(bounds[0]), math.log(bounds[1])))


def perlin_noise(random: np.random.Generator, rows: int, columns: int, cell_px: float) -> Opacity:
    """Returns gradient noise of about −1 to 1, [rows, columns], with structures of the size of a cell.

    Source: K. Perlin, "Improving noise", 2002.
    """
    down, right = np.arange(rows) / cell_px, np.arange(columns) / cell_px
    top, left = down.astype(np.int64), right.astype(np.int64)
    angles = random.uniform(0.0, 2.0 * math.pi, (top[-1] + 2, left[-1] + 2))
    up_slope, side_slope = np.sin(angles), np.cos(angles)
    down, right = (down - top)[:, None], (right - left)[None]
    fade_down, fade_right = _fade(down), _fade(right)
    noise = np.zeros((rows, columns))
    for row, row_weight in ((0, 1.0 - fade_down), (1, fade_down)):
        for column, column_weight in ((0, 1.0 - fade_right), (1, fade_right)):
            corner = np.ix_(top + row, left + column)
            slope = up_slope[corner] * (down - row) + side_slope[corner] * (right - column)
            noise += row_weight * column_weight * slope
    return (math.sqrt(2.0) * noise).astype(np.float32)


def _fade(position: NDArray[np.float64]) -> NDArray[np.float64]:
    """Perlin's 6t⁵ − 15t⁴ + 10t³."""
    faded: NDArray[np.float64] = position**3 * (position * (6.0 * position - 15.0) + 10.0)
    return faded


def draw_blob(
    random: np.random.Generator,
    size: tuple[int, ...],
    center: tuple[int, int],
    length_px: float,
    softness: float,
) -> DefectShape:
    """Draws an ellipse with a noisy outline, sometimes in pieces, in an image of `size` (rows, columns).

    `length_px` is the longest diameter before the noise, `softness` the width of the edge relative to half of
    it, at least a pixel.
    """
    half = max(1.0, length_px / 2.0)
    reach = math.ceil(half * BLOB_REACH) + 1
    elongation, angle = math.exp(random.uniform(0.0, math.log(4.0))), random.uniform(0.0, math.pi)
    roughness = random.uniform(0.0, 1.2)
    side = 2 * reach + 1
    noise = perlin_noise(random, side, side, max(2.0, half * random.uniform(0.3, 1.0)))
    noise += 0.5 * perlin_noise(random, side, side, max(1.5, half * random.uniform(0.1, 0.3)))
    steps = np.arange(-reach, reach + 1, dtype=np.float32) / half
    along = math.cos(angle) * steps[None] + math.sin(angle) * steps[:, None]
    across = math.cos(angle) * steps[:, None] - math.sin(angle) * steps[None]
    depth = 1.0 - np.hypot(along, elongation * across)
    depth = depth + roughness * noise * np.clip(1.0 + depth, 0.0, 1.0) / math.sqrt(elongation)
    opacity = np.clip(depth / max(softness, 1.0 / half) + 0.5, 0.0, 1.0)
    opacity *= np.clip((BLOB_REACH - np.hypot(steps[None], steps[:, None])) * half, 0.0, 1.0)
    return clip_to_image(size, center, opacity.astype(np.float32))


def draw_crack(
    random: np.random.Generator,
    size: tuple[int, ...],
    center: tuple[int, int],
    length_px: float,
    width_px: float,
) -> DefectShape:
    """Draws a random curve of varying width and strength, sometimes with a branch."""
    reach = math.ceil(0.6 * length_px + width_px) + 2
    canvas = np.zeros((2 * reach + 1, 2 * reach + 1), np.uint8)
    bend = random.uniform(0.02, 0.3)
    heading, step = random.uniform(0.0, 2.0 * math.pi), length_px / CRACK_STEPS
    turns = np.cumsum(random.normal(0.0, bend, CRACK_STEPS))
    points = _walk(heading + turns, step)
    points = points - (points.min(0) + points.max(0)) / 2.0 + reach
    _draw_line(canvas, points, width_px, random)
    if random.random() < 0.3:
        start = int(random.integers(CRACK_STEPS))
        turns = turns[start] + random.choice([-1.0, 1.0]) * random.uniform(0.4, 1.2)
        branch = heading + turns + np.cumsum(random.normal(0.0, bend, CRACK_STEPS // 2))
        _draw_line(canvas, points[start] + _walk(branch, step), 0.7 * width_px, random)
    opacity = cv2.GaussianBlur(canvas, (0, 0), random.uniform(0.3, 0.4 + 0.2 * width_px))
    broken = 1.0 + random.uniform(0.0, 0.8) * perlin_noise(random, *canvas.shape, max(3.0, length_px / 6.0))
    return clip_to_image(size, center, np.clip(np.asarray(opacity, np.float32) / 255.0 * broken, 0.0, 1.0))


def _walk(headings: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Points [N, 2] of a curve from 0, row and column."""
    return np.asarray(step * np.cumsum(np.stack([np.sin(headings), np.cos(headings)], 1), 0))


def _draw_line(
    canvas: NDArray[np.uint8], points: NDArray[np.float64], width_px: float, random: np.random.Generator
) -> None:
    """Draws widths below a pixel as fainter lines; the ends are pointed."""
    count = len(points) - 1
    taper = np.minimum(1.0, 4.0 * np.minimum(np.arange(1, count + 1), np.arange(count, 0, -1)) / count)
    widths = width_px * taper * random.uniform(0.7, 1.3, count)
    fixed = np.rint(points[:, ::-1] * (1 << SUBPIXEL_BITS)).astype(int).tolist()
    for one, other, width in zip(fixed, fixed[1:], widths.tolist(), strict=False):
        level = 255 if width >= 1.0 else max(1, round(255 * width))
        cv2.line(canvas, one, other, level, max(1, round(width)), cv2.LINE_AA, SUBPIXEL_BITS)


def clip_to_image(size: tuple[int, ...], center: tuple[int, int], opacity: Opacity) -> DefectShape:
    """Returns a shape around `center`, clipped to the image."""
    (rows, columns), part = clip_window(size, center, opacity.shape)
    return DefectShape(rows, columns, opacity[part])


def clip_window(
    size: tuple[int, ...], center: tuple[int, int], extent: tuple[int, ...]
) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Returns the part of a window around `center` that is in the image, as slices of image and of window."""
    image, window = [], []
    for side, middle, length in zip(size, center, extent, strict=False):
        first = middle - length // 2
        image.append(slice(max(0, first), min(side, first + length)))
        window.append(slice(image[-1].start - first, image[-1].stop - first))
    return (image[0], image[1]), (window[0], window[1])
