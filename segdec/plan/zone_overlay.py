"""Draws the zones of an inspection plan on a photograph."""

import numpy as np
from numpy.typing import NDArray

from segdec.imaging.overlay import Color, draw_outline, to_rgb, write_text
from segdec.plan.inspection_plan import Plan

WITH_RULES: Color = (90, 170, 255)
IGNORED: Color = (170, 170, 170)
"""Light blue and grey, RGB."""

HATCH_PX = 2
"""Width of the lines of an ignored zone, across."""


class ZoneOverlay:
    """Draws the outlines and names of a plan's zones. Ignored zones are grey, and hatched outside the others.

    Raises:
        ConfigError: If a zone contains no pixel.
    """

    def __init__(self, plan: Plan) -> None:
        height, width = plan.photograph.height, plan.photograph.width
        self._capital_px = min(max(round(min(height, width) / 48), 8), 40)
        rows, columns = np.ogrid[:height, :width]
        hatched = (rows + columns) % (2 * self._capital_px) < HATCH_PX
        ignored = np.zeros((height, width), np.bool_)
        self._zones: list[tuple[str, NDArray[np.bool_], Color]] = []
        for name, zone in sorted(plan.zones.items(), key=lambda pair: not pair[1].ignored):
            mask = plan.draw_zone(name)
            self._zones.append((name, mask, IGNORED if zone.ignored else WITH_RULES))
            ignored = ignored | mask if zone.ignored else ignored & ~mask
        self._hatch = hatched & ignored

    def draw(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Returns a photograph [H, W, 1 or 3] of the plan's size as RGB [H, W, 3], with the zones."""
        canvas = to_rgb(image)
        canvas[self._hatch] = IGNORED
        for name, mask, color in self._zones:
            draw_outline(canvas, mask.view(np.uint8), color)
            left, top = (int(np.flatnonzero(mask.any(axis=axis))[0]) for axis in (0, 1))
            place = left + self._capital_px, top + 2 * self._capital_px
            write_text(canvas, name, place, self._capital_px, color)
        return canvas
