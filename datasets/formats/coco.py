"""COCO instances: a JSON file with the annotations of many photographs.

    annotations.json                 any name; also several files, as annotations/instances_val.json
    train/_annotations.coco.json     as Roboflow writes it, beside the photographs
    labels.json, data/0001.jpg       as FiftyOne writes it

Photographs in `images` without an annotation are good. Segmentations are polygons or run lengths (lists or
compressed); an annotation without one is drawn as its `bbox`, with the supervision `box`. Crowds are drawn
like others. Categories of the same name are one class; those that mean good mark no defect. Repeated ids of
annotations are ignored: some tools count from 1 in each photograph.

Reference:
    https://cocodataset.org/#format-data
"""

import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from datasets.annotations.coco_shapes import read_box, read_shape, segments
from datasets.annotations.labels import read_label
from datasets.formats.annotation_format import AnnotationFormat
from datasets.formats.annotation_reader import AnnotationReader, FileAnnotation
from datasets.splitting import split_of_folder
from segdec.errors import DatasetError

PREFIX = "instances_"

_PLAIN_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")

Annotations = dict[int | str, FileAnnotation | None]
"""Image id → annotation of the photograph; None for an image with a problem."""


def _matches(_path: Path, content: Any) -> bool:
    if not isinstance(content, dict) or not isinstance(content.get("images"), list):
        return False
    return any(isinstance(content.get(name), list) for name in ("annotations", "categories"))


def _read(reader: AnnotationReader, path: Path, content: Any) -> None:
    with reader.problem_at(str(path)):
        if not isinstance(content.get("annotations"), list):
            raise ValueError("the file has no 'annotations', so it does not show which photographs are good")
        names = _category_names(path, content.get("categories") or _without_names(reader, path, content))
        photographs = _read_images(reader, path, content["images"])
        for number, entry in enumerate(content["annotations"]):
            _read_annotation(reader, f"{path}, annotations[{number}]", entry, photographs, names)


FORMAT = AnnotationFormat(
    "coco",
    "a JSON file with images, annotations and categories, as COCO, Roboflow, FiftyOne and CVAT write it",
    "Correct the entry, or export again.",
    _matches,
    _read,
)


def _without_names(reader: AnnotationReader, path: Path, content: dict[str, Any]) -> list[Any]:
    """Categories `class_1`, … for a file without any."""
    entries = [entry for entry in content["annotations"] if isinstance(entry, dict)]
    keys = sorted({str(entry["category_id"]) for entry in entries if "category_id" in entry})
    if keys:
        reader.notes.append(f"{path} has no 'categories', so the classes are called class_{keys[0]}, ….")
    return [{"id": key, "name": f"class_{key}"} for key in keys]


def _category_names(path: Path, categories: list[Any]) -> dict[int | str, str]:
    """Id → name of each category."""
    names: dict[int | str, str] = {}
    for number, category in enumerate(categories):
        place = f"{path}, categories[{number}]"
        try:
            key, name = _key(category, "id"), read_label(category.get("name"))
        except ValueError as error:
            raise DatasetError(f"{place}: {error}. Expected an id and a name") from error
        if names.setdefault(key, name) != name:
            raise DatasetError(f"{place}: '{names[key]}' and '{name}' have the id {key}. Change one")
    return names


def _read_images(reader: AnnotationReader, path: Path, images: list[Any]) -> Annotations:
    subset = path.stem.removeprefix(PREFIX) if path.stem.startswith(PREFIX) else ""
    split = split_of_folder(subset)
    photographs: Annotations = {}
    counts = _count_ids(images)
    for number, entry in enumerate(images):
        place = f"{path}, images[{number}]"
        with reader.problem_at(place):
            key = _key(entry, "id")
            photographs[key] = None
            photograph = reader.photographs.find(entry.get("file_name"), path.parent, [subset])
            annotation = reader.add(photograph, place, split=split)
            with reader.problem_at(place, annotation.name):
                if counts[key] > 1:
                    raise ValueError(f"{counts[key]} images have the id {key!r:.40}")
                reader.set_size(annotation, entry.get("height"), entry.get("width"))
                photographs[key] = annotation
    return photographs


def _read_annotation(
    reader: AnnotationReader, place: str, entry: Any, photographs: Annotations, names: dict[int | str, str]
) -> None:
    with reader.drop_at(place):
        image_id = _key(entry, "image_id")
        if image_id not in photographs:
            raise ValueError(f"no image has the id {image_id!r:.40}")
        annotation = photographs[image_id]
        if annotation is None:
            return
        with reader.drop_at(place, annotation):
            category_id = _key(entry, "category_id")
            if category_id not in names:
                raise ValueError(f"no category has the id {category_id!r:.40}")
            label, height, width = names[category_id], annotation.height, annotation.width
            parts = segments(entry)
            for segment in parts:
                with reader.drop_at(place, annotation):
                    reader.add_shape(annotation, place, read_shape(segment, label, height, width))
            if not parts:
                reader.add_shape(annotation, place, read_box(entry.get("bbox"), label))


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
