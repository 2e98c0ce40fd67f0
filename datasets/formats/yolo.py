"""YOLO: a text file for each photograph, as Ultralytics, Roboflow, CVAT, Label Studio and LabelImg write it.

    data.yaml                                        names of the classes, folders or lists of the splits
    images/train/0001.jpg, labels/train/0001.txt     or train/images/ and train/labels/
    obj.names, obj_train_data/0001.txt               beside the photograph

The text file of a photograph has its stem. Each row is a class index and the fractions of a box (supervision
`box`), or of the points of a polygon or oriented box. An empty file means good. The names of the classes are
in `data.yaml`, `classes.txt`, `obj.names` or alike, in the folder of the text file or one above; without them
they are `class_0`, `class_1`, ….

Reference:
    https://docs.ultralytics.com/datasets
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from datasets.annotations.labelled_shape import LabelledShape
from datasets.annotations.labels import read_label
from datasets.annotations.yolo_rows import is_row, read_row
from datasets.formats.annotation_format import AnnotationFormat
from datasets.formats.annotation_reader import AnnotationReader
from datasets.sample import Split
from datasets.text_file import UTF8, parse_json, read_annotation_text
from segdec.errors import DatasetError

LABELS, IMAGES = "labels", "images"
NAME_FILES = ("classes.txt", "obj.names", "_darknet.labels", "predefined_classes.txt")
"""Files with a class in each line."""
NOTES_FILE = "notes.json"
"""Label Studio's file with the classes."""

YAML_SUFFIXES = frozenset({".yaml", ".yml"})

SPLIT_KEYS: dict[str, Split] = {"train": "train", "val": "val", "valid": "val", "test": "test"}

MATCHED_LINES = 20


@dataclass(frozen=True)
class ClassNames:
    """The names of the classes: file, name of each index, and whether the data set has keypoints."""

    source: Path
    names: dict[int, str]
    keypoints: bool = False


def _matches(path: Path, content: Any) -> bool:
    if isinstance(content, dict):
        keys = {"names"} if path.suffix.lower() in YAML_SUFFIXES else {"categories", "info"}
        return keys <= content.keys() and (path.name == NOTES_FILE or "names" in keys)
    if not isinstance(content, str) or path.name in NAME_FILES or path.suffix.lower() != ".txt":
        return False
    return _in_labels(path) or not content.strip() or any(map(is_row, content.splitlines()[:MATCHED_LINES]))


def _read(reader: AnnotationReader, path: Path, content: Any) -> None:
    if isinstance(content, dict):
        _read_splits(reader, path, content)
        return
    rows = [(number, line) for number, line in enumerate(content.splitlines(), start=1) if line.strip()]
    with reader.problem_at(str(path), *reader.related_names(path), advice=""):
        try:
            photograph = _photograph(reader, path)
        except ValueError:
            if rows and (_in_labels(path) or reader.related_names(path)):
                raise
            return  # another text file
        _annotate(reader, path, photograph, rows)


FORMAT = AnnotationFormat(
    "yolo",
    "text files of YOLO",
    "Correct it in the labelling tool and export again.",
    _matches,
    _read,
    lists_photographs=False,
)


def _in_labels(path: Path) -> bool:
    folder = path.parent.name.lower()
    return LABELS in map(str.lower, path.parent.parts) or (folder[:4] == "obj_" and folder[-5:] == "_data")


def _photograph(reader: AnnotationReader, path: Path) -> Path:
    """Returns the photograph of a text file: beside it, in `images` instead of `labels`, or elsewhere."""
    beside = reader.photographs.beside(path)
    if len(beside) == 1:
        return beside[0]
    folders = path.parent.relative_to(reader.root).parts
    folders = tuple(IMAGES if folder.lower() == LABELS else folder for folder in folders)
    return reader.photographs.find("/".join((*folders, path.stem)), path.parent, is_stem=True)


def _annotate(reader: AnnotationReader, path: Path, photograph: Path, rows: list[tuple[int, str]]) -> None:
    annotation = reader.add(photograph, str(path))
    if not rows:
        return
    with reader.problem_at(str(path), annotation.name):
        reader.set_size(annotation, None, None)
        annotation.drawn_on = "fractions"
        size = annotation.height, annotation.width
        classes = _class_names(reader, path.parent)
        keypoints = classes is not None and classes.keypoints
        for number, line in rows:
            place = f"{path}, line {number}"
            with reader.drop_at(place, annotation):
                index, shape, is_box = read_row(line, *size, keypoints=keypoints)
                reader.add_shape(annotation, place, LabelledShape(_label(classes, index), shape, is_box))


# === Classes ===


