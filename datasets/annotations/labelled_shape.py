"""What all annotation files say alike: shapes with labels, and the size of their photograph."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from datasets.annotations.drawn_mask import Shape
from segdec.images import DEFAULT_MAX_SIDE, MAX_PIXEL_LIMIT


@dataclass(frozen=True)
class LabelledShape:
    """One shape and what people call it.

    Attributes:
        label: As the annotation tool has it.
        shape: What is drawn.
        rough: Whether it is a rectangle around the defect, not the defect itself.
    """

    label: str
    shape: Shape
    is_box: bool = False


def largest_class(parts: Iterable[tuple[int, Shape]]) -> int:
    """Returns the class whose shapes cover most pixels together; of equal ones the lowest.

    Args:
        parts: Class index and shape of each defect; at least one.
    """
    areas_px: dict[int, float] = defaultdict(float)
    for label, shape in parts:
        areas_px[label] += shape.area_px
    return min(areas_px, key=lambda label: (-areas_px[label], label))


def read_annotated_size(height: object, width: object) -> tuple[int, int]:
    """Reads height and width of a photograph, px, as an annotation file says them.

    Raises:
        ValueError: If they are no whole numbers above 0, or larger than any limit on photographs.
    """
    sides = _side(height), _side(width)
    if None in sides:
        raise ValueError(f"the size {width!r:.40}×{height!r:.40} (width × height) is no size of a photograph")
    rows, columns = (side or 0 for side in sides)
    if max(rows, columns) > DEFAULT_MAX_SIDE or rows * columns > MAX_PIXEL_LIMIT:
        raise ValueError(
            f"the size {columns}×{rows} (width × height) is above the limit of {MAX_PIXEL_LIMIT} pixels"
        )
    return rows, columns


def _side(value: object) -> int | None:
    """A whole number above 0, or None."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        return None
    return value
