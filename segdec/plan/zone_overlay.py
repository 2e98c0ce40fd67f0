"""Draws the zones of an inspection plan on a photograph."""

import numpy as np
from numpy.typing import NDArray

from segdec.imaging.overlay import Color, draw_outline, to_rgb, write_text
from segdec.plan.inspection_plan import Plan

RULED: Color = (90, 170, 255)
IGNORED: Color = (170, 170, 170)
"""Light blue and grey, RGB."""

HATCH_PX = 2
"""Width of the lines of an ignored zone, across."""


def draw_zones(image: NDArray[np.uint8], plan: Plan) -> NDArray[np.uint8]:
    """Returns a photograph [H, W, 1 or 3] of the plan's size as RGB [H, W, 3], with the outlines and names of
    the zones. Ignored zones are grey and hatched where no zone with rules is.

    Raises:
        ConfigError: If a zone contains no pixel.
    """
    canvas = to_rgb(image)
    capital_px = min(max(round(min(image.shape[:2]) / 48), 8), 40)
    rows, columns = np.ogrid[: image.shape[0], : image.shape[1]]
    hatch = (rows + columns) % (2 * capital_px) < HATCH_PX
    ordered = sorted(plan.zones, key=lambda name: plan.zones[name].ignored)
    masks = {name: plan.draw_zone(name) for name in ordered}
    for name, mask in masks.items():
        if plan.zones[name].ignored:
            canvas[mask & hatch] = IGNORED
        else:
            hatch &= ~mask
    for name, mask in reversed(masks.items()):  # zones with rules above ignored ones
        color = IGNORED if plan.zones[name].ignored else RULED
        draw_outline(canvas, mask.view(np.uint8), color)
        left, top = (int(np.flatnonzero(mask.any(axis=axis))[0]) for axis in (0, 1))
        write_text(canvas, name, (left + capital_px, top + 2 * capital_px), capital_px, color)
    return canvas
