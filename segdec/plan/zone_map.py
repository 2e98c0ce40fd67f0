"""Finds the zones that a defect touches."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from segdec.errors import ConfigError
from segdec.plan.mask_parts import Mask, MaskPart

MAX_OVERLAPS = 200_000
"""Limit on the sets of zones that contain a pixel."""


class ZoneMap:
    """The zones that contain each pixel of a photograph.

    One number for each pixel stands for all zones there, since a hundred masks would need too much memory.

    Args:
        masks: Mask [height, width] of each zone.
        height: Of the photograph, px.
        width: Of the photograph, px.

    Raises:
        ConfigError: If the zones overlap in more than `MAX_OVERLAPS` ways.
    """

    def __init__(self, masks: Iterable[Mask], height: int, width: int) -> None:
        self._sets = [0]  # bit n: zone n
        self._numbers = np.zeros((height, width), np.int32)  # of a set
        for zone, mask in enumerate(masks):
            before = self._numbers[mask]
            changed = np.zeros(len(self._sets), np.int32)
            for number in np.flatnonzero(np.bincount(before, minlength=len(changed))).tolist():
                changed[number] = len(self._sets)
                self._sets.append(self._sets[number] | 1 << zone)
            self._numbers[mask] = changed[before]
            if len(self._sets) > MAX_OVERLAPS:
                raise ConfigError(
                    f"The zones overlap in more than {MAX_OVERLAPS} ways. Expected fewer or simpler zones."
                )

    def touched(self, part: MaskPart) -> list[int]:
        """Returns the numbers of the zones that contain any pixel of the part, those of most pixels first."""
        found, counts = np.unique(self._numbers[part.window][part.pixels], return_counts=True)
        pixels: Counter[int] = Counter()
        for number, count in zip(found.tolist(), counts.tolist(), strict=True):
            zones = self._sets[number]
            pixels.update({zone: count for zone in range(zones.bit_length()) if zones >> zone & 1})
        return [zone for zone, _ in pixels.most_common()]
