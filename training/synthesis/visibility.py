"""How much a place of a photograph stands out, measured by what the good surface itself shows."""

import cv2
import numpy as np
from numpy.typing import NDArray

from training.synthesis.part_finder import find_inspected_part

Image = NDArray[np.uint8]
Pixels = NDArray[np.float32]

FINE_PX, MIDDLE_PX, ROUGH_PX = (1.2, 6.0), (3.0, 12.0), (3.0, 16.0)
"""Gaussians whose difference shows small spots and lines, larger ones, and texture unlike that around."""

REACH_PX = 48
"""How far a pixel may change what is measured of another: three standard deviations of the widest."""

STRONGEST = 0.999
"""Quantile of a good surface's pixels that counts as the strongest it shows."""

MIN_LEVELS = 6.0, 6.0, 1.0
"""Levels that the strongest of a plain surface is taken to have, at least: small, larger, texture."""

RIM_PX = 12
"""Of the part, left out where a background is told from it: an outline stands out more than any defect."""


class Surface:
    """What a good photograph shows of its own: the strongest small and larger spots, and texture.

    Args:
        image: uint8 [h, w, C].
        area: uint8 [h, w], above 0 where defects may lie; None = everywhere.
    """

    def __init__(self, image: Image, area: Image | None = None) -> None:
        self.part = find_inspected_part(image, area)
        inside = _without_rim(self.part) if self.part is not None else np.ones(image.shape[:2], np.bool_)
        self._strongest = [
            [max(least, float(np.quantile(sign * shown[inside], STRONGEST))) for sign in (-1.0, 1.0)]
            for shown, least in zip(_appearance(image), MIN_LEVELS, strict=True)
        ]

    def visibility(self, changed: Image, mask: NDArray[np.bool_]) -> float:
        """Returns how much a place stands out; 1 = as the strongest that the good photograph shows.

        Of each appearance, darker and brighter, the mean over the half of the place that shows it more.

        Args:
            changed: uint8 [h, w, C], the photograph with the place.
            mask: [h, w], the place, not empty.
        """
        left, top, width, height = cv2.boundingRect(mask.view(np.uint8))
        rows = slice(max(0, top - REACH_PX), top + height + REACH_PX)
        columns = slice(max(0, left - REACH_PX), left + width + REACH_PX)
        inside = mask[rows, columns]
        return max(
            _upper_half(sign * shown[inside]) / strongest
            for shown, both in zip(_appearance(changed[rows, columns]), self._strongest, strict=True)
            for sign, strongest in zip((-1.0, 1.0), both, strict=True)
        )


def _appearance(image: Image) -> tuple[Pixels, Pixels, Pixels]:
    """Returns small and larger spots, in levels against their surroundings, and texture against that around.

    Each is float32 [h, w, C], as the image: above 0 where brighter, or rougher.
    """
    pixels = image.astype(np.float32)
    narrow = _blur(pixels, FINE_PX[0])
    rough = np.abs(pixels - narrow)
    return (
        narrow - _blur(pixels, FINE_PX[1]),
        _blur(pixels, MIDDLE_PX[0]) - _blur(pixels, MIDDLE_PX[1]),
        _blur(rough, ROUGH_PX[0]) - _blur(rough, ROUGH_PX[1]),
    )


def _blur(pixels: Pixels, sigma_px: float) -> Pixels:
    return np.asarray(cv2.GaussianBlur(pixels, (0, 0), sigma_px), np.float32).reshape(pixels.shape)


def _upper_half(values: Pixels) -> float:
    """The mean of the larger half, of the channel where it is largest."""
    count = len(values) - len(values) // 2
    return float(np.sort(values, axis=0)[-count:].mean(axis=0).max())


def _without_rim(part: NDArray[np.bool_]) -> NDArray[np.bool_]:
    inner = cv2.erode(part.view(np.uint8), np.ones((2 * RIM_PX + 1, 2 * RIM_PX + 1), np.uint8))
    within = np.asarray(inner, np.uint8) > 0
    return within if within.any() else part
