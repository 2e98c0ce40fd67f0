"""Scales 16-bit values to 8 bits by the same rule for every photograph."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from segdec.errors import ImageError

FULL_RANGE = 65535
DARK = 16
"""A picture whose brightest value becomes less than this (of 255) is nearly black."""

HOT_SHARE = 0.002
"""Share of pixels that may be brighter than the brightest value that counts: hot pixels of a sensor are far
below 0.1 %, a hot column of 640 is 0.16 %. A smaller bright defect on a black picture does not count either,
so such a picture is rejected without a white level."""

MAX_HOT_SHARE = 0.02
"""In small pictures one pixel may be hot if that is less than this."""

FIELD = "input.white_level"


def to_8_bits(
    values: NDArray[np.uint16], white_level: int | None, name: str
) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Scales `values` to 0…255: value × 255 / white level (None: 65535), rounded half up, clipped.

    Hot pixels do not count: the brightest value is that of all pixels except the brightest 0.2 %.

    Returns:
        The scaled values, and warnings if the white level seems wrong for them.

    Raises:
        ImageError: With the code `unsupported_depth`, if no white level is set and all values are dark.
        ValueError: If the white level is not a 16-bit value.
    """
    if white_level is not None and not 1 <= white_level <= FULL_RANGE:
        raise ValueError(f"white_level is {white_level}. Expected 1…{FULL_RANGE}.")
    white = FULL_RANGE if white_level is None else white_level
    hot = _hot_pixels(values)
    dark = np.count_nonzero(values.max(axis=-1) >= DARK * white / 255) <= hot
    brightest = int(np.sort(values.max(axis=-1), axis=None)[-1 - hot]) if dark else 0
    # 10- or 12-bit data would become a nearly black picture that every model calls good, and machines do not
    # read warnings. Users with dark photographs of full range set 65535 once.
    if dark and white_level is None:
        raise ImageError(
            f"{name} has 16 bits per channel, but its brightest value is {brightest}: it would become nearly "
            f"black. Expected values up to {FULL_RANGE}; set {FIELD} in the experiment, or --white-level, "
            f"and train with it (4095 for 12-bit data, {FULL_RANGE} if the photographs are meant to be "
            "dark).",
            code="unsupported_depth",
        )
    warnings = []
    if dark:
        warnings.append(
            f"the picture is nearly black: its brightest value is {brightest}, {FIELD} is {white}"
        )
    if clipped := int(np.count_nonzero(values > white)):
        warnings.append(
            f"{clipped} values above {FIELD} = {white} were clipped: the highest is {values.max()}"
        )
    return _table(white)[values], tuple(warnings)


def _hot_pixels(values: NDArray[np.uint16]) -> int:
    pixels = values.shape[0] * values.shape[1]
    return min(max(1, int(HOT_SHARE * pixels)), int(MAX_HOT_SHARE * pixels))


@lru_cache(maxsize=8)
def _table(white: int) -> NDArray[np.uint8]:
    """Returns the 8-bit value of each of the 65,536 values."""
    values = np.arange(FULL_RANGE + 1, dtype=np.int64)
    return np.minimum((values * 510 + white) // (2 * white), 255).astype(np.uint8)
