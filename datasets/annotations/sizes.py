"""The size of a photograph as an annotation file says it."""

from segdec.images import DEFAULT_MAX_SIDE, MOST_PIXELS


def read_size(height: object, width: object) -> tuple[int, int]:
    """Height and width, px.

    Raises:
        ValueError: When they are no whole numbers above 0, or larger than any limit on photographs.
    """
    sides = _side(height), _side(width)
    if None in sides:
        raise ValueError(f"the size {width!r:.40}×{height!r:.40} (width × height) is no size of a photograph")
    rows, columns = (side or 0 for side in sides)
    if max(rows, columns) > DEFAULT_MAX_SIDE or rows * columns > MOST_PIXELS:
        raise ValueError(
            f"the size {columns}×{rows} (width × height) is above the limit of {MOST_PIXELS} pixels"
        )
    return rows, columns


def _side(value: object) -> int | None:
    """A whole number above 0, or None."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        return None
    return value