def _label(classes: ClassNames | None, index: int) -> str:
    if classes is None:
        return f"class_{index}"
    if index not in classes.names:
        raise ValueError(
            f"there is no class {index}: {classes.source.name} names {len(classes.names)} classes, from "
            f"{min(classes.names)} to {max(classes.names)}"
        )
    return read_label(classes.names[index])


def _class_names(reader: AnnotationReader, folder: Path) -> ClassNames | None:
    """The names of the classes for the text files in `folder`, from there or a folder above."""
    if folder not in reader.cache:
        own = next(_name_files(reader, folder), None)
        if own is None and folder != reader.root and folder.is_relative_to(reader.root):
            own = _class_names(reader, folder.parent)
        elif own is None:
            reader.notes.append(
                "YOLO: no file names the classes, so they are called class_0, class_1, …. Add a classes.txt "
                "with a name in each line to the folder of the data set."
            )
        reader.cache[folder] = own
    known: ClassNames | None = reader.cache[folder]
    return known


def _name_files(reader: AnnotationReader, folder: Path) -> Iterator[ClassNames]:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    for path in files:
        if path.suffix.lower() in YAML_SUFFIXES:
            content = read_yaml(path)
            if isinstance(content, dict) and "names" in content:
                yield ClassNames(path, _numbered(path, content["names"]), bool(content.get("kpt_shape")))
    for path in files:
        if path.name in NAME_FILES or path.suffix == ".names":
            text, encoding = read_annotation_text(path)
            if encoding != UTF8:
                reader.notes.append(f"{path} is not UTF-8; it was read as {encoding}.")
            yield ClassNames(path, _numbered(path, text.rstrip().splitlines()))
    for path in files:
        if path.name == NOTES_FILE:
            content = parse_json(read_annotation_text(path)[0], path)
            listed = content.get("categories") if isinstance(content, dict) else None
            if isinstance(listed, list) and all(isinstance(each, dict) for each in listed):
                yield ClassNames(path, _numbered(path, {each.get("id"): each.get("name") for each in listed}))


def _numbered(path: Path, names: object) -> dict[int, str]:
    """Index → name, from a list or an object; DatasetError if it is neither."""
    pairs = enumerate(names) if isinstance(names, list) else names.items() if isinstance(names, dict) else ()
    try:
        numbered = {int(index): name for index, name in pairs}
    except (TypeError, ValueError):
        numbered = {}
    if not numbered:
        raise DatasetError(f"{path} holds no class names. Expected a list of names, or index: name.")
    return numbered


def read_yaml(path: Path) -> Any:
    """Reads a YAML file; all scalars are strings: the class `NO` is not false. DatasetError if invalid."""
    try:
        return yaml.load(read_annotation_text(path)[0], Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise DatasetError(f"{path}{line}: invalid YAML ({getattr(error, 'problem', error)}).") from error


# === Splits ===


def _read_splits(reader: AnnotationReader, path: Path, content: dict[str, Any]) -> None:
    """Assigns the splits of `data.yaml`; a photograph in several has the first one."""
    above = _parts(str(content.get("path", "")))
    for key, split in SPLIT_KEYS.items():
        values = content.get(key)
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, str) and value.strip():
                for name in _listed(reader, path, [*above, *_parts(value)]):
                    reader.splits.setdefault(name, split)


def _parts(written: str) -> list[str]:
    """The folders and the name of a path of any system, without `.` and `..`."""
    return [part for part in PurePosixPath(written.strip().replace("\\", "/")).parts if part.strip("./")]


def _listed(reader: AnnotationReader, path: Path, parts: list[str]) -> Iterator[str]:
    """Names of the items in a folder or list, whose path may be of another machine."""
    if parts and parts[-1].endswith(".txt"):
        lists = [path.parent.joinpath(*parts[-count:]) for count in range(len(parts), 0, -1)]
        yield from next((_named(reader, each) for each in lists if each.is_file()), ())
        return
    for photograph in reader.photographs.photographs:
        folder = photograph.parent
        if folder.is_relative_to(path.parent) and _is_below(folder.relative_to(path.parent).parts, parts):
            yield reader.name_of(photograph)


def _named(reader: AnnotationReader, path: Path) -> Iterator[str]:
    for line in read_annotation_text(path)[0].splitlines():
        with suppress(ValueError):  # the photograph is not part of the data set
            yield reader.name_of(reader.photographs.find(line, path.parent))


def _is_below(folder: tuple[str, ...], parts: list[str]) -> bool:
    """Whether a folder, or one above it, is the end of the path `parts`."""
    return any(parts[-count:] == list(folder[:count]) for count in range(1, len(folder) + 1))
