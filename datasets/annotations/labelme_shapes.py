"""The shapes of LabelMe: polygons, rectangles, circles, lines, points and masks.

A shape that cannot be drawn raises ValueError; the reader of the file adds the location.
"""

import base64
import binascii
import math
from collections.abc import Callable

from datasets.annotations.curves import Line, check_overlaps, ellipse
from datasets.annotations.labelled_shape import LabelledShape
from datasets.annotations.labels import read_label
from datasets.annotations.shapes import Bitmap, Box, Point, Polygon, check_inside, numbers
from segdec.errors import ImageError
from segdec.images import decode_mask

BACKGROUND = "_background_"
"""Label of background in LabelMe."""

ROUND = frozenset({"circle", "line", "linestrip", "point"})
"""Shapes that may exceed the picture, because the annotator did not set their extent."""

Drawn = Polygon | Box | Line | Bitmap


def read_shape(shape: object, height: int, width: int) -> LabelledShape | None:
    """Reads one shape, None for background; ValueError if it cannot be drawn."""
    if not isinstance(shape, dict):
        raise ValueError("the shape is not a JSON object")
    label = read_label(shape.get("label"))
    kind = shape.get("shape_type") or "polygon"  # LabelMe 3 has polygons only and no type
    if not isinstance(kind, str) or kind not in _SHAPES:
        raise ValueError(f"the shape type {kind!r:.40} is unknown; expected one of {', '.join(_SHAPES)}")
    drawn = _SHAPES[kind](shape)
    (check_overlaps if kind in ROUND else check_inside)(drawn, height, width)
    return None if label == BACKGROUND else LabelledShape(label, drawn, is_box=kind == "rectangle")


def _points(shape: dict[str, object], count: int | None = None) -> tuple[Point, ...]:
    listed = shape.get("points")
    if not isinstance(listed, list):
        raise ValueError("the shape has no list of points")
    pairs = [numbers(point) for point in listed]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("a point does not have two numbers, x and y")
    if count is not None and len(pairs) != count:
        raise ValueError(f"a {shape.get('shape_type')} has {len(pairs)} points; expected {count}")
    return tuple((pair[0], pair[1]) for pair in pairs)


def _rectangle(shape: dict[str, object]) -> Drawn:
    points = _points(shape)
    if len(points) not in (2, 4):
        raise ValueError(f"a rectangle has {len(points)} points; expected 2 or 4")
    if len(points) == 4:  # other programs write all corners, also of rotated rectangles
        return Polygon(points)
    x, y = zip(*points, strict=True)
    return Box(min(x), min(y), max(x) - min(x), max(y) - min(y))


def _circle(shape: dict[str, object]) -> Drawn:
    centre, edge = _points(shape, 2)
    radius = math.dist(centre, edge)
    return ellipse(*centre, radius, radius)


def _point(shape: dict[str, object]) -> Drawn:
    return Line(_points(shape, 1))


def _line(shape: dict[str, object]) -> Drawn:
    return Line(_points(shape, 2))


def _linestrip(shape: dict[str, object]) -> Drawn:
    points = _points(shape)
    if len(points) < 2:
        raise ValueError(f"a linestrip has {len(points)} points; expected at least 2")
    return Line(points)


def _mask(shape: dict[str, object]) -> Drawn:
    """Decodes the picture in `mask`; the two points are its corner pixels."""
    (left, top), (right, bottom) = _points(shape, 2)
    text = shape.get("mask")
    try:
        data = base64.b64decode(text if isinstance(text, str) else "", validate=True)
        pixels = decode_mask(data, "of the shape")
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"the mask of the shape is not base64 ({error})") from error
    except ImageError as error:
        raise ValueError(f"the mask of the shape is not a picture: {error}".rstrip(".")) from error
    expected = int(bottom) - int(top) + 1, int(right) - int(left) + 1
    if pixels.shape != expected:
        raise ValueError(
            f"the mask of the shape is {pixels.shape[1]}×{pixels.shape[0]} pixels (width × height), its "
            f"points span {expected[1]}×{expected[0]}"
        )
    return Bitmap.from_mask(int(left), int(top), pixels)


_SHAPES: dict[str, Callable[[dict[str, object]], Drawn]] = {
    "polygon": lambda shape: Polygon(_points(shape)),
    "rectangle": _rectangle,
    "circle": _circle,
    "line": _line,
    "linestrip": _linestrip,
    "point": _point,
    "mask": _mask,
}
