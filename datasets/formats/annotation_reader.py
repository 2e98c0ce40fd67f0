"""Collects the annotations of photographs from annotation files.

Shapes make the mask of a photograph, and its class is the one with the largest area. With several classes the
mask holds the class of each pixel, and the smaller of two overlapping shapes is on top. A mask with a
rectangle in it has the supervision `box`. Without shapes, the label of the photograph decides, with the
supervision `label`. Without defects it is good. A shape with a label such as `ignore` marks pixels whose
class is unknown.

A shape that cannot be used is dropped. If a photograph has no other shape, the photograph is ignored.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets.annotations.class_values import draw_parts
from datasets.annotations.combined_mask import CombinedMask
from datasets.annotations.drawn_mask import DrawnMask
from datasets.annotations.labelled_shape import LabelledShape, largest_class, read_annotated_size
from datasets.annotations.labels import GOOD, class_names, is_defect
from datasets.annotations.shapes import check_inside
from datasets.causes import Cause, cause_of
from datasets.formats.photograph_finder import PhotographFinder
from datasets.listing import item_name
from datasets.reading_options import DEFAULTS, ReadingOptions
from datasets.sample import (
    IGNORED,
    MAX_CLASSES,
    VALUES_ARE_CLASSES,
    Dataset,
    DataSetIssue,
    DataSetItem,
    DrawnOn,
    MaskValues,
    Split,
    Supervision,
)
from datasets.splitting import assign_splits
from segdec.errors import DatasetError, ImageError
from segdec.images import MAX_PIXEL_LIMIT, ImageFile, read_size
from segdec.runtime.label_names import is_good, is_ignored

_NO_SIZE = (None, "", "0", 0)


@dataclass
class FileAnnotation:
    """What one annotation file states about one photograph.

    Attributes:
        photograph: The file.
        name: Name of the item.
        place: File and entry of the annotation.
        height: Height of the photograph in the annotation tool, px.
        width: Width of the photograph in the annotation tool, px.
        shapes: Drawn shapes with labels.
        labels: Labels of the whole photograph.
        split: The split that the annotation file or a folder states.
        masks: Mask files, each with the label of its defects; they replace the shapes.
        folder_class: Class that a folder states; None without one.
        dropped: Problems of its shapes that cannot be used.
        drawn_on: What shows whether the shapes were drawn before the EXIF rotation of the photograph.
    """

    photograph: Path
    name: str
    place: str
    height: int = 0
    width: int = 0
    shapes: list[LabelledShape] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    split: Split | None = None
    masks: list[tuple[Path, str]] = field(default_factory=list)
    folder_class: str | None = None
    dropped: list[DataSetIssue] = field(default_factory=list)
    drawn_on: DrawnOn = "size"

    @property
    def defects(self) -> list[LabelledShape]:
        """The shapes that mark defects."""
        return [shape for shape in self.shapes if is_defect(shape.label)]

    @property
    def ignored(self) -> list[LabelledShape]:
        """The shapes of pixels whose class is unknown."""
        return [shape for shape in self.shapes if is_ignored(shape.label)]

    @property
    def defect_labels(self) -> set[str]:
        """The labels of the defects: those of the shapes, else those of the photograph."""
        drawn = {defect.label for defect in self.defects}
        return drawn or {label for label in self.labels if is_defect(label)}

    @property
    def all_labels(self) -> set[str]:
        """All labels, whatever they mean, from masks, shapes, the photograph and its folder."""
        drawn = {shape.label for shape in self.shapes} | {label for _, label in self.masks}
        return drawn.union(self.labels, [] if self.folder_class is None else [self.folder_class])

    @property
    def classes(self) -> set[str]:
        """All labels of defects, from masks, shapes, the photograph and its folder."""
        stated = set() if self.folder_class in (None, GOOD) else {str(self.folder_class)}
        return (({label for _, label in self.masks} or self.defect_labels) or stated) - {GOOD}


def problem(place: str, text: str, name: str, cause: Cause) -> DataSetIssue:
    """Creates a problem; its text gets an upper-case first letter."""
    return DataSetIssue(place, text[:1].upper() + text[1:], name, cause)


class AnnotationReader:
    """Collects the annotations, the problems and the dropped shapes of one data set.

    Names are relative to `root`; `advice` is a sentence for the user that ends each problem of an annotation.

    Attributes:
        annotations: One entry for each annotated photograph.
        problems: Problems of photographs and files.
        dropped: Problems of single shapes and entries, which are ignored.
        notes: Sentences for the user about how files were read.
        files: The annotation files that were read.
        splits: Name of an item → split, from files that list photographs.
        cache: Values that a format computes once.
    """

    def __init__(
        self, root: Path, advice: str, photographs: Iterable[Path] = (), reading: ReadingOptions = DEFAULTS
    ) -> None:
        self.root = root
        self.photographs = PhotographFinder(photographs)
        self.reading = reading
        self._advice = advice
        self.annotations: list[FileAnnotation] = []
        self.problems: list[DataSetIssue] = []
        self.dropped: list[DataSetIssue] = []
        self.notes: list[str] = []
        self.files: list[Path] = []
        self.splits: dict[str, Split] = {}
        self.cache: dict[object, Any] = {}

    def name_of(self, photograph: Path) -> str:
        """Returns the name of the item of a photograph."""
        return item_name(self.root, photograph)

    def related_names(self, path: Path) -> list[str]:
        """Returns the names of the photographs to which a file may belong by its own name."""
        return [self.name_of(photograph) for photograph in self.photographs.related(path)]

    def add(
        self, photograph: Path, place: str, height: int = 0, width: int = 0, split: Split | None = None
    ) -> FileAnnotation:
        """Adds the annotation of a photograph; the caller adds shapes and labels."""
        name = item_name(self.root, photograph)
        self.annotations.append(FileAnnotation(photograph, name, place, height, width, split=split))
        return self.annotations[-1]

    def set_size(self, annotation: FileAnnotation, height: object, width: object) -> None:
        """Sets the size in an annotation file, or that of the photograph if the file has none or 0.

        Raises:
            ValueError: If the size is invalid, or the photograph cannot be read.
        """
        if height in _NO_SIZE and width in _NO_SIZE:
            annotation.drawn_on = "pixels"
            try:
                annotation.height, annotation.width = read_size(
                    annotation.photograph,
                    max_pixels=MAX_PIXEL_LIMIT,  # the check of the photograph has the limit of the user
                    is_stored=bool(self.reading.annotations_before_rotation),
                )
            except ImageError as error:
                raise ValueError(str(error)) from error
        else:
            annotation.height, annotation.width = read_annotated_size(height, width)

    def add_shape(self, annotation: FileAnnotation, place: str, shape: LabelledShape) -> None:
        """Adds a shape. Parts outside the photograph are cut off; more than 1 px outside is reported.

        Raises:
            ValueError: If the shape is entirely outside.
        """
        outside = check_inside(shape.shape, annotation.height, annotation.width)
        if outside and not shape.may_exceed:
            cause = Cause("shape_cut_off", {"place": place})
            self.dropped.append(problem(place, f"{outside}: this part is cut off.", annotation.name, cause))
        annotation.shapes.append(shape)

    @contextmanager
    def problem_at(self, place: str, *names: str, advice: str | None = None) -> Iterator[None]:
        """Turns an error of the block into a problem at `place` of each of the items `names`.

        These items are then ignored. `advice` replaces that of the reader.
        """
        try:
            yield
        except (ValueError, OSError, DatasetError) as error:
            text, cause = self._text(error, advice), cause_of(error) or Cause("annotation_unusable")
            self.problems += [problem(place, text, name, cause) for name in names or [""]]

    @contextmanager
    def drop_at(self, place: str, annotation: FileAnnotation | None = None) -> Iterator[None]:
        """Drops the shape or entry that the block reads if the block raises an error."""
        try:
            yield
        except (ValueError, OSError, DatasetError) as error:
            name, cause = annotation.name if annotation else "", Cause("shape_unusable")
            dropped = problem(place, self._text(error), name, cause)
            if annotation:
                annotation.dropped.append(dropped)
            else:
                self.dropped.append(dropped)

    def _text(self, error: Exception, advice: str | None = None) -> str:
        end = self._advice if advice is None else advice
        return f"{error}".removesuffix(".") + f". {end}".rstrip()

    def usable_annotations(self) -> list[FileAnnotation]:
        """Returns the annotations of usable photographs, one for each, sorted by name.

        Two annotations of one photograph, and photographs whose shapes are all dropped, become problems.
        """
        self.problems += self._repeated()
        for annotation in self.annotations:
            annotation.split = annotation.split or self.splits.get(annotation.name)
            if annotation.dropped and not annotation.defect_labels:
                self.problems += annotation.dropped
            else:
                self.dropped += annotation.dropped
        broken = {each.name for each in self.problems}
        usable = [annotation for annotation in self.annotations if annotation.name not in broken]
        return sorted(usable, key=lambda each: each.name)

    def dataset(self, classes: tuple[str, ...] = ()) -> Dataset:
        """Builds the data set, with the split of `splits.txt` in `root` or the default split.

        The default `classes` are `good` and the sorted labels of the defects.

        Raises:
            DatasetError: If the split file is invalid.
        """
        annotations = self.usable_annotations()
        classes = classes or class_names(label for each in annotations for label in each.defect_labels)
        items = []
        for annotation in annotations:
            with self.problem_at(annotation.place, annotation.name, advice=""):
                items.append(annotated_item(annotation, classes))
        dataset = Dataset(classes, tuple(items), tuple(self.problems), tuple(self.dropped), tuple(self.notes))
        return assign_splits(dataset, self.root)

    def _repeated(self) -> Iterator[DataSetIssue]:
        by_name: dict[str, list[FileAnnotation]] = defaultdict(list)
        for annotation in self.annotations:
            by_name[annotation.name].append(annotation)
        for name, group in by_name.items():
            if len(group) > 1:
                text = f"The photograph {group[0].photograph} has {len(group)} annotations. Keep one."
                places = " and ".join(each.place for each in group)
                yield DataSetIssue(places, text, name, Cause("two_annotations", {"places": places}))


def annotated_item(annotation: FileAnnotation, classes: Sequence[str]) -> DataSetItem:
    """Creates the item of an annotation.

    Raises:
        ValueError: If shapes and labels contradict each other, or masks cannot number the classes.
    """
    name, defects = annotation.name, annotation.defects
    others = sorted({label for label in annotation.labels if is_defect(label)})
    ignored = [(IGNORED, each.shape) for each in annotation.ignored]
    supervision: Supervision = "mask"
    mask: ImageFile | None = None
    values, label = None, 0
    if any(map(is_good, annotation.labels)) and (defects or others):
        marked = sorted({defect.label for defect in defects}.union(others))
        raise ValueError(f"the photograph has the labels good and {', '.join(marked)}. Keep one of the two")
    if any(map(is_ignored, annotation.labels)):
        raise ValueError("the whole photograph is marked as ignored. Remove it, or give it a class")
    if (annotation.masks or defects) and len(classes) - 1 > MAX_CLASSES:
        raise ValueError(
            f"the annotations have {len(classes) - 1} classes of defects, and a mask numbers at most "
            f"{MAX_CLASSES}. Merge classes"
        )
    if annotation.masks:
        mask, values, label = _mask_of_files(annotation, classes)
    elif defects:
        parts = [(classes.index(defect.label), defect.shape) for defect in defects]
        mask, values = draw_parts(annotation.place, annotation.height, annotation.width, parts + ignored)
        label = largest_class(parts)
        supervision = "box" if any(defect.is_box for defect in defects) else "mask"
    elif len(others) > 1:
        raise ValueError(
            f"the photograph has the labels {' and '.join(others)}, and no shapes to compare. Keep one "
            "label, or draw the defects"
        )
    elif others:
        label, supervision = classes.index(others[0]), "label"
    elif annotation.folder_class not in (None, GOOD):
        label = classes.index(str(annotation.folder_class))
    elif ignored:
        mask, values = draw_parts(annotation.place, annotation.height, annotation.width, ignored)
    return DataSetItem(
        name,
        annotation.photograph,
        mask,
        label,
        group=name,
        split=annotation.split,
        supervision=supervision,
        mask_values=values,
        drawn_on="size" if annotation.masks else annotation.drawn_on,
    )


def _mask_of_files(
    annotation: FileAnnotation, classes: Sequence[str]
) -> tuple[ImageFile, MaskValues | None, int]:
    """The mask, its values and the label: that of the folder, else of the first mask of a defect."""
    parts: list[tuple[ImageFile, int]] = [
        (path, IGNORED if is_ignored(label) else classes.index(label)) for path, label in annotation.masks
    ]
    if annotation.ignored:
        shapes = tuple(each.shape for each in annotation.ignored)
        parts.append((DrawnMask(annotation.place, annotation.height, annotation.width, shapes), IGNORED))
    parts.sort(key=lambda part: part[1] == IGNORED)  # the last one is on top
    files, labels = zip(*parts, strict=True)
    label = 0 if annotation.folder_class == GOOD or labels[0] == IGNORED else labels[0]
    if label == 0 and annotation.folder_class not in (None, GOOD):
        raise ValueError(
            f"the photograph is in the folder '{annotation.folder_class}', but its masks only mark ignored "
            "pixels. Draw the defect, or move the photograph"
        )
    if len(set(labels)) == 1 and IGNORED not in labels:
        return files[0] if len(files) == 1 else CombinedMask(files), None, label
    return CombinedMask(files, labels), VALUES_ARE_CLASSES, label
