"""Measures the defects of a photograph, and finds the zones that they touch."""

from collections.abc import Callable
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

from segdec.config import ModelConfig
from segdec.errors import ConfigError
from segdec.inference.postprocessing import Prediction
from segdec.plan.defects import FoundDefect, find_defects
from segdec.plan.findings import MeasuredDefect
from segdec.plan.inspection_plan import Plan
from segdec.plan.mask_parts import Mask, MaskPart, connected_parts
from segdec.plan.size_intervals import MeasuredSizes
from segdec.plan.zone_map import ZoneMap

MAX_DEFECTS, MAX_PIXELS = 200, 2**26
"""Limits on the defects of a photograph that are measured, and on the pixels of their windows.

One with more is for review: measuring all would take too long.
"""


class DefectMeasurer:
    """Measures the defects that one model finds, by the scale and the zones of one plan.

    Args:
        plan: The plan.
        config: The model.

    Attributes:
        areas: Name of each zone with rules → its area, px² of the photograph or of the plane of the part.

    Raises:
        ConfigError: If a zone is partly outside the inspected area or contains no pixel.
    """

    def __init__(self, plan: Plan, config: ModelConfig) -> None:
        self._plan, self._config = plan, config
        self._size = plan.photograph.height, plan.photograph.width
        self._plane = plan.photograph.plane
        self._pixel = 1.0 if self._plane is None else self._plane.photograph_px
        self._ignored: Mask = np.zeros(self._size, np.bool_)
        for name, zone in plan.zones.items():
            if zone.ignored:
                self._ignored |= plan.draw_zone(name)
        self._covered = self._ignored.copy()
        self.areas: dict[str, int] = {}
        self._names = tuple(name for name, zone in plan.zones.items() if not zone.ignored)
        self._map = ZoneMap(map(self._draw_inspected, self._names), *self._size)
        self._border = _find_border(config.input.inspected_area(*self._size), *self._size)

    def measure(self, prediction: Prediction) -> tuple[list[MeasuredDefect], bool]:
        """Returns the largest defects, measured, and whether there are more than can be measured."""
        defects: list[MeasuredDefect] = []
        flattened, pixels = cache(self._flatten), 0.0
        for found in find_defects(prediction, self._config):
            pixels += self._pixel**2 * (found.part.pixels.size + found.possible.pixels.size)
            if len(defects) == MAX_DEFECTS or pixels > MAX_PIXELS:
                return defects, True
            defects.append(self._measure(found, flattened))
        return defects, False

    def _measure(self, found: FoundDefect, flattened: Callable[[MaskPart], MaskPart]) -> MeasuredDefect:
        """Measures a defect; `flattened` is `_flatten` with a cache."""
        zones, possible_zones = self._map.touched(found.part), self._map.touched(found.possible)
        outside: bool | None = not zones and not found.part.is_within(self._ignored)
        if not zones and not outside and not found.possible.is_within(self._covered):
            outside = None
        cut = found.possible.touches(self._border)
        flat, flat_possible = self._flatten(found.part), flattened(found.possible)
        return MeasuredDefect(
            found.part.bbox,
            flat,
            flat_possible,
            found.classes,
            found.score_max,
            MeasuredSizes.estimate(
                flat.sizes, flat_possible.sizes, self._config.size_errors, cut=cut, pixel=self._pixel
            ),
            tuple(self._names[number] for number in zones),
            tuple(self._names[number] for number in possible_zones if number not in zones),
            outside,
        )

    def _flatten(self, part: MaskPart) -> MaskPart:
        """Returns a part of the photograph in the plane of the part."""
        return part if self._plane is None else self._plane.flatten(part)

    def _draw_inspected(self, name: str) -> Mask:
        """Returns the pixels of a zone with rules, and keeps its area."""
        mask, area = self._plan.draw_zone(name), self._config.input.inspected_area(*self._size)
        self.areas[name] = sum(int(self._flatten(part).pixels.sum()) for part in connected_parts(mask))
        self._covered |= mask
        outside = 0 if area is None else int(np.count_nonzero(mask & (area == 0)))
        if outside:
            raise ConfigError(
                f"{outside} of {np.count_nonzero(mask)} pixels of the zone '{name}' are outside the area "
                "that the model inspects. Expected a zone inside it: change the zone, or train with another "
                "area."
            )
        return mask


def _find_border(area: NDArray[np.uint8] | None, height: int, width: int) -> Mask:
    """Returns the inspected pixels [height, width] at the border of photograph or inspected area."""
    inspected = np.ones((height, width), np.uint8) if area is None else (area > 0).view(np.uint8)
    inner = cv2.erode(inspected, np.ones((3, 3), np.uint8), borderType=cv2.BORDER_CONSTANT, borderValue=0)
    return np.asarray((inspected > 0) & (inner == 0))
