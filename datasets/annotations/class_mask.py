"""Masks that hold the class of each pixel as an index or a colour; a text file names the classes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from datasets.annotations.labelled_shape import LabelledShape
from datasets.annotations.labels import read_label
from datasets.annotations.shapes import Bitmap
from datasets.text_file import read_annotation_text
from segdec.images import decode_image, decode_mask_values, read_file
from segdec.runtime.label_names import is_good

BACKGROUND, IGNORE_LABEL = "background", "__ignore__"
IGNORED_INDEX = 255
IGNORED_COLOUR = (224, 224, 192)
"""Index 255 of the palette of Pascal VOC."""

LABEL_MAP = "labelmap.txt"
"""CVAT's list: a line `label:red,green,blue:parts:actions` for each class."""
NAME_LISTS = ("class_names.txt", "labels.txt")
"""LabelMe's lists: a name in each line, first `__ignore__` (optional), then the background."""

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class MaskLabels:
    """The classes in masks.

    Attributes:
        source: The file that names them.
        indices: Index → label, with the background.
        colours: Colour → label, for masks in colours.
    """

    source: str
    indices: Mapping[int, str]
    colours: Mapping[Colour, str]


def read_labels(path: Path) -> MaskLabels:
    """Reads `labelmap.txt` of CVAT or `class_names.txt` of LabelMe.

    Raises:
        ValueError: If a line is invalid.
        DatasetError: If the file cannot be read.
    """
    lines = [line.strip() for line in read_annotation_text(path)[0].splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if path.name == LABEL_MAP:
        entries = [line.split(":") for line in lines]
        colours = {_colour(entry[1]): entry[0] for entry in entries if len(entry) > 1 and entry[1]}
        return MaskLabels(path.name, dict(enumerate(entry[0] for entry in entries)), colours)
    names = lines[1:] if lines[:1] == [IGNORE_LABEL] else lines
    first = 0 if names and is_background(names[0]) else 1
    return MaskLabels(path.name, dict(enumerate(names, start=first)), {})


def read_class_mask(path: Path, labels: MaskLabels | None) -> tuple[tuple[int, int], list[LabelledShape]]:
    """Reads a mask: its height and width, and one shape for each class in it.

    Without `labels` the classes are `class_1`, `class_2`, …. Index 255 is ignored.

    Raises:
        ValueError: If the mask has a value without a name.
        ImageError: If the mask cannot be read.
    """
    data = read_file(path)
    if labels is not None and labels.colours:
        named = {_code(colour): label for colour, label in labels.colours.items()}
        named = {_code(IGNORED_COLOUR): IGNORE_LABEL, **named}
        red, *_, blue = channels = cv2.split(decode_image(data, str(path)).pixels.astype(np.int32))
        codes = _code((red, channels[len(channels) // 2], blue))
    else:
        indices = {n: f"class_{n}" for n in range(1, IGNORED_INDEX)} if labels is None else labels.indices
        named = {0: BACKGROUND, IGNORED_INDEX: IGNORE_LABEL, **indices}
        codes = decode_mask_values(data, str(path), classes=named).astype(np.int32)
    height, width = codes.shape
    return (height, width), list(_shapes(codes, named))


def _shapes(codes: NDArray[np.int32], named: Mapping[int, str]) -> Iterator[LabelledShape]:
    for code in np.unique(codes).tolist():
        if code not in named:
            value = f"the colour {_colour_of(code)}" if max(named) > IGNORED_INDEX else f"the value {code}"
            raise ValueError(
                f"the mask has {value}, which is not the name of a class. Add it to the list of classes"
            )
        if not is_background(named[code]):
            part = (codes == code).view(np.uint8)
            x, y, width, height = cv2.boundingRect(part)
            bitmap = Bitmap.from_mask(x, y, part[y : y + height, x : x + width])
            yield LabelledShape(read_label(named[code]), bitmap)


def is_background(label: str) -> bool:
    """Returns whether a class is the background, such as `_background_`."""
    return label.strip("_").lower() == BACKGROUND or is_good(label)


def _colour(text: str) -> Colour:
    """Reads `red,green,blue`."""
    values = text.split(",")
    if len(values) != 3 or not all(value.strip().isdecimal() for value in values):
        raise ValueError(f"{text!r:.40} is not a colour. Expected red,green,blue")
    red, green, blue = map(int, values)
    return red, green, blue


def _code(colour: Any) -> Any:
    """A colour as one number; also for arrays."""
    red, green, blue = colour
    return red << 16 | green << 8 | blue


def _colour_of(code: int) -> Colour:
    return code >> 16, code >> 8 & 255, code & 255
