"""Paints the toy set: brushed metal, distractors on every part, and the three kinds of defect.

Each painter takes a random generator and a `Canvas` and returns float32 [H, W]: grey levels to add,
or factors to multiply by. Lengths are in pixels of a canvas 128 wide and grow with it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Field = NDArray[np.float32]

REFERENCE_SIZE = 128
VISIBLE_GREY_LEVELS = 3.0
VISIBLE_FRACTION = 0.3


@dataclass(frozen=True)
class Canvas:
    """A square surface; `brushing` is the direction of its grain, radians."""

    size: int
    brushing: float

    @property
    def scale(self) -> float:
        """Pixels for each pixel of the reference size."""
        return self.size / REFERENCE_SIZE

    @cached_property
    def xy(self) -> tuple[Field, Field]:
        """Pixel coordinates, each float32 [H, W]."""
        y, x = np.mgrid[: self.size, : self.size].astype(np.float32)
        return x, y

    def empty(self) -> Field:
        """Returns zeros, float32 [H, W]."""
        return np.zeros((self.size, self.size), np.float32)

    def noise(self, rng: Generator, sigma_x: float, sigma_y: float | None = None) -> Field:
        """Makes smooth noise of mean 0 and deviation 1; `sigma` in reference pixels."""
        white = rng.standard_normal((self.size, self.size)).astype(np.float32)
        sigma_y = sigma_x if sigma_y is None else sigma_y
        smooth = np.asarray(
            cv2.GaussianBlur(white, (0, 0), sigma_x * self.scale, sigmaY=sigma_y * self.scale)
        )
        return np.asarray((smooth - smooth.mean()) / (smooth.std() + 1e-6), np.float32)


# === The part ===


def light(rng: Generator, canvas: Canvas) -> Field:
    """Draws grey levels of an even surface under uneven light: a slope and a darker rim."""
    x, y = (axis / canvas.size - 0.5 for axis in canvas.xy)
    angle = rng.uniform(0, 2 * np.pi)
    slope = rng.uniform(0.1, 0.45) * (x * np.cos(angle) + y * np.sin(angle))
    centre_x, centre_y = rng.uniform(-0.2, 0.2, 2)
    rim = rng.uniform(0.1, 0.5) * ((x - centre_x) ** 2 + (y - centre_y) ** 2)
    return np.asarray(rng.uniform(105, 150) * (1 + slope - rim), np.float32)


def texture(rng: Generator, canvas: Canvas) -> Field:
    """Draws factors around 1: brushing of two lengths and a cloudy finish."""
    fine = _brushed(rng, canvas, length=14, width=0.5)
    coarse = _brushed(rng, canvas, length=40, width=1.6)
    cloudy = canvas.noise(rng, 9)
    strength = rng.uniform(0.6, 1.4)
    return np.asarray(1 + strength * (0.03 * fine + 0.02 * coarse + 0.015 * cloudy), np.float32)


def _brushed(rng: Generator, canvas: Canvas, *, length: float, width: float) -> Field:
    noise = canvas.noise(rng, length, width)
    centre = (canvas.size - 1) / 2
    turn = cv2.getRotationMatrix2D((centre, centre), -np.degrees(canvas.brushing), 1.0)
    turned = cv2.warpAffine(noise, turn, (canvas.size, canvas.size), borderMode=cv2.BORDER_REFLECT_101)
    return np.asarray(turned, np.float32)


# === What disturbs, on good and defective parts alike ===


def distractors(rng: Generator, canvas: Canvas) -> Field:
    """Draws grey levels of dust, reflections and machining marks together."""
    return _dust(rng, canvas) + _reflections(rng, canvas) + _machining_marks(rng, canvas)


def _dust(rng: Generator, canvas: Canvas) -> Field:
    """Draws specks below two pixels across, mostly dark, often of more contrast than any defect."""
    field = canvas.empty()
    for _ in range(rng.integers(3, 13)):
        sign = rng.choice([-1.0, -1.0, 1.0])
        radius = rng.uniform(0.45, 0.85)
        field += sign * rng.uniform(15, 75) * bump(canvas, random_point(rng, canvas, 0), radius, radius)
    return field


def _reflections(rng: Generator, canvas: Canvas) -> Field:
    """Draws soft bright patches without an edge."""
    field = canvas.empty()
    for _ in range(rng.integers(0, 4)):
        across, along, strength = rng.uniform(7, 24), rng.uniform(10, 36), rng.uniform(6, 24)
        field += strength * bump(canvas, random_point(rng, canvas, 0), along, across, canvas.brushing)
    return field


def _machining_marks(rng: Generator, canvas: Canvas) -> Field:
    """Draws straight lines along the brushing, from edge to edge."""
    x, y = canvas.xy
    field = canvas.empty()
    for _ in range(rng.integers(0, 6)):
        place_x, place_y = random_point(rng, canvas, 0)
        away = (y - place_y) * np.cos(canvas.brushing) - (x - place_x) * np.sin(canvas.brushing)
        width = rng.uniform(0.5, 1.3) * canvas.scale
        field += rng.choice([-1.0, 1.0]) * rng.uniform(6, 31) * np.exp(-((away / width) ** 2))
    return field


# === Defects ===


def scratch(rng: Generator, canvas: Canvas) -> Field:
    """Draws a thin crooked line across the brushing, fading towards its ends."""
    steps = int(rng.integers(6, 13))
    length = rng.uniform(22, 85) * canvas.scale
    side = rng.choice([-1.0, 1.0])
    headings = canvas.brushing + side * rng.uniform(0.6, 2.5) + np.cumsum(rng.normal(0, 0.13, steps))
    centre = random_point(rng, canvas, 0.2)
    width = rng.uniform(0.7, 1.5)
    return _contrast(rng, 16, 46) * crooked_line(canvas, centre, headings, length, width, fading=6)


def spot(rng: Generator, canvas: Canvas) -> Field:
    """Draws a small dark or bright pit with a clear edge."""
    radius = rng.uniform(2.4, 6.5)
    centre, across = random_point(rng, canvas, 0.12), radius * rng.uniform(0.6, 1)
    field = bump(canvas, centre, radius, across, rng.uniform(0, np.pi), power=4)
    return _contrast(rng, 15, 44) * field


def stain(rng: Generator, canvas: Canvas) -> Field:
    """Draws a large dark patch of low contrast with an uneven, soft edge."""
    x, y = canvas.xy
    centre_x, centre_y = random_point(rng, canvas, 0.25)
    radius = rng.uniform(11, 28) * canvas.scale
    stretch, turn = rng.uniform(0.55, 1), rng.uniform(0, np.pi)
    along = (x - centre_x) * np.cos(turn) + (y - centre_y) * np.sin(turn)
    across = (y - centre_y) * np.cos(turn) - (x - centre_x) * np.sin(turn)
    inside = 1 - np.hypot(along, across / stretch) / radius + 0.14 * canvas.noise(rng, 5)
    soft = np.clip(inside / rng.uniform(0.2, 0.45), 0, 1)
    return np.asarray(-rng.uniform(11, 26) * soft * soft * (3 - 2 * soft), np.float32)


DEFECTS: dict[str, Callable[[Generator, Canvas], Field]] = {"scratch": scratch, "spot": spot, "stain": stain}


def visible(change: Field) -> NDArray[np.uint8]:
    """Returns the mask of a defect: 255 where it changes the surface noticeably, uint8 [H, W]."""
    strength = np.abs(change)
    least = max(VISIBLE_GREY_LEVELS, VISIBLE_FRACTION * float(strength.max()))
    return np.where(strength >= least, 255, 0).astype(np.uint8)


# === Shapes ===


def random_point(rng: Generator, canvas: Canvas, margin: float) -> tuple[float, float]:
    """Returns a point whose distance to the rim is at least `margin`, a fraction of the size."""
    x, y = rng.uniform(margin, 1 - margin, 2) * canvas.size
    return float(x), float(y)


def _contrast(rng: Generator, least: float, most: float) -> float:
    return float(rng.choice([-1.0, 1.0]) * rng.uniform(least, most))


def bump(
    canvas: Canvas,
    centre: tuple[float, float],
    radius_along: float,
    radius_across: float,
    turn: float = 0.0,
    *,
    power: int = 2,
) -> Field:
    """Returns weights: 1 at the centre, 1/e on an ellipse of these radii (reference pixels), 0 far away."""
    x, y = canvas.xy[0] - centre[0], canvas.xy[1] - centre[1]
    along = (x * np.cos(turn) + y * np.sin(turn)) / max(radius_along * canvas.scale, 0.45)
    across = (y * np.cos(turn) - x * np.sin(turn)) / max(radius_across * canvas.scale, 0.45)
    return np.asarray(np.exp(-(np.hypot(along, across) ** power)), np.float32)


def crooked_line(
    canvas: Canvas,
    centre: tuple[float, float],
    headings: NDArray[np.float64],
    length: float,
    width: float,
    *,
    fading: float,
) -> Field:
    """Returns weights: 1 on a line around `centre`, 1/e at `width` (reference pixels), less at its ends.

    `headings` are the directions of the line's parts, radians; `length` is in pixels; with a larger `fading`
    the fading ends of the line are shorter.
    """
    steps = np.stack([np.cos(headings), np.sin(headings)], axis=1) * length / len(headings)
    path = np.cumsum(steps, axis=0)
    path += np.asarray(centre) - path.mean(axis=0)
    away, along = _distance_to_path(canvas, path)
    ends = np.clip(fading * along * (1 - along), 0, 1)
    return np.asarray(ends * np.exp(-((away / max(width * canvas.scale, 0.6)) ** 2)), np.float32)


def _distance_to_path(canvas: Canvas, path: NDArray[np.float64]) -> tuple[Field, Field]:
    """For each pixel the distance to the path, and the position (0 to 1) of its nearest point on the path."""
    points = np.stack(canvas.xy, axis=-1)[:, :, None, :]  # [H, W, 1, 2]
    start, step = path[:-1], np.diff(path, axis=0)  # [N, 2]
    reach = np.clip(((points - start) * step).sum(-1) / (step**2).sum(-1), 0, 1)  # [H, W, N]
    away = np.linalg.norm(points - start - reach[..., None] * step, axis=-1)
    nearest = away.argmin(axis=-1)[..., None]
    along = (nearest + np.take_along_axis(reach, nearest, axis=-1)) / len(start)
    return np.take_along_axis(away, nearest, axis=-1)[..., 0], along[..., 0]
