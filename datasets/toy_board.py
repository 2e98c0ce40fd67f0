"""Paints a printed circuit board with missing parts, lifted parts and scratches."""

from collections.abc import Callable, Sequence

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from datasets.toy_materials import VISIBLE, Colour, Material, Painted, Point, Surface, scratch
from datasets.toy_surface import Canvas, Field

COPPER, SOLDER, HOLE = (0.5, 0.26, 0.09), (0.5, 0.51, 0.52), (0.01, 0.012, 0.01)
LACQUER, TRACE, PRINT = (0.006, 0.085, 0.033), (0.016, 0.16, 0.065), (0.6, 0.62, 0.6)
RESISTOR, CAPACITOR, CHIP = (0.012, 0.012, 0.014), (0.3, 0.19, 0.1), (0.014, 0.014, 0.015)

Shape = NDArray[np.float64]
Draw = Callable[..., Field]


def paint_board(rng: Generator, design: Generator, canvas: Canvas, kind: str | None) -> Painted:
    """Paints a printed circuit board; all boards of a set have one design."""
    offset = rng.uniform(-1.5, 1.5, 2)
    surface = Surface.plain(canvas, LACQUER, gloss=0.2)
    surface.colour *= (1 + 0.06 * canvas.noise(rng, 1))[..., None]

    def draw(
        shapes: Sequence[Shape], colour: Colour, width: float = 0, height: float = 0, gloss: float = 0.2
    ) -> Field:
        weight = _drawn(canvas, [shape + offset for shape in shapes], width)
        surface.cover(weight, colour, height=height * canvas.scale, gloss=gloss)
        return weight

    _draw_wiring(design, draw)
    turns = ((20, 0), (42, 0), (64, 1), (86, 0), (108, 0))
    slots = [(x, y, turned) for y in (14, 114) for x, turned in turns]
    slots += [(x, y, 1) for x in (14, 30, 98, 114) for y in (46, 82)]
    chosen = int(rng.integers(len(slots)))
    changed = canvas.empty()
    if kind == "scratch":
        x, y = rng.uniform(0.4, 0.6), rng.choice([0.235, 0.765])  # between parts
        centre = x * canvas.size, y * canvas.size
        line = scratch(rng, canvas, centre, rng.uniform(-0.25, 0.25), width=0.8)
        changed = np.clip(1.6 * line, 0, 1)
        surface.cover(changed, COPPER, height=-0.4 * canvas.scale, gloss=0.3)
    for number, (x, y, turned) in enumerate(slots):
        body = (RESISTOR, CAPACITOR)[int(design.integers(2))]
        fault = kind if number == chosen else None
        tilt = rng.uniform(0.35, 0.8) * rng.choice([-1.0, 1.0])
        place = np.array([x, y]) + design.uniform(-2, 2, 2)
        weight = _draw_part(draw, place, turned * np.pi / 2, body, fault, tilt)
        changed = weight if fault in {"missing_part", "lifted_part"} else changed * (1 - weight)
    changed = changed * (1 - _draw_chip(draw))
    surface.height = np.asarray(cv2.GaussianBlur(surface.height, (0, 0), 0.5 * canvas.scale), np.float32)
    return surface, changed > VISIBLE


def _draw_wiring(design: Generator, draw: Draw) -> None:
    """Draws traces with bends of 45 degrees, and vias at their ends."""
    traces, ends = [], []
    for start in range(6, 128, 8):
        step, bend = design.choice([-14, -7, 7, 14]), design.uniform(25, 90)
        middle, end = bend + abs(step), design.uniform(105, 132)
        points = np.array([[-4, start], [bend, start], [middle, start + step], [end, start + step]])
        turned = points[:, ::-1] if design.integers(2) else points
        traces.append(turned)
        ends.append(turned[-1])
    draw(traces, TRACE, width=1.6, height=0.25)
    draw([_disc(end, 2.4) for end in ends], COPPER, height=0.2, gloss=0.35)
    draw([_disc(end, 1.1) for end in ends], HOLE, height=-1)


def _draw_part(
    draw: Draw, centre: Shape, angle: float, body: Colour, fault: str | None, tilt: float
) -> Field:
    """Draws pads, solder and a part with metal ends; returns what a fault changes."""
    frame = draw([_box(centre, 17, 9, angle)], LACQUER)
    outline = _box(centre, 17, 9, angle)
    draw([np.concatenate([outline, outline[:1]])], PRINT, width=0.7)
    draw([_box(centre, 4.5, 6, angle, side * 5) for side in (-1, 1)], SOLDER, height=0.8, gloss=0.5)
    if fault == "missing_part":
        return frame
    if fault == "lifted_part":
        angle, centre = angle + tilt, centre + np.array([3 * tilt, -2 * abs(tilt)])
    lift = 4 if fault == "lifted_part" else 2.2
    ends = draw([_box(centre, 12, 5.4, angle)], (0.36, 0.36, 0.37), height=lift, gloss=0.3)
    draw([_box(centre, 7.5, 5.4, angle)], body, height=0.3, gloss=0.08)
    return np.maximum(frame, ends) if fault == "lifted_part" else ends


def _draw_chip(draw: Draw) -> Field:
    """Draws an integrated circuit with pins on two sides; returns its weight."""
    pins = [_box((64 + x, 64 + side * 19), 2.2, 7, 0) for side in (-1, 1) for x in range(-16, 17, 4)]
    draw(pins, SOLDER, height=0.8, gloss=0.5)
    weight = draw([_box((64, 64), 38, 32, 0)], CHIP, height=3, gloss=0.06)
    draw([_disc((49, 75.5), 1.6)], (0.06, 0.06, 0.06), height=-0.3)
    draw([_box((65, y), long, 1.3, 0) for y, long in ((60, 20), (64, 14), (68, 17))], (0.22, 0.22, 0.22))
    return weight


def _box(centre: Shape | Point, long: float, wide: float, angle: float, along: float = 0.0) -> Shape:
    """The corners of a turned rectangle, its centre moved `along` its axis, [4, 2]."""
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    return np.asarray(centre + (signs * (long / 2, wide / 2) + (along, 0)) @ turn)


def _disc(centre: Shape | Point, radius: float) -> Shape:
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    return np.asarray(centre + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1))


def _drawn(canvas: Canvas, shapes: Sequence[Shape], width: float) -> Field:
    """The share of each pixel that polygons, or lines of some width, cover."""
    large = np.zeros((4 * canvas.size, 4 * canvas.size), np.uint8)
    scale = 4 * canvas.scale
    corners = [np.rint(shape * scale).astype(np.int32) for shape in shapes]
    if width:
        cv2.polylines(large, corners, isClosed=False, color=255, thickness=max(1, round(width * scale)))
    else:
        for polygon in corners:
            cv2.fillPoly(large, [polygon], 255)
    small = cv2.resize(large, (canvas.size, canvas.size), interpolation=cv2.INTER_AREA)
    return np.asarray(small / np.float32(255), np.float32)


CIRCUIT_BOARD = Material(("missing_part", "lifted_part", "scratch"), paint_board)
