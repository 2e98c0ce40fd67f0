"""The rows of YOLO's text files: boxes, polygons and oriented boxes in fractions of the photograph's size."""

import re

from datasets.annotations.drawn_mask import Shape
from datasets.annotations.shapes import Box, Polygon
from datasets.annotations.xml_file import to_number

BOX_NUMBERS = 5
"""Class, centre, width and height."""

MAX_FRACTION = 1.5
"""Larger coordinates are pixels, not fractions."""

_DELIMITERS = re.compile(r"[\s;]+|,\s+")


def is_row(line: str) -> bool:
    """Returns whether a line has a class index and at least four other numbers."""
    try:
        index, *values = _numbers(line)
    except ValueError:
        return False
    return index.is_integer() and len(values) >= BOX_NUMBERS - 1


def read_row(line: str, height: int, width: int, *, keypoints: bool = False) -> tuple[int, Shape, bool]:
    """Reads the class index and the shape of a row, and whether it is a box.

    A last number after a box or complete polygon is the confidence of a prediction. `height` and `width` are
    those of the photograph, px; `keypoints`: whether the data set has keypoints.

    Raises:
        ValueError: If the row is invalid or has keypoints.
    """
    numbers = _numbers(line)
    index, values = numbers[0], numbers[1:]
    if index < 0 or not index.is_integer():
        raise ValueError(f"the row starts with {index:g}. Expected the index of a class")
    if len(numbers) > BOX_NUMBERS and (keypoints or _has_visibility(values)):
        raise ValueError("the row has keypoints. Export boxes or polygons")
    if len(values) % 2 and len(values) >= BOX_NUMBERS:
        values = values[:-1]
    if len(values) not in (4, *range(6, len(values) + 1, 2)):
        raise ValueError(
            f"the row has {len(numbers)} numbers. Expected 5 (class, centre x and y, width, height), or the "
            "class and the points of a polygon"
        )
    if not all(abs(value) <= MAX_FRACTION for value in values):
        largest = max(values, key=abs)
        raise ValueError(
            f"{largest:g} is not a fraction of the photograph's size. Export in the format of YOLO"
        )
    if len(values) > 4:
        points = zip(values[0::2], values[1::2], strict=True)
        return int(index), Polygon(tuple((x * width, y * height) for x, y in points)), False
    x, y, w, h = values
    box = Box((x - w / 2) * width, (y - h / 2) * height, w * width, h * height)
    return int(index), box, True


def _has_visibility(values: list[float]) -> bool:
    """Whether one point follows the box, with a visibility of 0, 1 or 2."""
    return len(values) == 7 and values[-1] in {0.0, 1.0, 2.0}


def _numbers(line: str) -> list[float]:
    """The numbers of a row; they may have decimal commas, or be separated by commas."""
    texts = [text for text in _DELIMITERS.split(line.strip()) if text]
    if len(texts) == 1:
        texts = line.split(",")
    return [to_number(text.replace(",", ".")) for text in texts]
