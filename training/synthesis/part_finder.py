"""Finds the part in an image with a uniform background."""

import cv2
import numpy as np
from numpy.typing import NDArray

SIDE_PX = 256
"""Longest side of the reduced image that is examined."""

MIN_CONTRAST = 40.0
"""Minimum difference of the means of part and background, levels."""

MAX_SPREAD = 12.0
"""Maximum standard deviation of a background, levels."""

MIN_BORDER = 0.7
"""Minimum share of background in the image's border."""

MIN_SHARE = 0.02, 0.05
"""Minimum shares of part and background in the image."""


def find_part(image: NDArray[np.uint8]) -> NDArray[np.bool_] | None:
    """Returns the pixels of the part [h, w] in an image [h, w, C]; None if there is no uniform background.

    Otsu's threshold divides the image. One side is the background if it covers most of the border, is
    uniform, and differs clearly from the other side.
    """
    height, width = image.shape[:2]
    factor = min(1.0, SIDE_PX / max(height, width))
    size = max(1, round(width * factor)), max(1, round(height * factor))
    small = cv2.resize(np.ascontiguousarray(image), size, interpolation=cv2.INTER_AREA)
    grey = np.asarray(small if small.ndim == 2 else cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), np.uint8)
    _, split = cv2.threshold(grey, 0, 1, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    bright = np.asarray(split, np.bool_)
    border = np.concatenate([bright[0], bright[-1], bright[:, 0], bright[:, -1]])
    part = bright if border.mean() < 0.5 else ~bright
    if not _is_uniform(grey, part, max(border.mean(), 1.0 - border.mean())):
        return None
    closed = cv2.morphologyEx(part.view(np.uint8), cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8))
    whole = cv2.resize(np.asarray(closed), (width, height), interpolation=cv2.INTER_NEAREST)
    return np.asarray(whole, np.uint8) > 0


def _is_uniform(grey: NDArray[np.uint8], part: NDArray[np.bool_], border_share: float) -> bool:
    """Whether the rest of the image is a uniform background."""
    share = float(part.mean())
    if border_share < MIN_BORDER or share < MIN_SHARE[0] or 1.0 - share < MIN_SHARE[1]:
        return False
    background = grey[~part].astype(np.float64)
    contrast = abs(float(grey[part].mean()) - float(background.mean()))
    return contrast >= MIN_CONTRAST and float(background.std()) <= MAX_SPREAD


def find_inspected_part(image: NDArray[np.uint8], area: NDArray[np.uint8] | None) -> NDArray[np.bool_] | None:
    """Returns the part's inspected pixels; all inspected pixels if it has none or is not found; None = all.

    `area` [h, w] is above 0 where the image [h, w, C] is inspected, not empty; None = everywhere.
    """
    part = find_part(image)
    if area is None:
        return part
    inspected = area > 0
    both = inspected if part is None else part & inspected
    return both if both.any() else inspected
