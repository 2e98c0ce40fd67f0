"""Scales 16-bit values to 8 bits by the same rule for every photograph."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from segdec.errors import ImageError

FULL_RANGE = 65535
DARK = 16
"""A picture whose brightest value becomes less than this (of 255) is nearly black."""

FIELD = "input.white_level"


def to_8_bits(
    values: NDArray[np.uint16], white_level: int | None, name: str
) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Scales `values` to 0…255: value × 255 / white level (None: 65535), rounded half up, clipped.

    Returns:
        The scaled values, and warnings if the white level seems wrong for them.

    Raises:
        ImageError: With the code `unsupported_depth`, if no white level is set and all values are dark.
        ValueError: If the white level is not a 16-bit value.
    """
    if white_level is not None and not 1 <= white_level <= FULL_RANGE:
        raise ValueError(f"white_level is {white_level}. Expected 1…{FULL_RANGE}.")
    brightest = int(values.max())
    white = FULL_RANGE if white_level is None else white_level
    dark = brightest * 255 < DARK * white
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
    if brightest > white:
        warnings.append(f"values above {FIELD} = {white} were clipped: the brightest is {brightest}")
    return _table(white)[values], tuple(warnings)


@lru_cache(maxsize=8)
def _table(white: int) -> NDArray[np.uint8]:
    """Returns the 8-bit value of each of the 65,536 values."""
    values = np.arange(FULL_RANGE + 1, dtype=np.int64)
    return np.minimum((values * 510 + white) // (2 * white), 255).astype(np.uint8)
