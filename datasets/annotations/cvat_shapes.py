"""The shapes of CVAT: polygons, boxes, ellipses, polylines and masks."""

from collections.abc import Callable

import numpy as np

from datasets.annotations.curves import Line, box_corners, ellipse, rotated
from datasets.annotations.cvat_xml import Element
from datasets.annotations.drawn_mask import Shape
from datasets.annotations.labelled_shape import LabelledShape
from datasets.annotations.labels import read_label
from datasets.annotations.shapes import Bitmap, Box, Point, Polygon
from datasets.annotations.xml_file import to_number
from segdec.images import DEFAULT_MAX_PIXELS


def read_shape(element: Element, height: int, width: int) -> LabelledShape:
    """Reads the shape of an element in a picture of `height` × `width` px; ValueError if it is invalid."""
    label = read_label(element.text("label"))
    if element.tag not in (*_SHAPES, "mask"):
        known = ", ".join((*_SHAPES, "mask"))
        raise ValueError(f"the shape <{element.tag:.40}> is unknown; expected one of {known}")
    drawn = _mask(element, height, width) if element.tag == "mask" else _SHAPES[element.tag](element)
    may_exceed = element.tag in {"ellipse", "polyline"} or _rotation(element) != 0
    return LabelledShape(label, drawn, is_box=element.tag == "box", may_exceed=may_exceed)


def _rotation(element: Element) -> float:
    """Degrees clockwise about the centre."""
    return element.number("rotation", default=0.0)


def _points(element: Element) -> tuple[Point, ...]:
    pairs = [text.split(",") for text in element.text("points").split(";")]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"the points of the {element.tag} do not have the form x,y;x,y")
    return tuple((to_number(x), to_number(y)) for x, y in pairs)


def _box(element: Element) -> Shape:
    left, top = element.number("xtl"), element.number("ytl")
    width, height = element.number("xbr") - left, element.number("ybr") - top
    if not _rotation(element):
        return Box(left, top, width, height)
    centre = left + width / 2, top + height / 2
    return rotated(box_corners(left, top, width, height), centre, _rotation(element))


def _ellipse(element: Element) -> Shape:
    cx, cy, rx, ry = (element.number(name) for name in ("cx", "cy", "rx", "ry"))
    return ellipse(cx, cy, rx, ry, _rotation(element))


def _polyline(element: Element) -> Shape:
    points = _points(element)
    if len(points) < 2:
        raise ValueError(f"the polyline has {len(points)} points; expected at least 2")
    return Line(points)


def _mask(element: Element, height: int, width: int) -> Shape:
    """Decodes run lengths, row by row within the box, starting with background.

    Checks the size before memory is allocated for it.
    """
    values = [element.number(name) for name in ("left", "top", "width", "height")]
    if not all(value.is_integer() for value in values):
        raise ValueError("the position of the mask is not in whole pixels")
    left, top, columns, rows = (int(value) for value in values)
    if min(left, top) < 0 or min(columns, rows) < 1 or left + columns > width or top + rows > height:
        raise ValueError(
            f"the mask of {columns}×{rows} pixels at ({left}, {top}) is not inside the picture of "
            f"{width}×{height} pixels (width × height)"
        )
    if columns * rows > DEFAULT_MAX_PIXELS:
        raise ValueError(
            f"the mask has {columns}×{rows} pixels (width × height), expected at most {DEFAULT_MAX_PIXELS}; "
            "draw the defect in parts"
        )
    texts = element.text("rle").split(",")
    if not all(text.strip().isascii() and text.strip().isdigit() and len(text) < 12 for text in texts):
        raise ValueError("the rle of the mask is not a list of whole numbers")
    lengths = [int(text) for text in texts]
    if sum(lengths) != columns * rows:
        raise ValueError(
            f"the run lengths of the mask have {sum(lengths)} pixels, its box of {columns}×{rows} has "
            f"{columns * rows}"
        )
    return Bitmap.from_mask(left, top, np.repeat(np.arange(len(lengths)) % 2, lengths).reshape(rows, columns))


_SHAPES: dict[str, Callable[[Element], Shape]] = {
    "polygon": lambda element: Polygon(_points(element)),
    "box": _box,
    "ellipse": _ellipse,
    "polyline": _polyline,
}
