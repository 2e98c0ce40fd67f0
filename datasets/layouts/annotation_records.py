"""What an annotation tool says about photographs → records: what all tools have in common.

A photograph without a defect is good. Shapes make its mask, and its class is that of the largest area
(`largest_class`). Where they are of several classes the mask knows that of each pixel; where such shapes
overlap, the smaller one lies on top. A mask with a rectangle in it is as rough as one, so its supervision is
`box`. A label of the whole photograph counts where there is no shape: its supervision is `label`.
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
    """What a tool says about one photograph; `build_dataset` makes a `Record` of it, once all classes are known.

    Attributes:
        photograph: Its file.
        place: Where this is said: file and entry.
        height: Of the photograph, px, as the tool saw it.
        width: Of the photograph, px, as the tool saw it.
        shapes: What is drawn, with labels.
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
    """Returns the shape of each entry that has one, and the problem of each that cannot be drawn.

    Args:
        entries: Place and content of each.
        read: Makes a shape of a content; ValueError says what is wrong with it.
        name: The record's.
        tool: Where a person corrects it.
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
    """Returns a problem whose text starts with a capital letter."""
    return Problem(place, text[:1].upper() + text[1:], name)


def build_dataset(
    root: Path, annotations: Sequence[AnnotationRecord], problems: Iterable[Problem]
) -> Dataset:
    """Makes the data set of `annotations`; its split is that of `splits.txt` in `root`, else the default.

    Args:
        root: Folder of the data set.
        annotations: One for each photograph; a photograph with two, or two photographs of one name, are
            problems.
        problems: Those found so far; a photograph that one of them names is no record.

    Raises:
        DatasetError: If the split file cannot be used.
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
    """A problem for each photograph that is annotated twice and for each name of two photographs."""
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
                places, f"The photograph {photographs[0]} is annotated {len(group)} times. Keep one.", name
            )
        else:
            text = f"Two photographs are named '{name}': {' and '.join(photographs)}. Rename one of them."
            yield Problem(photographs[1], text, name)


def _defects(annotation: AnnotationRecord) -> list[LabelledShape]:
    return [shape for shape in annotation.shapes if not is_good(shape.label)]


def _labels(annotation: AnnotationRecord) -> set[str]:
    """The labels of the defects: those of the shapes, else those of the photograph."""
    drawn = {defect.label for defect in _defects(annotation)}
    return drawn or {label for label in annotation.labels if not is_good(label)}


def _label(defects: Sequence[LabelledShape], classes: tuple[str, ...]) -> int:
    """The class of the largest area; areas are not worked out where there is one class."""
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
        raise ValueError(
            f"The photograph is labelled good, but also {', '.join(marked)}. Keep one of the two"
        )
    if defects:
        parts = [(classes.index(defect.label), defect.shape) for defect in defects]
        mask, values = draw_parts(annotation.place, annotation.height, annotation.width, parts)
        label = _label(defects, classes)
        supervision = "box" if any(defect.is_box for defect in defects) else "mask"
    elif others:
        if len(others) > 1:
            raise ValueError(
                f"The photograph is labelled {' and '.join(others)}, and no shape tells which is larger. "
                "Keep one label, or draw the defects"
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
