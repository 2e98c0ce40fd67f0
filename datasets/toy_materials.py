"""Paints coloured surfaces for the toy set: cast metal and wood; see `datasets.toy_board` for a third.

A painter returns a `Surface` (colour, height, gloss) and the mask of its defect. `render` lights the surface,
so a scratch gets highlights and shadows like its surroundings. Lengths are in pixels of a canvas 128 wide and
grow with it; colours are linear RGB.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from datasets.toy_surface import REFERENCE_SIZE, Canvas, Field, bump, crooked_line, random_point

Colour = tuple[float, float, float]
Point = tuple[float, float]
Mask = NDArray[np.bool_]
Array = NDArray[np.floating[Any]]

VISIBLE = 0.35
"""A pixel belongs to the mask of a defect where the defect covers at least this share of it."""


@dataclass
class Surface:
    """A surface that `render` lights: reflectance, pixels above the base, strength of the highlights."""

    colour: Array  # float32 [H, W, 3]
    height: Array  # float32 [H, W]
    gloss: Array  # float32 [H, W]

    @classmethod
    def plain(cls, canvas: Canvas, colour: Colour, gloss: float) -> "Surface":
        """Returns a flat surface of one colour."""
        empty = canvas.empty()
        return cls(empty[..., None] + np.array(colour, np.float32), canvas.empty(), empty + gloss)

    def cover(self, weight: Array, colour: Colour, *, height: float = 0.0, gloss: float = 0.0) -> None:
        """Blends in a colour and a gloss, and raises the surface; `weight` is the share covered, 0 to 1."""
        self.colour += weight[..., None] * (np.array(colour, np.float32) - self.colour)
        self.gloss += weight * (gloss - self.gloss)
        self.height += height * weight


Painted = tuple[Surface, Mask]
Painter = Callable[[Generator, Generator, Canvas, str | None], Painted]


class Material(NamedTuple):
    """A material of the toy set: its kinds of defect, and what paints a part.

    `paint` takes the part's generator, the set's generator (the same for all parts), the canvas, and
    the kind of defect or None.
    """

    kinds: tuple[str, str, str]
    paint: Painter


def render(rng: Generator, canvas: Canvas, surface: Surface) -> NDArray[np.uint8]:
    """Lights a surface from the upper left and photographs it, uint8 [H, W, 3] RGB."""
    slope_y, slope_x = np.gradient(surface.height)
    normal = np.stack([-slope_x, -slope_y, np.ones_like(slope_x)], axis=-1)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    azimuth, elevation = rng.uniform(-2.4, -2.1), rng.uniform(0.8, 0.9)
    level = np.cos(elevation)
    light = np.array([np.cos(azimuth) * level, np.sin(azimuth) * level, np.sin(elevation)])
    half = light + np.array([0, 0, 1])
    diffuse = np.clip(normal @ light, 0, None) / light[2]
    highlight = surface.gloss * np.clip(normal @ (half / np.linalg.norm(half)), 0, 1) ** 40
    x, y = (axis / canvas.size - 0.5 for axis in canvas.xy)
    falloff = 1 - rng.uniform(0.1, 0.3) * (x * -light[0] + y * -light[1])
    falloff = falloff - rng.uniform(0.2, 0.5) * (x**2 + y**2)
    exposure = rng.uniform(0.95, 1.05) * falloff
    shown = exposure[..., None] * (surface.colour * (0.3 + 0.7 * diffuse)[..., None] + highlight[..., None])
    shown = cv2.GaussianBlur(shown.astype(np.float32), (0, 0), 0.45 * max(canvas.scale, 1))
    grey = 255 * np.clip(shown, 0, 1) ** (1 / 2.2) + rng.normal(0, 1.8, shown.shape)
    return np.asarray(np.clip(np.rint(grey), 0, 255), np.uint8)


# === Defects that several materials share ===


def scratch(
    rng: Generator, canvas: Canvas, centre: Point, heading: float, *, bend: float = 0.1, width: float = 0.9
) -> Field:
    """Returns the weight of a thin line that fades towards its ends."""
    length = rng.uniform(35, 75) * canvas.scale
    headings = heading + np.cumsum(rng.normal(0, bend, 9))
    return crooked_line(canvas, centre, headings, length, width * rng.uniform(0.8, 1.3), fading=7)


def blot(
    rng: Generator, canvas: Canvas, centre: Point, low: float, high: float, *, softness: float = 0.3
) -> Field:
    """Returns the weight of a patch with an uneven edge, its radius between `low` and `high`."""
    x, y = canvas.xy
    radius = rng.uniform(low, high) * canvas.scale
    away = np.hypot(x - centre[0], (y - centre[1]) * rng.uniform(0.8, 1.3)) / radius
    inside = 1 - away + 0.16 * canvas.noise(rng, 4) + 0.05 * canvas.noise(rng, 1)
    return np.asarray(np.clip(inside / softness, 0, 1), np.float32)


def pits(rng: Generator, canvas: Canvas, centre: Point) -> Field:
    """Returns the weight of a group of round holes."""
    weight = canvas.empty()
    for _ in range(rng.integers(3, 8)):
        x, y = np.asarray(centre) + rng.normal(0, 5, 2) * canvas.scale
        radius = rng.uniform(1.3, 3)
        across, turn = radius * rng.uniform(0.6, 1), rng.uniform(0, 3)
        weight = np.maximum(weight, bump(canvas, (x, y), radius, across, turn, power=4))
    return weight


# === Materials ===


def paint_metal(rng: Generator, _: Generator, canvas: Canvas, kind: str | None) -> Painted:
    """Paints cast aluminium with a turned face around a bore."""
    surface = Surface.plain(canvas, (0.3, 0.3, 0.31), gloss=0.12)
    rough = canvas.noise(rng, 0.7) + 0.7 * canvas.noise(rng, 1.6) + 0.5 * canvas.noise(rng, 4)
    surface.height += 0.3 * canvas.scale * rough
    surface.colour *= (1 + 0.07 * canvas.noise(rng, 9) + 0.05 * canvas.noise(rng, 1.2))[..., None]
    x, y = (axis / canvas.scale - REFERENCE_SIZE * rng.uniform(0.47, 0.53) for axis in canvas.xy)
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    face, bore = (np.clip((edge - radius) / 1.2, 0, 1).astype(np.float32) for edge in (43, 15))
    marks = np.interp(radius, np.arange(0, 95, 0.7), rng.normal(0, 1, len(np.arange(0, 95, 0.7))))
    tilts = rng.uniform(0.6, 0.9, 2)
    fan = np.abs(np.cos(angle - tilts[0])) ** 14 + 0.5 * np.abs(np.cos(angle + tilts[1])) ** 20
    turned = (0.26 + 0.42 * fan) * (1 + 0.07 * marks)
    raised = canvas.scale * (2.5 + 0.05 * marks.astype(np.float32))
    surface.height = (1 - face) * surface.height + face * raised
    surface.cover(face, (0, 0, 0), gloss=0.1)
    surface.colour += (face * turned)[..., None] * np.array((1, 0.99, 0.97), np.float32)
    weight = canvas.empty()
    distance, direction = rng.uniform(24, 42) * canvas.scale, rng.uniform(0, 2 * np.pi)  # beside the bore
    centre = canvas.size / 2 + distance * np.cos(direction), canvas.size / 2 + distance * np.sin(direction)
    if kind == "scratch":
        weight = scratch(rng, canvas, centre, rng.uniform(0, np.pi))
        surface.cover(0.8 * weight, (0.75, 0.75, 0.76), height=-0.8 * canvas.scale, gloss=0.5)
    elif kind == "pores":
        weight = pits(rng, canvas, centre)
        surface.cover(0.9 * weight, (0.02, 0.02, 0.02), height=-1.5 * canvas.scale)
    elif kind == "rust":
        weight = blot(rng, canvas, centre, 12, 20)
        surface.cover(0.75 * weight * (0.75 + 0.25 * np.tanh(canvas.noise(rng, 1.2))), (0.26, 0.09, 0.025))
    surface.cover(bore, (0.006, 0.006, 0.007), height=-6 * canvas.scale)
    return surface, (weight > VISIBLE) & (bore < 0.5)


def paint_wood(rng: Generator, _: Generator, canvas: Canvas, kind: str | None) -> Painted:
    """Paints a planed board: growth rings, fibres and pores."""
    x, y = (axis / canvas.scale for axis in canvas.xy)
    bow = rng.uniform(-0.002, 0.002) * (x - rng.uniform(30, 100)) ** 2
    rings = y + np.tan(canvas.brushing) * x + bow
    rings = rings + 2.5 * canvas.noise(rng, 45, 10) + 0.35 * canvas.noise(rng, 18, 2)
    phase = np.mod(rings / rng.uniform(8, 12) + 0.35 * np.sin(rings / 13), 1)
    late = phase**2.5 * np.clip((1 - phase) / 0.12, 0, 1)
    fibres = canvas.noise(rng, 11, 0.45)
    pores = np.clip(canvas.noise(rng, 4, 0.45) - 1.6, 0, 1)
    tone = np.clip(0.15 + 0.75 * late + 0.08 * fibres + 0.1 * canvas.noise(rng, 30, 14) + 0.4 * pores, 0, 1.3)
    surface = Surface.plain(canvas, (0.55, 0.32, 0.145), gloss=0.03)
    surface.colour += tone[..., None] * (np.array((0.27, 0.115, 0.04), np.float32) - surface.colour)
    surface.height += canvas.scale * (0.1 * fibres - 0.4 * pores).astype(np.float32)
    weight, centre = canvas.empty(), random_point(rng, canvas, 0.25)
    if kind == "crack":
        weight = scratch(rng, canvas, centre, -canvas.brushing, bend=0.07, width=0.75)
        surface.cover(0.95 * weight, (0.03, 0.015, 0.008), height=-2 * canvas.scale)
    elif kind == "knot":
        weight = _grow_knot(rng, canvas, centre, surface)
    elif kind == "stain":
        weight = blot(rng, canvas, centre, 13, 22, softness=0.45)
        surface.colour *= 1 - 0.75 * weight[..., None] * np.array((1, 0.85, 0.6), np.float32)
    return surface, weight > VISIBLE


def _grow_knot(rng: Generator, canvas: Canvas, centre: Point, surface: Surface) -> Field:
    """Bends the grain around a knot and paints its rings; returns its weight."""
    (x, y), (centre_x, centre_y) = canvas.xy, centre
    radius = rng.uniform(6, 10) * canvas.scale
    away = np.hypot((x - centre_x) / 1.35, y - centre_y) / radius
    pull = 0.85 * np.exp(-((away / 2) ** 2))
    source_y = (y - (y - centre_y) * pull).astype(np.float32)
    surface.colour, surface.height = (
        np.asarray(cv2.remap(field, x, source_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT), np.float32)
        for field in (surface.colour, surface.height)
    )
    away = away + 0.05 * canvas.noise(rng, 3)
    weight = np.clip((1 - away) / 0.15, 0, 1).astype(np.float32)
    rings = 0.5 + 0.5 * np.sin(away * 20) * np.clip(away * 2, 0, 1)
    surface.cover(0.92 * weight, (0.09, 0.035, 0.014))
    surface.colour *= (1 + weight * (0.55 * rings - 0.2))[..., None]
    rim = np.clip(1 - np.abs(away - 0.97) / 0.08, 0, 1).astype(np.float32)
    surface.cover(rim, (0.03, 0.012, 0.006), height=-0.8)
    return np.asarray(weight, np.float32)


METAL = Material(("scratch", "pores", "rust"), paint_metal)
WOOD = Material(("crack", "knot", "stain"), paint_wood)
