"""The shapes of LabelMe and X-AnyLabeling: polygons, rectangles, circles, lines, points and masks."""

import base64
import binascii
import math
from collections.abc import Callable

from datasets.annotations.curves import Line, ellipse
from datasets.annotations.drawn_mask import Shape
from datasets.annotations.labelled_shape import LabelledShape
from datasets.annotations.labels import read_label
from datasets.annotations.shapes import Bitmap, Box, Point, Polygon, read_points
from segdec.errors import ImageError
from segdec.images import decode_mask

BACKGROUND = "_background_"
"""Label of background in LabelMe."""

ROUND = frozenset({"circle", "line", "linestrip", "point", "rotation"})
"""Shapes whose extent the annotator did not set."""


def read_shape(shape: object) -> LabelledShape | None:
    """Reads one shape, None for background; ValueError if it cannot be drawn."""
    if not isinstance(shape, dict):
        raise ValueError("the shape is not a JSON object")
    label = read_label(shape.get("label"))
    kind = shape.get("shape_type") or "polygon"  # LabelMe 3 has polygons only and no type
    if not isinstance(kind, str) or kind not in _SHAPES:
        raise ValueError(f"the shape type {kind!r:.40} is unknown; expected one of {', '.join(_SHAPES)}")
    drawn = _SHAPES[kind](shape)
    if label == BACKGROUND:
        return None
    return LabelledShape(label, drawn, is_box=kind == "rectangle", may_exceed=kind in ROUND)


def _points(shape: dict[str, object], *counts: int) -> tuple[Point, ...]:
    points = read_points(shape.get("points"))
    if counts and len(points) not in counts:
        expected = " or ".join(map(str, counts))
        raise ValueError(f"a {shape.get('shape_type')} has {len(points)} points; expected {expected}")
    return points


def _rectangle(shape: dict[str, object]) -> Shape:
    points = _points(shape, 2, 4)
    if len(points) == 4:  # other programs write all corners, also of rotated rectangles
        return Polygon(points)
    x, y = zip(*points, strict=True)
    return Box(min(x), min(y), max(x) - min(x), max(y) - min(y))


def _circle(shape: dict[str, object]) -> Shape:
    centre, edge = _points(shape, 2)
    radius = math.dist(centre, edge)
    return ellipse(*centre, radius, radius)


def _linestrip(shape: dict[str, object]) -> Shape:
    points = _points(shape)
    if len(points) < 2:
        raise ValueError(f"a linestrip has {len(points)} points; expected at least 2")
    return Line(points)


def _mask(shape: dict[str, object]) -> Shape:
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


_SHAPES: dict[str, Callable[[dict[str, object]], Shape]] = {
    "polygon": lambda shape: Polygon(_points(shape)),
    "rectangle": _rectangle,
    "rotation": lambda shape: Polygon(_points(shape, 4)),  # of X-AnyLabeling, as the next
    "quadrilateral": lambda shape: Polygon(_points(shape, 4)),
    "circle": _circle,
    "line": lambda shape: Line(_points(shape, 2)),
    "linestrip": _linestrip,
    "point": lambda shape: Line(_points(shape, 1)),
    "mask": _mask,
}
