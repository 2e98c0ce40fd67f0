"""Interprets one entry of a manifest."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

from datasets.annotations.drawn_mask import DrawnMask, Shape
from datasets.annotations.label_meanings import LabelMeanings, raise_if_unclear
from datasets.annotations.labels import GOOD, read_label
from datasets.annotations.shapes import Box, Polygon, check_inside, read_points
from datasets.file_bounds import path_inside
from datasets.layouts.mask_pairing import LOSSY_SUFFIXES
from datasets.reading_options import ReadingOptions
from datasets.sample import DrawnOn, Supervision
from datasets.splitting import SPLIT_WORDS
from datasets.supervision import WORDS
from segdec.errors import ImageError
from segdec.images import MAX_PIXEL_LIMIT, ImageFile, read_size
from segdec.runtime.label_names import is_ignored
from segdec.runtime.suggestions import nearest_name

Values = dict[str, object]
Word = TypeVar("Word", bound=str)


@dataclass(frozen=True)
class ManifestRow:
    """One photograph of a manifest; it becomes a `DataSetItem` when all classes are known."""

    line: int
    name: str
    image: Path
    label: str
    mask: ImageFile | None
    supervision: Supervision
    split: str | None
    """A key of `SPLIT_WORDS`."""
    group: str
    class_valued: bool = False
    """Whether the values of the mask are positions in the list of classes."""
    drawn_on: DrawnOn = "size"
    """What shows whether the mask was drawn before the EXIF rotation; a `class_mask` is always upright."""
    dropped: tuple[str, ...] = ()
    """Texts about shapes that are ignored or cut off."""


def read_row(
    line: int,
    values: Values,
    manifest: Path,
    name: str,
    meanings: LabelMeanings,
    reading: ReadingOptions,
    bounds: Path | None = None,
) -> ManifestRow:
    """Reads the row of an entry, `name` from `read_name`.

    Raises:
        FileOutsideError: If a file lies outside of `bounds`.
        CodedDatasetError: If the label may mean good.
        ValueError: If the entry is invalid.
    """
    folder = manifest.parent
    label = read_label(values.get("label", ""))
    raise_if_unclear([label], meanings)
    if label in meanings.good:
        label = GOOD
    if is_ignored(label):
        raise ValueError(f"the label '{label}' states no class. Remove the line, or rename the class")
    image = _existing(values, "image", folder, bounds)
    dropped: list[str] = []
    boxes = _usable(_listed(values, "box", "boxes"), Box.from_list, dropped)
    polygons = _usable(_listed(values, "polygon", "polygons"), _polygon, dropped)
    masks = [column for column in ("mask", "class_mask") if column in values]
    given = {**{f"a {column}": True for column in masks}, "boxes": boxes, "polygons": polygons}
    kinds = [what for what, values_given in given.items() if values_given]
    if len(kinds) > 1:
        raise ValueError(f"there are {' and '.join(kinds)}; keep one of them")
    if label == GOOD and (boxes or polygons):
        raise ValueError(f"the photograph is good, but has {kinds[0]}; change the label or remove them")
    mask: ImageFile | None = None
    if masks:
        mask = _existing_mask(values, masks[0], folder, bounds)
    elif boxes or polygons:
        mask = _draw(image, f"{manifest}, line {line}", [*boxes, *polygons], dropped, reading)
    usual: Supervision = "box" if boxes else "label" if mask is None and label != GOOD else "mask"
    supervision = _word(values, "supervision", WORDS) or usual
    if supervision != usual and usual == "label":
        raise ValueError(
            f"the supervision is '{supervision}', but a mask is missing; add one or write 'label'"
        )
    return ManifestRow(
        line,
        name,
        image,
        label,
        mask,
        supervision,
        split=_word(values, "split", tuple(SPLIT_WORDS)),
        group=_text(values, "group") or name,
        class_valued="class_mask" in masks,
        drawn_on="upright" if "class_mask" in masks else "size" if masks else "pixels",
        dropped=tuple(dropped),
    )


def read_name(values: Values, folder: Path) -> str:
    """Returns the name of the item; ValueError if there is neither a name nor an image."""
    given, image = _text(values, "name"), _text(values, "image")
    if given:
        return given
    if not image:
        raise ValueError("the image is missing")
    root, path = Path(os.path.normpath(folder)), Path(os.path.normpath(folder / image.replace("\\", "/")))
    inside = path.relative_to(root) if path.is_relative_to(root) else path
    parts = [part for part in inside.parts if part not in {"..", inside.anchor}]
    return str(PurePosixPath(*parts).with_suffix(""))


# === Files ===


def _existing(values: Values, column: str, folder: Path, bounds: Path | None) -> Path:
    path = folder / _text(values, column).replace("\\", "/")  # Windows paths
    if bounds is not None:
        path = path_inside(path, bounds)
    try:
        exists = path.is_file()
    except OSError:  # a name that is too long, or a folder without search permission
        exists = False
    if not exists:
        raise ValueError(f"the {column} {path} does not exist; paths are relative to the manifest's folder")
    return path


def _existing_mask(values: Values, column: str, folder: Path, bounds: Path | None) -> Path:
    path = _existing(values, column, folder, bounds)
    if path.suffix.lower() in LOSSY_SUFFIXES:
        raise ValueError(f"the {column} {path} has a lossy type, which changes values; save it as PNG")
    return path


# === Shapes ===


def _usable(listed: list[object], read: Callable[[object], Shape], dropped: list[str]) -> list[Shape]:
    """The shapes that can be drawn; ValueError if there are only others. Errors of others are `dropped`."""
    shapes = []
    for value in listed:
        try:
            shapes.append(read(value))
        except ValueError as error:
            dropped.append(str(error))
    if listed and not shapes:
        raise ValueError(dropped[-1])
    return shapes


def _polygon(points: object) -> Polygon:
    paired = isinstance(points, list) and points and isinstance(points[0], list)
    return Polygon(read_points(points)) if paired else Polygon.from_flat(points)


def _listed(values: Values, one: str, several: str) -> list[object]:
    """The shapes of two columns, as lists of numbers; strings hold shapes separated by `;`."""
    written: list[object] = []
    for column in (one, several):
        value = values.get(column)
        if isinstance(value, str):
            written += [_numbers(text) for text in value.split(";") if text.strip()]
        elif value is not None and column == one:
            written.append(value)
        elif isinstance(value, list):
            written += value
        elif value is not None:
            raise ValueError(f"the {several} are not a list")
    return written


def _numbers(text: str) -> list[float]:
    texts = re.split(r"\s*,\s*|\s+", text.strip())
    try:
        return [float(number) for number in texts]
    except ValueError:
        raise ValueError(f"{text.strip()!r:.40} is not a list of numbers") from None


def _draw(
    image: Path, place: str, shapes: list[Shape], dropped: list[str], reading: ReadingOptions
) -> DrawnMask:
    is_stored = bool(reading.annotations_before_rotation)
    try:  # whoever draws it has the limit
        height, width = read_size(image, max_pixels=MAX_PIXEL_LIMIT, is_stored=is_stored)
    except ImageError as error:
        raise ValueError(str(error).rstrip(".")) from error
    drawn = []
    for shape in shapes:
        try:
            if outside := check_inside(shape, height, width):
                dropped.append(f"{outside}: this part is cut off")
            drawn.append(shape)
        except ValueError as error:
            dropped.append(str(error))
    if not drawn:
        raise ValueError(dropped[-1])
    return DrawnMask(place, height, width, tuple(drawn))


# === Words ===


def _word(values: Values, column: str, words: tuple[Word, ...]) -> Word | None:
    """The one of `words` that is in the column; None if it is empty."""
    word = _text(values, column)
    known = next((each for each in words if each == word), None)
    if word and known is None:
        raise ValueError(
            f"the {column} '{word}' is not one of {', '.join(words)} (did you mean "
            f"'{nearest_name(word, words)}'?)"
        )
    return known


def _text(values: Values, column: str) -> str:
    """The text of a column without surrounding spaces, empty without a value; converts numbers."""
    value = values.get(column, "")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(f"the {column} {value!r:.40} is not a single line of text")
    return value.strip()
