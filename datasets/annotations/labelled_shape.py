"""Common content of all annotation files: shapes with labels, and the size of the photograph."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from datasets.annotations.drawn_mask import Shape
from segdec.images import DEFAULT_MAX_SIDE, MAX_PIXEL_LIMIT


@dataclass(frozen=True)
class LabelledShape:
    """A shape with its label.

    Attributes:
        label: The label.
        shape: The shape.
        is_box: Whether it is a rectangle around the defect, not the defect itself.
        may_exceed: Whether it may exceed the picture, because the annotator did not set its extent: circles,
            wide lines and rotated shapes.
    """

    label: str
    shape: Shape
    is_box: bool = False
    may_exceed: bool = False


def largest_class(parts: Iterable[tuple[int, Shape]]) -> int:
    """Returns the class of the largest total area, the lowest one if equal; `parts` are class and shape."""
    areas_px: dict[int, float] = defaultdict(float)
    for label, shape in parts:
        areas_px[label] += shape.area_px
    return min(areas_px, key=lambda label: (-areas_px[label], label))


def read_annotated_size(height: object, width: object) -> tuple[int, int]:
    """Reads height and width of a photograph, px, from an annotation file.

    Raises:
        ValueError: If they are not whole numbers above 0, or exceed every limit on photographs.
    """
    sides = _side(height), _side(width)
    if None in sides:
        raise ValueError(f"the size {width!r:.40}×{height!r:.40} (width × height) is invalid")
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
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        return None
    return value
