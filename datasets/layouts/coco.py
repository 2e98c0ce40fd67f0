"""COCO instances: one JSON file for all photographs.

    root/annotations.json       or the only JSON file in the root or in root/annotations; the root may be
                                the JSON file itself
    root/images/0001.jpg        `file_name` is searched here and in the root, and for
                                `instances_train.json` also in root/images/train and root/train
    root/splits.txt             optional; without it 60 % train, 20 % val and 20 % test

Photographs in `images` without an annotation are good; other files are ignored. Segmentations are polygons or
run lengths (lists or compressed); an annotation without one is drawn as its `bbox`, with the supervision
`box`. Crowds are drawn like others. The classes are the names of the categories with annotations; categories
with one name are one class, and `good` and `ok` mark no defect. The class of a photograph is the one with the
largest area.

Reference:
    https://cocodataset.org/#format-data
"""

import os
import re
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from datasets.annotations.coco_shapes import read_shapes
from datasets.annotations.labelled_shape import LabelledShape, read_annotated_size
from datasets.annotations.labels import read_label
from datasets.layouts.annotation_records import AnnotationRecord, build_dataset, problem
from datasets.layouts.listing import files
from datasets.layouts.photograph_tree import record_name
from datasets.sample import Dataset, Problem
from datasets.text_file import read_json
from segdec.errors import DatasetError

FILE = "annotations.json"
FOLDER = "annotations"
PHOTOGRAPHS = "images"
PREFIX = "instances_"
LISTS = ("images", "annotations", "categories")

_PLAIN_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


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
    return _CocoFile(path, folder, _names(path, categories)).read(images, annotations)


def _find(root: Path) -> tuple[Path, Path]:
    """The JSON file, and the folder of relative file names."""
    if root.is_file():
        return root, root.parent.parent if root.parent.name == FOLDER else root.parent
    found = _json_files(root)
    if root / FILE in found:
        found = [root / FILE]
    elif not found and (root / FOLDER).is_dir():
        found = _json_files(root / FOLDER)
    if len(found) != 1:
        names = ", ".join(path.name for path in found)
        raise DatasetError(
            f"{root} holds {f'the JSON files {names}' if found else 'no JSON file'}. Expected {root / FILE} "
            "or a single JSON file: give the file itself as the root."
        )
    return found[0], root


def _json_files(folder: Path) -> list[Path]:
    return [path for path in files(folder) if path.suffix.lower() == ".json"]


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


def _names(path: Path, categories: list[Any]) -> dict[object, str]:
    """Id → name of each category."""
    names: dict[object, str] = {}
    for number, category in enumerate(categories):
        place = f"{path}, categories[{number}]"
        try:
            key, name = _key(category, "id"), read_label(category.get("name"))
        except ValueError as error:
            raise DatasetError(f"{place}: {error}. Expected an id and a name: export it again.") from error
        if names.setdefault(key, name) != name:
            raise DatasetError(f"{place}: '{names[key]}' and '{name}' have the id {key}. Change one.")
    return names


class _CocoFile:
    """Reads the lists of one file and collects problems."""

    def __init__(self, path: Path, folder: Path, names: dict[object, str]) -> None:
        self._path = path
        self._folder = Path(os.path.normpath(folder))
        self._names = names
        subset = path.stem.removeprefix(PREFIX) if path.stem.startswith(PREFIX) else ""
        self._middles = ("", PHOTOGRAPHS, *((f"{PHOTOGRAPHS}/{subset}", subset) if subset else ()))
        self._problems: list[Problem] = []
        self._photographs: dict[object, AnnotationRecord] = {}
        self._shapes: dict[object, list[LabelledShape]] = defaultdict(list)
        self._broken: set[object] = set()
        """Ids of images with a problem; their annotations are ignored."""

    def read(self, images: list[Any], annotations: list[Any]) -> Dataset:
        shared = _shared_ids(images)
        for number, entry in enumerate(images):
            self._read_image(entry, f"{self._path}, images[{number}]", shared)
        shared = _shared_ids(annotations)
        for number, entry in enumerate(annotations):
            self._read_annotation(entry, f"{self._path}, annotations[{number}]", shared)
        found = [
            replace(photograph, shapes=tuple(self._shapes[key]))
            for key, photograph in self._photographs.items()
        ]
        return build_dataset(self._folder, found, self._problems)

    def _read_image(self, entry: Any, place: str, shared: dict[object, int]) -> None:
        name = ""
        try:
            key = _key(entry, "id")
            self._broken.add(key)
            path = self._photograph(entry.get("file_name"))
            name = record_name(self._folder, path)
            if key in shared:
                raise ValueError(f"{shared[key]} images have the id {key!r:.40}")
            if not path.is_file():
                raise ValueError(f"the photograph {path} does not exist")
            height, width = read_annotated_size(entry.get("height"), entry.get("width"))
        except (ValueError, OSError) as error:
            self._complain(place, error, name)
        else:
            self._broken.discard(key)
            self._photographs[key] = AnnotationRecord(path, place, height, width)

    def _photograph(self, file_name: object) -> Path:
        """The path of a photograph, which need not exist; ValueError if it is not below the folder."""
        if not isinstance(file_name, str) or not file_name.strip() or not file_name.isprintable():
            raise ValueError(f"the file_name {file_name!r:.40} is not a file name")
        relative = file_name.strip().replace("\\", "/")  # as Windows writes it
        places = [Path(os.path.normpath(self._folder / middle / relative)) for middle in self._middles]
        for place in places:
            if not place.is_relative_to(self._folder) or ".." in place.relative_to(self._folder).parts:
                raise ValueError(f"the file_name {file_name} is outside {self._folder}")
        return next((place for place in places if place.is_file()), places[1])

    def _read_annotation(self, entry: Any, place: str, shared: dict[object, int]) -> None:
        name = ""
        try:
            image_id = _key(entry, "image_id")
            if image_id in self._broken:
                return
            photograph = self._photographs.get(image_id)
            if photograph is None:
                raise ValueError(f"no image has the id {image_id!r:.40}")
            name = record_name(self._folder, photograph.photograph)
            key = _key(entry, "id") if "id" in entry else None
            if key in shared:
                raise ValueError(f"{shared[key]} annotations have the id {key!r:.40}")
            category_id = _key(entry, "category_id")
            if category_id not in self._names:
                raise ValueError(f"no category has the id {category_id!r:.40}")
            label = self._names[category_id]
            self._shapes[image_id] += read_shapes(entry, label, photograph.height, photograph.width)
        except ValueError as error:
            self._complain(place, error, name)

    def _complain(self, place: str, error: Exception, name: str) -> None:
        self._problems.append(problem(place, f"{error}. Correct the entry, or export again.", name))


def _shared_ids(entries: list[Any]) -> dict[object, int]:
    """Returns each repeated id with its count."""
    counts: Counter[object] = Counter()
    for entry in entries:
        with suppress(ValueError):  # reported when the entry is read
            counts[_key(entry, "id")] += 1
    return {key: count for key, count in counts.items() if count > 1}


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
