"""A folder of photographs, with everything in it that says what they show.

    root/good/0001.jpg               or another name that means good, see `label_meanings`
    root/scratch/0002.jpg            any name: `defect`, or one folder for each class of defect
    root/masks/scratch/0002.png      or root/masks/0002.png, or root/scratch/0002_mask.png
    root/scratch/0003.json           annotations of a labelling tool, see `datasets.formats`
    root/splits.txt                  optional; without it 60 % train, 20 % val and 20 % test
    root/supervision.txt             optional; lists photographs with boxes or without masks

The class of a photograph comes from its folder, from its annotation, or from the folder of its mask. They
complement each other; a contradiction is a problem. Labels that differ only in case are one class. Folders
`train`, `val` and `test`, and folders such as `images`, may be above or below the class folders. Masks are
PNG, BMP or TIFF of the photograph's size, above 0 for defect pixels; a photograph may have several, and
`0002_mask.png`, `0002_1.png` and `0002/1.png` belong to 0002, as does a black `0002.png` with one other value
beside `0002.jpg`. A mask file has priority over the shapes of an annotation. Photographs are named by their
path below the root, and each is its own group. Good photographs alone are also a data set, with the classes
`good` and `defect`.

A photograph whose class no folder states is good if its annotation says so, or if it has no annotation file
and the tool writes one only for defects (LabelMe, YOLO). If annotation files list their photographs (COCO,
CVAT, Label Studio), or the photograph of one is missing and may have been renamed, others are ignored.

A defective photograph without a mask is a problem, because the mask may have been forgotten, unless
`supervision.txt` has the line `label  scratch/0002`, or `label  scratch` for the whole folder. The line
`box  scratch` means that the masks there are boxes. See `datasets.supervision`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from datasets.annotations.label_meanings import (
    LabelMeanings,
    describe_good,
    interpret_labels,
    raise_if_unclear,
)
from datasets.annotations.labels import DEFECT, GOOD, class_names
from datasets.causes import Cause, CodedDatasetError
from datasets.formats.annotation_files import FORMATS, Readers, read_annotation_files
from datasets.formats.annotation_reader import FileAnnotation, annotated_item, problem
from datasets.formats.voc import is_class_mask
from datasets.layouts.class_spelling import renamed, unify_spelling
from datasets.layouts.evidence import combine
from datasets.layouts.folder_contents import FolderContents, find_folder, list_contents
from datasets.layouts.folder_evidence import FolderEvidence, read_folders
from datasets.layouts.mask_labels import label_by_masks
from datasets.layouts.mask_pairing import MaskFile
from datasets.layouts.unlabelled import resolve_unlabelled
from datasets.layouts.unmasked import SUPERVISION_FILE, without_unmasked
from datasets.problems import list_names
from datasets.reading_options import DEFAULTS, ReadingOptions
from datasets.sample import Dataset, DataSetIssue, DataSetItem
from datasets.splitting import assign_own_splits
from datasets.supervision import apply_supervision, interpret_masks
from segdec.runtime.label_names import is_ignored

ALL_FORMATS = tuple(FORMATS)


def index(root: Path, formats: Sequence[str] = ALL_FORMATS, reading: ReadingOptions = DEFAULTS) -> Dataset:
    """Lists the photographs below `root`, with the split of `splits.txt`, their own or the default split.

    `root` may be its only annotation file. `reading` says what masks and annotations mean, except
    `mask_values` and `strict`.

    Raises:
        DatasetError: If a folder cannot be listed, photographs are missing, nothing states which photographs
            are good, or a text file is invalid.
    """
    return assign_own_splits(list_items(root, formats, reading), find_folder(root))


def list_items(
    root: Path, formats: Sequence[str] = ALL_FORMATS, reading: ReadingOptions = DEFAULTS
) -> Dataset:
    """Lists the items with the splits that folders and annotation files state.

    Arguments and errors are those of `index`.
    """
    folder = find_folder(root)
    contents = list_contents(folder)
    class_masks = [path for path in contents.masks if is_class_mask(path)] if "voc" in formats else []
    sources = [root] if root.is_file() else [*class_masks, *contents.texts]
    photographs = list(contents.photographs.values())
    readers = read_annotation_files(folder, sources, photographs, formats, reading)
    stated = read_folders(contents, sorted({*contents.masks} - {*class_masks}), readers, reading)
    meanings = interpret_labels(stated.labels, reading)
    notes = [*stated.notes, *_rename_good(readers, meanings)]
    annotations, problems, more = _combine(contents, stated, readers, meanings)
    annotations, spellings = unify_spelling(annotations)
    notes += [*more, *spellings, *_describe_masks(annotations)]
    dropped = tuple(issue for reader in readers.values() for issue in reader.dropped)
    dataset = replace(
        _build(annotations, problems), dropped=dropped, notes=tuple(notes), labels=frozenset(stated.labels)
    )
    dataset = _labelled(interpret_masks(dataset, reading), annotations, reading.max_pixels)
    if (folder / SUPERVISION_FILE).exists():
        dataset = apply_supervision(dataset, folder / SUPERVISION_FILE)
    return without_unmasked(dataset, folder)


def _rename_good(readers: Readers, meanings: LabelMeanings) -> list[str]:
    """Renames labels that mean good to `good`; returns notes about those of which that is not obvious."""
    names = dict.fromkeys(meanings.good, GOOD)
    number: Counter[str] = Counter()
    for reader in readers.values():
        number.update(label for each in reader.annotations for label in each.all_labels & meanings.good)
        reader.annotations = [renamed(each, names) for each in reader.annotations]
    return [note for label in sorted(number) for note in describe_good(label, number[label])]


def _combine(
    contents: FolderContents, folders: FolderEvidence, readers: Readers, meanings: LabelMeanings
) -> tuple[list[FileAnnotation], list[DataSetIssue], list[str]]:
    """What folders, masks and annotation files state about each photograph; also problems and notes."""
    named, problems = contents.photographs, [*contents.problems, *folders.problems]
    annotations, classes, masks = _one_for_each(readers, problems), folders.classes, folders.masks
    problems += [issue for reader in readers.values() for issue in reader.problems]
    notes = [*contents.notes, *(note for reader in readers.values() for note in reader.notes)]

    stated = {name for name, label in classes.items() if label is not None} | masks.keys()
    known = stated | annotations.keys() | {issue.name for issue in problems}
    unusable, left_out, more = resolve_unlabelled(
        contents.folder,
        {name: named[name] for name in sorted(named.keys() - known)},
        _formats_by_folder(readers),
        has_classes=bool(stated),
        has_problems=bool(problems),
        has_orphans=any(not issue.name for issue in problems),
        advice=contents.advice,
    )
    problems += unusable
    ignored = {name for name, label in classes.items() if label is not None and is_ignored(label)}
    more += [f"Photographs in a folder 'ignore': {list_names(sorted(ignored))}, left out."] * bool(ignored)

    splits = {name: split for reader in readers.values() for name, split in reader.splits.items()}
    combined = []
    for name in sorted(named.keys() - left_out - ignored - {issue.name for issue in problems}):
        own = annotations.get(name) or FileAnnotation(named[name], name, "")
        own.split = own.split or splits.get(name) or folders.splits[name]
        try:
            combined.append(_combined(own, classes[name], masks.get(name, []), meanings))
        except CodedDatasetError as error:
            problems.append(problem(own.place or str(own.photograph), str(error), name, error.cause))
        except ValueError as error:
            place, cause = own.place or str(own.photograph), Cause("annotation_contradiction")
            problems.append(problem(place, f"{error}.", name, cause))
    return combined, problems, [*notes, *more]


def _combined(
    own: FileAnnotation, stated: str | None, masks: Sequence[MaskFile], meanings: LabelMeanings
) -> FileAnnotation:
    """As `combine`, with `good` for all labels that mean it.

    Raises:
        CodedDatasetError: If a label may mean good.
        ValueError: If what is stated is contradictory.
    """
    raise_if_unclear({*own.all_labels, *(mask.folder for mask in masks), stated or GOOD}, meanings)
    return renamed(combine(own, stated, masks), dict.fromkeys(meanings.good, GOOD))


def _build(annotations: Sequence[FileAnnotation], problems: Sequence[DataSetIssue]) -> Dataset:
    """The data set; contradictions within an annotation become problems."""
    names = class_names(label for each in annotations for label in each.classes)
    names = names if len(names) > 1 else (GOOD, DEFECT)
    entries: list[DataSetItem | DataSetIssue] = []
    for each in annotations:
        try:
            entries.append(annotated_item(each, names))
        except ValueError as error:
            entries.append(problem(each.place, f"{error}.", each.name, Cause("annotation_contradiction")))
    return Dataset(names, (), tuple(problems)).with_items(entries)


def _labelled(dataset: Dataset, annotations: Sequence[FileAnnotation], max_pixels: int) -> Dataset:
    """Labels the photographs whose class no folder states by their masks."""
    unstated = {each.name for each in annotations if each.folder_class is None}
    by_pixels = {each.name for each in annotations if each.masks or len(each.defect_labels) > 1}
    return label_by_masks(dataset, unstated & by_pixels, max_pixels)


def _one_for_each(readers: Readers, problems: list[DataSetIssue]) -> dict[str, FileAnnotation]:
    """The annotation of each photograph by name; those of several files become problems."""
    annotations: dict[str, FileAnnotation] = {}
    for reader in readers.values():
        for each in reader.usable_annotations():
            if (other := annotations.setdefault(each.name, each)) is not each:
                places = f"{other.place} and {each.place}"
                text = f"The photograph {each.photograph} has 2 annotations: {places}. Keep one."
                cause = Cause("two_annotations", {"places": places})
                problems.append(DataSetIssue(each.place, text, each.name, cause))
    return annotations


def _formats_by_folder(readers: Readers) -> dict[Path, set[str]]:
    """The formats of the annotations of each folder's photographs."""
    formats: dict[Path, set[str]] = {}
    for name, reader in readers.items():
        for annotation in reader.annotations:
            formats.setdefault(annotation.photograph.parent, set()).add(name)
    return formats


def _describe_masks(annotations: Sequence[FileAnnotation]) -> list[str]:
    """Notes about photographs with several masks, or with a mask and shapes."""
    both = [each.name for each in annotations if each.masks and each.defects]
    several = [each.name for each in annotations if len(each.masks) > 1]
    return [
        *[f"Photographs with a mask file and shapes: {list_names(both)}; the masks are used."] * bool(both),
        *[f"Photographs with several mask files: {list_names(several)}; they are combined."] * bool(several),
    ]
