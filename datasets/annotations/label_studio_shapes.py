"""The results of Label Studio: polygons, rectangles, ellipses, brush strokes, bitmasks and choices.

Positions and lengths are percentages of the picture.
"""

import base64
import binascii
from collections.abc import Callable
from typing import Any

import numpy as np

from datasets.annotations import label_studio_rle
from datasets.annotations.curves import box_corners, ellipse, rotated
from datasets.annotations.drawn_mask import Shape
from datasets.annotations.label_meanings import interpret_labels
from datasets.annotations.labelled_shape import LabelledShape, read_annotated_size
from datasets.annotations.labels import read_label
from datasets.annotations.shapes import Bitmap, Box, Polygon, numbers, read_points
from datasets.reading_options import ReadingOptions
from segdec.errors import ImageError
from segdec.images import decode_mask

CHOICES = "choices"
LABELS = "labels"

NO_SHAPE = frozenset(
    {CHOICES, "relation", "textarea", "rating", "number", "datetime", "taxonomy", "pairwise", "ranker"}
)
"""Types of results without a shape."""

Value = dict[str, Any]


def read_choices(result: object) -> tuple[str, ...]:
    """Reads the choices for the whole picture from a result; ValueError if they are not strings."""
    if not isinstance(result, dict) or result.get("type") != CHOICES:
        return ()
    value = result.get("value")
    if not isinstance(value, dict) or _geometry(value):  # a choice about one part of the picture
        return ()
    listed = value.get(CHOICES)
    if not isinstance(listed, list):
        raise ValueError("the choices are not a list")
    return tuple(read_label(choice) for choice in listed)


def marks_defect(results: object, reading: ReadingOptions) -> bool:
    """Returns whether a result is a shape or a choice whose label cannot mean good, or an invalid one."""
    listed: list[object] = []
    for result in results if isinstance(results, list) else []:
        value = result.get("value") if isinstance(result, dict) else None
        named = [each for key, each in value.items() if key in _LABEL_KEYS] if isinstance(value, dict) else []
        listed += [label for labels in named if isinstance(labels, list) for label in labels]
    meanings = interpret_labels((label for label in listed if isinstance(label, str)), reading)
    return any(label not in meanings.good | meanings.unclear for label in map(str, listed))


def result_size(result: object) -> tuple[int, int]:
    """Reads height and width of the picture, px, as stored in the result; ValueError if they are missing."""
    content = result if isinstance(result, dict) else {}
    return read_annotated_size(content.get("original_height"), content.get("original_width"))


def drawn_results(results: list[Any]) -> list[tuple[int, Any]]:
    """Returns number, from 1, and content of each result that may have a shape.

    With separate tools for shape and label, a drawing has two results with one id. The second repeats the
    shape and adds the label, so the first is ignored.
    """
    objects = {number: r for number, r in enumerate(results, start=1) if isinstance(r, dict)}
    labelled = {str(result.get("id")) for result in objects.values() if result.get("type") == LABELS}
    left_out = {
        number
        for number, result in objects.items()
        if result.get("type") in NO_SHAPE
        or (result.get("type") in _SHAPES and str(result.get("id")) in labelled)
    }
    return [each for each in enumerate(results, start=1) if each[0] not in left_out]


def read_shape(result: object) -> LabelledShape:
    """Reads the shape of one result; ValueError if it cannot be drawn."""
    if not isinstance(result, dict) or not isinstance(result.get("value"), dict):
        raise ValueError("the result has no value")
    value = result["value"]
    kind = _geometry(value)
    if kind is None or result.get("type") not in (kind, f"{kind}{LABELS}", LABELS):
        known = ", ".join(f"{name}{LABELS}" for name in _SHAPES)
        raise ValueError(f"the type {result.get('type')!r:.40} is unknown; expected one of {known}")
    if result.get("image_rotation"):
        raise ValueError("the picture was rotated in the tool; rotate the photograph's file instead")
    height, width = result_size(result)
    label, drawn = _label(value, kind), _SHAPES[kind](value, height, width)
    may_exceed = kind == "ellipse" or bool(value.get("rotation"))
    return LabelledShape(label, drawn, is_box=kind == "rectangle", may_exceed=may_exceed)


