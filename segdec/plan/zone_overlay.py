"""Draws the zones of an inspection plan on a photograph."""

import numpy as np
from numpy.typing import NDArray

from segdec.imaging.overlay import Color, draw_outline, to_rgb, write_text
from segdec.plan.plan_file import Plan

RULED: Color = (90, 170, 255)
IGNORED: Color = (170, 170, 170)
"""Light blue and grey, RGB."""

HATCH_PX = 2
"""Width of the lines of an ignored zone, across."""


def draw_zones(image: NDArray[np.uint8], plan: Plan) -> NDArray[np.uint8]:
    """Returns a photograph [H, W, 1 or 3] of the plan's size as RGB [H, W, 3], with the outlines and names of
    the zones; ignored zones are grey and hatched.
    """
    canvas = to_rgb(image)
    capital_px = min(max(round(min(image.shape[:2]) / 48), 8), 40)
    for name, zone in plan.zones.items():
        color = IGNORED if zone.ignored else RULED
        mask = plan.draw_zone(name)
        if zone.ignored:
            rows, columns = np.ogrid[: mask.shape[0], : mask.shape[1]]
            canvas[mask & ((rows + columns) % (2 * capital_px) < HATCH_PX)] = color
        draw_outline(canvas, mask.view(np.uint8), color)
        rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
        if len(rows):
            place = int(columns[0]) + capital_px, int(rows[0]) + 2 * capital_px
            write_text(canvas, name, place, capital_px, color)
    return canvas
