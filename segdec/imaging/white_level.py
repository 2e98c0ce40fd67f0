"""16-bit values to 8 bits, by a rule that is the same for every photograph."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from segdec.errors import ImageError

FULL_RANGE = 65535
DARK = 16
"""A picture whose brightest value becomes less than this, of 255, is nearly black."""

FIELD = "input.white_level"


def to_8_bits(
    values: NDArray[np.uint16], white_level: int | None, name: str
) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Scales `values` of any shape to 0…255: value × 255 / white level, rounded half up, clipped.

    Args:
        values: As they are in the file.
        white_level: The value that becomes 255; None: 65535, where nobody has said so.
        name: What error messages call the photograph.

    Returns:
        The scaled values, and warnings where they look as if the white level were not theirs.

    Raises:
        ImageError: With the code `unsupported_depth`, if no white level was set and every value is dark.
        ValueError: If the white level is no 16-bit value.
    """
    if white_level is not None and not 1 <= white_level <= FULL_RANGE:
        raise ValueError(f"white_level is {white_level}. Expected 1…{FULL_RANGE}.")
    brightest = int(values.max())
    white = FULL_RANGE if white_level is None else white_level
    dark = brightest * 255 < DARK * white
    # Data of 10 or 12 bits would become a near-black picture that every model calls good, and a warning is
    # read by nobody when a machine asks. Who does have dark photographs of full range says so once, by 65535.
    if dark and white_level is None:
        raise ImageError(
            f"{name} has 16 bits a channel, but its brightest value is {brightest}: it would become nearly "
            f"black. Expected values up to {FULL_RANGE}; set {FIELD} in the experiment, or --white-level, "
            f"and train with it (4095 for 12-bit data, {FULL_RANGE} where the photographs are meant to be as "
            "dark).",
            code="unsupported_depth",
        )
    doubts = []
    if dark:
        doubts.append(f"the picture is nearly black: its brightest value is {brightest}, {FIELD} is {white}")
    if brightest > white:
        doubts.append(f"values above {FIELD} = {white} were clipped: the brightest is {brightest}")
    return _table(white)[values], tuple(doubts)


@lru_cache(maxsize=8)
def _table(white: int) -> NDArray[np.uint8]:
    """What each of the 65,536 values becomes."""
    values = np.arange(FULL_RANGE + 1, dtype=np.int64)
    return np.minimum((values * 510 + white) // (2 * white), 255).astype(np.uint8)