def _geometry(value: Value) -> str | None:
    """The kind of shape of a value."""
    keys = {
        "points": "polygon",
        "rle": "brush",
        "imageDataURL": "bitmask",
        "radiusX": "ellipse",
        "height": "rectangle",
    }
    return next((kind for key, kind in keys.items() if key in value), None)


def _label(value: Value, kind: str) -> str:
    listed = value.get(f"{kind}{LABELS}", value.get(LABELS))
    if not isinstance(listed, list) or len(listed) != 1:
        count = len(listed) if isinstance(listed, list) else "no"
        raise ValueError(f"the {kind} has {count} labels; expected one")
    return read_label(listed[0])


def _pixels(value: Value, height: int, width: int, *keys: str) -> tuple[float, ...]:
    """Converts percentages to px, alternately along x and y; ValueError if one is not a number."""
    sides = (width, height) * len(keys)
    percents = numbers([value.get(key) for key in keys])
    return tuple(percent / 100 * side for percent, side in zip(percents, sides, strict=False))


def _rotation(value: Value) -> float:
    """Degrees clockwise."""
    return numbers([value.get("rotation") or 0.0])[0]


def _polygon(value: Value, height: int, width: int) -> Shape:
    return Polygon(tuple((x / 100 * width, y / 100 * height) for x, y in read_points(value["points"])))


def _rectangle(value: Value, height: int, width: int) -> Shape:
    """Rotates about the top left corner."""
    x, y, columns, rows = _pixels(value, height, width, "x", "y", "width", "height")
    if not _rotation(value):
        return Box(x, y, columns, rows)
    return rotated(box_corners(x, y, columns, rows), (x, y), _rotation(value))


def _ellipse(value: Value, height: int, width: int) -> Shape:
    """Rotates about the centre."""
    x, y, rx, ry = _pixels(value, height, width, "x", "y", "radiusX", "radiusY")
    return ellipse(x, y, rx, ry, _rotation(value))


def _brush(value: Value, height: int, width: int) -> Shape:
    if value.get("format") != "rle":
        raise ValueError(f"the brush has the format {value.get('format')!r:.40}; expected 'rle'")
    alpha = label_studio_rle.decode(value["rle"], height, width)
    rows, columns = np.flatnonzero(alpha.any(axis=1)), np.flatnonzero(alpha.any(axis=0))
    if not rows.size:
        raise ValueError("the brush marks no pixel")
    top, left = int(rows[0]), int(columns[0])
    return Bitmap.from_mask(left, top, alpha[top : rows[-1] + 1, left : columns[-1] + 1])


def _bitmask(value: Value, height: int, width: int) -> Shape:
    """Decodes the PNG in a data URL, which has the size of the picture."""
    text = value.get("imageDataURL")
    _, separator, data = text.partition("base64,") if isinstance(text, str) else ("", "", "")
    if not separator:
        raise ValueError("the bitmask has no data URL with a PNG in base64")
    try:
        mask = decode_mask(base64.b64decode(data, validate=True), "of the bitmask")
    except (binascii.Error, ImageError) as error:
        raise ValueError(f"the bitmask cannot be read: {error}") from error
    if mask.shape != (height, width):
        raise ValueError(
            f"the bitmask is {mask.shape[1]}×{mask.shape[0]} pixels (width × height), the picture "
            f"{width}×{height}"
        )
    return Bitmap.from_mask(0, 0, mask)


_SHAPES: dict[str, Callable[[Value, int, int], Shape]] = {
    "polygon": _polygon,
    "rectangle": _rectangle,
    "ellipse": _ellipse,
    "brush": _brush,
    "bitmask": _bitmask,
}

_LABEL_KEYS = frozenset({CHOICES, LABELS, *(f"{kind}{LABELS}" for kind in _SHAPES)})
"""Keys of a value that hold labels."""
