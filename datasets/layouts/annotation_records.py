"""Converts the annotations of all tools to records.

A photograph without a defect is good. Its shapes make the mask, and its class is the one with the largest
area (`largest_class`). With several classes the mask holds the class of each pixel, and the smaller of two
overlapping shapes is on top. A mask with a rectangle in it has the supervision `box`. Without shapes, the
label of the photograph decides, with the supervision `label`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from datasets.annotations.class_values import draw_parts
from datasets.annotations.labelled_shape import LabelledShape, largest_class
from datasets.annotations.labels import class_names, is_good
from datasets.layouts.photograph_tree import record_name
from datasets.layouts.split_assignment import assign_splits
from datasets.sample import Dataset, Problem, Record, Supervision

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class AnnotationRecord:
    """The annotation of one photograph; `build_dataset` creates its `Record` when all classes are known.

    Attributes:
        photograph: The file.
        place: File and entry of the annotation.
        height: Height of the photograph in the annotation tool, px.
        width: Width of the photograph in the annotation tool, px.
        shapes: Drawn shapes with labels.
        labels: Labels of the whole photograph.
    """

    photograph: Path
    place: str
    height: int = 0
    width: int = 0
    shapes: tuple[LabelledShape, ...] = ()
    labels: tuple[str, ...] = ()


def read_shapes(
    entries: Iterable[tuple[str, Entry]], read: Callable[[Entry], LabelledShape | None], name: str, tool: str
) -> tuple[tuple[LabelledShape, ...], list[Problem]]:
    """Returns the shapes of the entries, and a problem for each that cannot be drawn.

    Args:
        entries: Location and content of each entry.
        read: Reads the shape from the content; raises ValueError if it is invalid.
        name: Name of the record.
        tool: Name of the annotation tool.
    """
    shapes, problems = [], []
    for place, entry in entries:
        try:
            shape = read(entry)
        except ValueError as error:
            problems.append(problem(place, f"{error}. Correct it in {tool} and export again.", name))
        else:
            shapes += [shape] if shape else []
    return tuple(shapes), problems


def problem(place: str, text: str, name: str = "") -> Problem:
    """Creates a problem; its text gets an upper-case first letter."""
    return Problem(place, text[:1].upper() + text[1:], name)


def build_dataset(
    root: Path, annotations: Sequence[AnnotationRecord], problems: Iterable[Problem]
) -> Dataset:
    """Builds the data set, with the split of `splits.txt` in `root` or the default split.

    Args:
        root: Folder of the data set.
        annotations: One for each photograph. Two annotations of one photograph, or two photographs with one
            name, are problems.
        problems: Problems found so far; their photographs are left out.

    Raises:
        DatasetError: If the split file is invalid.
    """
    found = [*problems, *_twice(root, annotations)]
    broken = {each.name for each in found}
    classes = class_names(label for each in annotations for label in _labels(each))
    records = []
    for annotation in annotations:
        name = record_name(root, annotation.photograph)
        if name in broken:
            continue
        try:
            records.append(_record(name, annotation, classes))
        except ValueError as error:
            found.append(problem(annotation.place, f"{error}.", name))
    dataset = Dataset(classes, tuple(sorted(records, key=lambda record: record.name)), tuple(found))
    return assign_splits(dataset, root)


def _twice(root: Path, annotations: Sequence[AnnotationRecord]) -> Iterable[Problem]:
    """Yields a problem for each photograph with two annotations, and each name of two photographs."""
    by_name: dict[str, list[AnnotationRecord]] = defaultdict(list)
    for annotation in annotations:
        by_name[record_name(root, annotation.photograph)].append(annotation)
    for name, group in by_name.items():
        if len(group) == 1:
            continue
        places = " and ".join(each.place for each in group)
        photographs = sorted({str(each.photograph) for each in group})
        if len(photographs) == 1:
            yield Problem(
                places, f"The photograph {photographs[0]} has {len(group)} annotations. Keep one.", name
            )
        else:
            text = f"Two photographs have the name '{name}': {' and '.join(photographs)}. Rename one of them."
            yield Problem(photographs[1], text, name)


def _defects(annotation: AnnotationRecord) -> list[LabelledShape]:
    return [shape for shape in annotation.shapes if not is_good(shape.label)]


def _labels(annotation: AnnotationRecord) -> set[str]:
    """The labels of the defects: those of the shapes, else those of the photograph."""
    drawn = {defect.label for defect in _defects(annotation)}
    return drawn or {label for label in annotation.labels if not is_good(label)}


def _label(defects: Sequence[LabelledShape], classes: tuple[str, ...]) -> int:
    """The class of the largest area; areas are not computed for a single class."""
    labels = {defect.label for defect in defects}
    if len(labels) == 1:
        return classes.index(labels.pop())
    return largest_class((classes.index(defect.label), defect.shape) for defect in defects)


def _record(name: str, annotation: AnnotationRecord, classes: tuple[str, ...]) -> Record:
    """The record; ValueError if shapes and labels contradict each other."""
    defects = _defects(annotation)
    said_good = any(is_good(label) for label in annotation.labels)
    others = sorted({label for label in annotation.labels if not is_good(label)})
    supervision: Supervision = "mask"
    mask, values, label = None, None, 0
    if said_good and (defects or others):
        marked = sorted({defect.label for defect in defects}.union(others))
        raise ValueError(f"The photograph has the labels good and {', '.join(marked)}. Keep one of the two")
    if defects:
        parts = [(classes.index(defect.label), defect.shape) for defect in defects]
        mask, values = draw_parts(annotation.place, annotation.height, annotation.width, parts)
        label = _label(defects, classes)
        supervision = "box" if any(defect.is_box for defect in defects) else "mask"
    elif others:
        if len(others) > 1:
            raise ValueError(
                f"The photograph has the labels {' and '.join(others)}, and no shapes to compare. Keep one "
                "label, or draw the defects"
            )
        label, supervision = classes.index(others[0]), "label"
    return Record(
        name,
        annotation.photograph,
        mask,
        label,
        group=name,
        supervision=supervision,
        mask_values=values,
    )
