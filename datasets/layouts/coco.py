"""COCO instances: one JSON file for all photographs.

    root/annotations.json       or the only JSON file in the root or in root/annotations; the root may be
                                the JSON file itself
    root/images/0001.jpg        `file_name` is searched here and in the root, and for
                                `instances_train.json` also in root/images/train and root/train
    root/splits.txt             optional; without it 60 % train, 20 % val and 20 % test

Photographs in `images` without an annotation are good; other files are ignored. Segmentations are polygons or
run lengths (lists or compressed); an annotation without one is drawn as its `bbox`, with the supervision
`box`. Crowds are drawn like others. The classes are the names of the categories with annotations; categories
of the same name are one class; `good` and `ok` mark no defect. The class of a photograph is the one with the
largest area.

Reference:
    https://cocodataset.org/#format-data
"""

import os
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from datasets.annotations.coco_shapes import read_shapes
from datasets.annotations.labelled_shape import read_annotated_size
from datasets.annotations.labels import read_label
from datasets.layouts.annotation_records import AnnotationReader, AnnotationRecord
from datasets.layouts.listing import files, record_name
from datasets.sample import Dataset
from datasets.text_file import read_json
from segdec.errors import DatasetError

FILE = "annotations.json"
FOLDER = "annotations"
PHOTOGRAPHS = "images"
PREFIX = "instances_"
LISTS = ("images", "annotations", "categories")

_PLAIN_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")

Photographs = dict[int | str, AnnotationRecord | None]
"""Image id → annotation of the photograph; None for an image with a problem."""


def index(root: Path) -> Dataset:
    """Lists the photographs of the COCO file at `root`, a folder or the file itself.

    Problems are photographs that do not exist or are listed twice, repeated ids, annotations of unknown
    photographs or categories, and shapes that cannot be drawn.

    Raises:
        DatasetError: If there is no such file or several, a list is missing, a category or `splits.txt` is
            invalid.
    """
    path, folder = _find(root)
    images, annotations, categories = _lists(path)
    names = _category_names(path, categories)
    found = AnnotationReader(Path(os.path.normpath(folder)), "Correct the entry, or export again.")
    photographs = _read_images(found, path, images)
    _read_annotations(found, path, annotations, photographs, names)
    return found.dataset()


def _find(root: Path) -> tuple[Path, Path]:
    """The JSON file, and the folder of relative file names."""
    if root.is_file():
        return root, root.parent.parent if root.parent.name == FOLDER else root.parent
    found = files(root, ".json")
    if root / FILE in found:
        found = [root / FILE]
    elif not found and (root / FOLDER).is_dir():
        found = files(root / FOLDER, ".json")
    if len(found) != 1:
        names = ", ".join(path.name for path in found)
        raise DatasetError(
            f"{root} holds {f'the JSON files {names}' if found else 'no JSON file'}. Expected {root / FILE} "
            "or a single JSON file: give the file itself as the root."
        )
    return found[0], root


def _lists(path: Path) -> tuple[list[Any], list[Any], list[Any]]:
    content = read_json(path)
    held = content if isinstance(content, dict) else {}
    missing = [name for name in LISTS if not isinstance(held.get(name), list)]
    if missing or not held["images"]:
        lacks = f"has no list {' and no list '.join(missing)}" if missing else "lists no image"
        raise DatasetError(
            f"{path} {lacks}. Expected COCO instances with {', '.join(LISTS)}: export them again."
        )
    return held["images"], held["annotations"], held["categories"]


def _category_names(path: Path, categories: list[Any]) -> dict[int | str, str]:
    """Id → name of each category."""
    names: dict[int | str, str] = {}
    for number, category in enumerate(categories):
        place = f"{path}, categories[{number}]"
        try:
            key, name = _key(category, "id"), read_label(category.get("name"))
        except ValueError as error:
            raise DatasetError(f"{place}: {error}. Expected an id and a name: export it again.") from error
        if names.setdefault(key, name) != name:
            raise DatasetError(f"{place}: '{names[key]}' and '{name}' have the id {key}. Change one.")
    return names


def _read_images(found: AnnotationReader, path: Path, images: list[Any]) -> Photographs:
    subset = path.stem.removeprefix(PREFIX) if path.stem.startswith(PREFIX) else ""
    below = ("", PHOTOGRAPHS, *((f"{PHOTOGRAPHS}/{subset}", subset) if subset else ()))
    photographs: Photographs = {}
    counts = _count_ids(images)
    for number, entry in enumerate(images):
        place = f"{path}, images[{number}]"
        with found.problem_at(place):
            key = _key(entry, "id")
            photographs[key] = None
            photograph = _photograph(found.root, below, entry.get("file_name"))
            with found.problem_at(place, record_name(found.root, photograph)):
                if counts[key] > 1:
                    raise ValueError(f"{counts[key]} images have the id {key!r:.40}")
                if not photograph.is_file():
                    raise ValueError(f"the photograph {photograph} does not exist")
                size = read_annotated_size(entry.get("height"), entry.get("width"))
                photographs[key] = found.add(photograph, place, *size)
    return photographs


def _photograph(root: Path, folders: tuple[str, ...], file_name: object) -> Path:
    """The path of a photograph, which need not exist; ValueError if it is not below `root`."""
    if not isinstance(file_name, str) or not file_name.strip() or not file_name.isprintable():
        raise ValueError(f"the file_name {file_name!r:.40} is not a file name")
    relative = file_name.strip().replace("\\", "/")  # as Windows writes it
    places = [Path(os.path.normpath(root / folder / relative)) for folder in folders]
    for place in places:
        if not place.is_relative_to(root) or ".." in place.relative_to(root).parts:
            raise ValueError(f"the file_name {file_name} is outside {root}")
    return next((place for place in places if place.is_file()), places[1])


def _read_annotations(
    found: AnnotationReader,
    path: Path,
    annotations: list[Any],
    photographs: Photographs,
    names: dict[int | str, str],
) -> None:
    counts = _count_ids(annotations)
    for number, entry in enumerate(annotations):
        place = f"{path}, annotations[{number}]"
        with found.problem_at(place):
            image_id = _key(entry, "image_id")
            if image_id not in photographs:
                raise ValueError(f"no image has the id {image_id!r:.40}")
            photograph = photographs[image_id]
            if photograph is None:
                continue
            with found.problem_at(place, photograph.name):
                key = _key(entry, "id") if "id" in entry else None
                if counts[key] > 1:
                    raise ValueError(f"{counts[key]} annotations have the id {key!r:.40}")
                category_id = _key(entry, "category_id")
                if category_id not in names:
                    raise ValueError(f"no category has the id {category_id!r:.40}")
                label, height, width = names[category_id], photograph.height, photograph.width
                photograph.shapes += read_shapes(entry, label, height, width)


def _count_ids(entries: list[Any]) -> Counter[int | str | None]:
    counts: Counter[int | str | None] = Counter()
    for entry in entries:
        with suppress(ValueError):  # reported when the entry is read
            counts[_key(entry, "id")] += 1
    return counts


def _key(entry: Any, name: str) -> int | str:
    """The number or string under `name`; numbers may be written as strings."""
    if not isinstance(entry, dict):
        raise ValueError(f"{entry!r:.40} is not an object with the key {name}")
    value = entry.get(name)
    if isinstance(value, float) and value.is_integer():  # pandas writes these for columns with gaps
        return int(value)
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise ValueError(f"the {name} {value!r:.40} is neither a whole number nor a string")
    return int(value) if isinstance(value, str) and _PLAIN_NUMBER.fullmatch(value) else value
