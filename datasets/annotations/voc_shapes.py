"""The objects of Pascal VOC: boxes, polygons and rotated boxes."""

import math
from xml.etree.ElementTree import Element

from datasets.annotations.curves import box_corners, rotated
from datasets.annotations.labelled_shape import LabelledShape
from datasets.annotations.labels import read_label
from datasets.annotations.shapes import Box, Point, Polygon
from datasets.annotations.xml_file import to_number


def read_shape(element: Element) -> LabelledShape:
    """Reads an <object>; a polygon replaces its box. ValueError if it has no valid shape.

    The numbers of <bndbox> are the first and last pixels, from 1; those of others are distances, px.
    """
    label = read_label(element.findtext("name"))
    polygon, box, turned = (element.find(tag) for tag in ("polygon", "bndbox", "robndbox"))
    if polygon is not None and len(polygon):
        return LabelledShape(label, Polygon(_points(polygon)))
    if turned is not None:
        cx, cy, width, height, angle = (_number(turned, tag) for tag in ("cx", "cy", "w", "h", "angle"))
        corners = box_corners(cx - width / 2, cy - height / 2, width, height)
        shape = rotated(corners, (cx, cy), math.degrees(angle))
        return LabelledShape(label, shape, is_box=True, may_exceed=True)
    if box is None:
        raise ValueError("the object has no bndbox and no polygon")
    left, top, right, bottom = (_number(box, tag) for tag in ("xmin", "ymin", "xmax", "ymax"))
    return LabelledShape(label, Box(left - 1, top - 1, right - left + 1, bottom - top + 1), is_box=True)


def _points(polygon: Element) -> tuple[Point, ...]:
    """The points, written as <x1>, <y1>, <x2>, … or as <pt><x>…</x><y>…</y></pt>."""
    if points := polygon.findall("pt"):
        return tuple((_number(point, "x"), _number(point, "y")) for point in points)
    count = sum(child.tag.startswith("x") for child in polygon)
    return tuple((_number(polygon, f"x{n}"), _number(polygon, f"y{n}")) for n in range(1, count + 1))


def _number(element: Element, tag: str) -> float:
    text = element.findtext(tag)
    if text is None:
        raise ValueError(f"the {element.tag} has no {tag}")
    return to_number(text)
