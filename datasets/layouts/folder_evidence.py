"""What the folders and mask files of a data set state about its photographs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from datasets.annotations.label_meanings import interpret_labels
from datasets.annotations.labels import GOOD
from datasets.formats.annotation_files import FORMATS, Readers
from datasets.formats.yolo import NAME_FILES, YAML_SUFFIXES
from datasets.layouts.class_folders import ClassFolders
from datasets.layouts.folder_contents import FolderContents
from datasets.layouts.mask_pairing import MaskFile, MaskPairing
from datasets.reading_options import ReadingOptions
from datasets.sample import DataSetIssue, Split


@dataclass(frozen=True)
class FolderEvidence:
    """What folders and masks state: the class and the split of each photograph by name, or None; its masks.

    `labels` are all labels of the data set, `problems` those of masks.
    """

    classes: Mapping[str, str | None]
    splits: Mapping[str, Split | None]
    masks: Mapping[str, Sequence[MaskFile]]
    labels: Collection[str]
    problems: Sequence[DataSetIssue]
    notes: Sequence[str]


def read_folders(
    contents: FolderContents, mask_files: Sequence[Path], readers: Readers, reading: ReadingOptions
) -> FolderEvidence:
    """Returns what folders and masks state; the labels of the readers show which folders are classes, too."""
    named, annotations = contents.photographs, [each for r in readers.values() for each in r.annotations]
    defects = {label for each in annotations for label in each.defect_labels}
    folders = ClassFolders(contents.folder, named.values(), defects, _exports(contents, readers), reading)
    stated = {name: folders.class_of(path) for name, path in named.items()}
    labels = {label for label in stated.values() if label is not None}.union(
        *(each.all_labels for each in annotations)
    )
    good = interpret_labels(labels, reading).good
    classes = {name: GOOD if label in good else label for name, label in stated.items()}
    problems: list[DataSetIssue] = []
    masks = MaskPairing(contents.folder, named, classes).pair(mask_files, problems)
    labels |= {mask.folder for files in masks.values() for mask in files if mask.folder}
    splits = {name: folders.split_of(path) for name, path in named.items()}
    return FolderEvidence(classes, splits, masks, labels, problems, folders.describe(good))


def _exports(contents: FolderContents, readers: Readers) -> set[Path]:
    """The folders of files that describe many photographs, of any class."""
    listing = [r for name, r in readers.items() if name in FORMATS and FORMATS[name].lists_photographs]
    files = [path for reader in listing for path in reader.files]
    files += [path for path in contents.texts if path.name in NAME_FILES or path.suffix in YAML_SUFFIXES]
    return {path.parent for path in files}
