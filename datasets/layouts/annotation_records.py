"""Collects the annotations of a tool's files and converts them to records.

A photograph without a defect is good. Its shapes make the mask, and its class is the one with the largest
area. With several classes the mask holds the class of each pixel, and the smaller of two overlapping shapes
is on top. A mask with a rectangle in it has the supervision `box`. Without shapes, the label of the
photograph decides, with the supervision `label`.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from datasets.annotations.class_values import draw_parts
from datasets.annotations.labelled_shape import LabelledShape, largest_class
from datasets.annotations.labels import class_names, is_good
from datasets.layouts.listing import record_name
from datasets.sample import Dataset, Problem, Record, Supervision
from datasets.splitting import assign_splits
from segdec.errors import DatasetError


@dataclass
class AnnotationRecord:
    """The annotation of one photograph; it becomes a `Record` when all classes are known.

    Attributes:
        photograph: The file.
        name: Name of the record.
        place: File and entry of the annotation.
        height: Height of the photograph in the annotation tool, px.
        width: Width of the photograph in the annotation tool, px.
        shapes: Drawn shapes with labels.
        labels: Labels of the whole photograph.
    """

    photograph: Path
    name: str
    place: str
    height: int = 0
    width: int = 0
    shapes: list[LabelledShape] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)


def problem(place: str, text: str, name: str = "") -> Problem:
    """Creates a problem; its text gets an upper-case first letter."""
    return Problem(place, text[:1].upper() + text[1:], name)


class AnnotationReader:
    """Collects the annotations and the problems of one data set.

    Args:
        root: Folder of the data set; names are relative to it.
        advice: Sentence for the user that ends each problem of an annotation.
    """

    def __init__(self, root: Path, advice: str) -> None:
        self.root = root
        self._advice = advice
        self.annotations: list[AnnotationRecord] = []
        self._problems: list[Problem] = []

    def add(self, photograph: Path, place: str, height: int = 0, width: int = 0) -> AnnotationRecord:
        """Adds the annotation of a photograph; the caller fills in shapes and labels."""
        name = record_name(self.root, photograph)
        self.annotations.append(AnnotationRecord(photograph, name, place, height, width))
        return self.annotations[-1]

    @contextmanager
    def problem_at(self, place: str, *names: str, advice: str | None = None) -> Iterator[None]:
        """Turns an error of the block into a problem at `place` of each of the records `names`.

        Args:
            place: File and entry.
            names: Records that are then left out.
            advice: Replaces the advice of the reader.
        """
        try:
            yield
        except (ValueError, OSError, DatasetError) as error:
            text = f"{error}".removesuffix(".")
            end = self._advice if advice is None else advice
            self._problems += [problem(place, f"{text}. {end}".rstrip(), name) for name in names or [""]]

    def dataset(self, classes: tuple[str, ...] = ()) -> Dataset:
        """Builds the data set, with the split of `splits.txt` in `root` or the default split.

        Two annotations of one photograph, or two photographs with one name, are problems.

        Args:
            classes: All classes, `good` first; by default `good` and the sorted labels of the defects.

        Raises:
            DatasetError: If the split file is invalid.
        """
        self._problems += self._repeated()
        broken = {each.name for each in self._problems}
        classes = classes or class_names(label for each in self.annotations for label in _labels(each))
        records = []
        for annotation in sorted(self.annotations, key=lambda each: each.name):
            if annotation.name not in broken:
                with self.problem_at(annotation.place, annotation.name, advice=""):
                    records.append(_record(annotation, classes))
        return assign_splits(Dataset(classes, tuple(records), tuple(self._problems)), self.root)

    def _repeated(self) -> Iterator[Problem]:
        by_name: dict[str, list[AnnotationRecord]] = defaultdict(list)
        for annotation in self.annotations:
            by_name[annotation.name].append(annotation)
        for name, group in by_name.items():
            first, *others = sorted({str(each.photograph) for each in group})
            if others:
                text = f"Two photographs have the name '{name}': {' and '.join([first, *others])}. Rename one"
                yield Problem(others[0], f"{text} of them.", name)
            elif len(group) > 1:
                text = f"The photograph {first} has {len(group)} annotations. Keep one."
                yield Problem(" and ".join(each.place for each in group), text, name)


def _defects(annotation: AnnotationRecord) -> list[LabelledShape]:
    return [shape for shape in annotation.shapes if not is_good(shape.label)]


def _labels(annotation: AnnotationRecord) -> set[str]:
    """The labels of the defects: those of the shapes, else those of the photograph."""
    drawn = {defect.label for defect in _defects(annotation)}
    return drawn or {label for label in annotation.labels if not is_good(label)}


def _record(annotation: AnnotationRecord, classes: Sequence[str]) -> Record:
    """The record; ValueError if shapes and labels contradict each other."""
    name, defects = annotation.name, _defects(annotation)
    others = sorted({label for label in annotation.labels if not is_good(label)})
    supervision: Supervision = "mask"
    mask, values, label = None, None, 0
    if any(map(is_good, annotation.labels)) and (defects or others):
        marked = sorted({defect.label for defect in defects}.union(others))
        raise ValueError(f"the photograph has the labels good and {', '.join(marked)}. Keep one of the two")
    if defects:
        parts = [(classes.index(defect.label), defect.shape) for defect in defects]
        mask, values = draw_parts(annotation.place, annotation.height, annotation.width, parts)
        label = largest_class(parts)
        supervision = "box" if any(defect.is_box for defect in defects) else "mask"
    elif len(others) > 1:
        raise ValueError(
            f"the photograph has the labels {' and '.join(others)}, and no shapes to compare. Keep one "
            "label, or draw the defects"
        )
    elif others:
        label, supervision = classes.index(others[0]), "label"
    return Record(
        name, annotation.photograph, mask, label, group=name, supervision=supervision, mask_values=values
    )
