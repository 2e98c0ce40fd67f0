"""Visibility of a changed region, relative to the structures of the good surface."""

import cv2
import numpy as np
from numpy.typing import NDArray

from training.synthesis.fills import Image, Pixels, smooth
from training.synthesis.part_finder import find_inspected_part

FINE_PX, MIDDLE_PX, ROUGH_PX = (1.2, 6.0), (3.0, 12.0), (3.0, 16.0)
"""Standard deviations of differences of Gaussians: small structures, larger ones, and texture."""

REACH_PX = 48
"""Maximum distance at which a pixel influences another: three standard deviations of the widest filter."""

STRONGEST_QUANTILE = 0.999
"""Quantile of a good surface's filter responses that is taken as its strongest structure."""

MIN_LEVELS = 6.0, 6.0, 1.0
"""Minimum levels of the strongest structure: small, larger, texture."""

RIM_PX = 12
"""Rim of a part on a background that is ignored: an outline is more visible than any defect."""


class SurfaceStrength:
    """The strength of the strongest structures of a good image: small structures, larger structures, texture.

    `area` [h, w] is above 0 where defects of the image [h, w, C] are allowed; None = everywhere.
    """

    def __init__(self, image: Image, area: Image | None = None) -> None:
        self.part = find_inspected_part(image, area)
        inside = _without_rim(self.part) if self.part is not None else np.ones(image.shape[:2], np.bool_)
        self._strongest = [
            [
                max(minimum, float(np.quantile(sign * response[inside], STRONGEST_QUANTILE)))
                for sign in (-1.0, 1.0)
            ]
            for response, minimum in zip(_filter_responses(image), MIN_LEVELS, strict=True)
        ]

    def visibility(self, changed: Image, mask: NDArray[np.bool_]) -> float:
        """Returns the visibility of a region of a changed image; 1 = that of the strongest good structure.

        It is the maximum over all filters and both signs; each response is the mean of the larger half of
        the region's values. The mask [h, w] is not empty.
        """
        left, top, width, height = cv2.boundingRect(mask.view(np.uint8))
        rows = slice(max(0, top - REACH_PX), top + height + REACH_PX)
        columns = slice(max(0, left - REACH_PX), left + width + REACH_PX)
        inside = mask[rows, columns]
        return max(
            _upper_half(sign * response[inside]) / strongest
            for response, both in zip(_filter_responses(changed[rows, columns]), self._strongest, strict=True)
            for sign, strongest in zip((-1.0, 1.0), both, strict=True)
        )


def _filter_responses(image: Image) -> tuple[Pixels, Pixels, Pixels]:
    """Returns small structures, larger ones, and texture, in levels relative to the surroundings.

    Each is float32 [h, w, C], above 0 where the image is brighter, or rougher.
    """
    pixels = image.astype(np.float32)
    rough = np.abs(pixels - smooth(pixels, FINE_PX[0], cv2.BORDER_DEFAULT))

    def band(values: Pixels, narrow_px: float, wide_px: float) -> Pixels:
        return smooth(values, narrow_px, cv2.BORDER_DEFAULT) - smooth(values, wide_px, cv2.BORDER_DEFAULT)

    return band(pixels, *FINE_PX), band(pixels, *MIDDLE_PX), band(rough, *ROUGH_PX)


def _upper_half(values: Pixels) -> float:
    """Mean of the upper half, maximum over the channels."""
    count = len(values) - len(values) // 2
    return float(np.sort(values, axis=0)[-count:].mean(axis=0).max())


def _without_rim(part: NDArray[np.bool_]) -> NDArray[np.bool_]:
    inner = cv2.erode(part.view(np.uint8), np.ones((2 * RIM_PX + 1, 2 * RIM_PX + 1), np.uint8))
    within = np.asarray(inner, np.uint8) > 0
    return within if within.any() else part
