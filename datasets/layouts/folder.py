"""A folder of photographs, with everything in it that says what they show.

    root/good/0001.jpg               or `ok`, `gut`, `io`, `normal`, in any case
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
CVAT, Label Studio), or the photograph of one is missing and may have been renamed, others are left out.

A defective photograph without a mask is a problem, because the mask may have been forgotten, unless
`supervision.txt` has the line `label  scratch/0002`, or `label  scratch` for the whole folder. The line
`box  scratch` means that the masks there are boxes. See `datasets.supervision`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from datasets.annotations.labels import DEFECT, GOOD, class_names, is_ignored
from datasets.formats.annotation_files import FORMATS, SUFFIXES, Readers, read_annotation_files
from datasets.formats.annotation_reader import Annotation, annotated_record, problem
from datasets.formats.voc import is_class_mask
from datasets.layouts.class_folders import MASKS, ClassFolders
from datasets.layouts.class_spelling import unify_spelling
from datasets.layouts.evidence import combine
from datasets.layouts.mask_labels import label_by_masks
from datasets.layouts.mask_pairing import MaskFile, MaskPairing, separate_masks
from datasets.layouts.unlabelled import resolve_unlabelled
from datasets.listing import UNSUPPORTED_SUFFIXES, files_below, record_name, subfolders
from datasets.problems import list_names
from datasets.sample import Dataset, Problem, Record
from datasets.splitting import assign_own_splits
from datasets.supervision import apply_supervision
from segdec.errors import DatasetError
from segdec.images import SUFFIXES as PHOTOGRAPH_SUFFIXES

SUPERVISION_FILE = "supervision.txt"

ALL_FORMATS = tuple(FORMATS)

TRAIN = "train"

ARCHIVE_SUFFIXES = frozenset({".zip", ".7z", ".rar", ".tar", ".tgz", ".gz"})
UNREAD_SUFFIXES = ARCHIVE_SUFFIXES | {".csv", ".jsonl", ".ndjson", ".xlsx"}
"""Files that may hold annotations, but are not read by this layout."""


def index(root: Path, formats: Sequence[str] = ALL_FORMATS, annotator: str | None = None) -> Dataset:
    """Lists the photographs below `root`, with the split of `splits.txt`, their own or the default split.

    Args:
        root: Folder of the data set, or its only annotation file.
        formats: Names of the annotation formats to read.
        annotator: Which of several annotations of a photograph is used; see `label_studio`.

    Raises:
        DatasetError: If a folder cannot be listed, photographs are missing, nothing states which photographs
            are good, or a text file is invalid.
    """
    folder = _folder_of(root)
    return assign_own_splits(list_records(root, formats, annotator), folder)


def list_records(root: Path, formats: Sequence[str] = ALL_FORMATS, annotator: str | None = None) -> Dataset:
    """Lists the records with the splits that folders and annotation files state.

    Arguments and errors are those of `index`.
    """
    # === 1. Photographs and masks ===
    folder = _folder_of(root)
    files = files_below(folder)
    pictures = [path for path in files if path.suffix.lower() in PHOTOGRAPH_SUFFIXES]
    photographs, masks = separate_masks([path for path in pictures if not _is_converted(path)])
    unread = [str(path.relative_to(folder)) for path in files if path.suffix.lower() in UNREAD_SUFFIXES]
    advice = f" These files were not read: {list_names(unread)}. Unpack archives." if unread else ""
    if not photographs:
        raise DatasetError(
            f"The folder {folder} holds no photograph. Expected files of the types "
            f"{', '.join(sorted(PHOTOGRAPH_SUFFIXES))}, good ones in {folder / GOOD}.{advice}"
        )
    _check_one_product(folder)
    problems: list[Problem] = list(_unsupported(folder, files, photographs))
    named = _by_name(folder, photographs, problems)
    folders = ClassFolders(folder, photographs)
    classes = {name: folders.class_of(path) for name, path in named.items()}
    class_masks = [path for path in masks if is_class_mask(path)] if "voc" in formats else []
    paired = MaskPairing(folder, named, classes).pair(sorted({*masks} - {*class_masks}), problems)

    # === 2. Annotation files ===
    texts = [path for path in files if path.suffix.lower() in SUFFIXES]
    sources = [root] if root.is_file() else [*class_masks, *texts]
    readers = read_annotation_files(folder, sources, photographs, formats, annotator)
    annotations = _one_for_each(readers, problems)
    notes = [*folders.describe(), *_describe_unread(pictures, unread)]
    notes += [note for reader in readers.values() for note in reader.notes]
    problems += [found for reader in readers.values() for found in reader.problems]
    listed = {name: split for reader in readers.values() for name, split in reader.splits.items()}

    # === 3. What they state together ===
    broken = {found.name for found in problems}
    stated = {name for name, label in classes.items() if label is not None} | paired.keys()
    unlabelled = {name: named[name] for name in sorted(named.keys() - stated - annotations.keys() - broken)}
    read = [name for name, reader in readers.items() if reader.annotations]
    unusable, left_out, more = resolve_unlabelled(
        folder,
        unlabelled,
        read,
        has_classes=bool(stated),
        has_problems=bool(problems),
        has_orphans=any(not found.name for found in problems),
        advice=advice,
    )
    problems += unusable
    set_aside = {name for name, label in classes.items() if label is not None and is_ignored(label)}
    if set_aside:
        more.append(f"{len(set_aside)} photographs in a folder 'ignore' were left out.")
    broken |= left_out | set_aside | {found.name for found in unusable}
    owns = [
        annotations.get(name) or Annotation(named[name], name, "") for name in sorted(named.keys() - broken)
    ]
    for own in owns:
        own.split = own.split or listed.get(own.name) or folders.split_of(own.photograph)
    combined, spellings = unify_spelling(_combined(owns, classes, paired, problems))

    # === 4. The records ===
    names = class_names(label for each in combined for label in each.classes)
    names = names if len(names) > 1 else (GOOD, DEFECT)
    records = _records(combined, names, problems)
    dropped = tuple(found for reader in readers.values() for found in reader.dropped)
    notes += [*more, *spellings, *_describe_masks(combined)]
    dataset = Dataset(names, tuple(records), tuple(problems), dropped, tuple(notes))
    unstated = {each.name for each in combined if each.folder_class is None}
    by_pixels = {each.name for each in combined if each.masks or len(each.defect_labels) > 1}
    dataset = label_by_masks(dataset, unstated & by_pixels)
    if (folder / SUPERVISION_FILE).exists():
        dataset = apply_supervision(dataset, folder / SUPERVISION_FILE)
    return _without_unmasked(dataset, folder)


def _combined(
    annotations: Sequence[Annotation],
    classes: Mapping[str, str | None],
    masks: Mapping[str, Sequence[MaskFile]],
    problems: list[Problem],
) -> list[Annotation]:
    """The annotations with what folders and masks state; contradictions become problems."""
    combined = []
    for each in annotations:
        try:
            combined.append(combine(each, classes[each.name], masks.get(each.name, [])))
        except ValueError as error:
            problems.append(problem(each.place or str(each.photograph), f"{error}.", each.name))
    return combined


def _records(
    annotations: Sequence[Annotation], classes: Sequence[str], problems: list[Problem]
) -> list[Record]:
    """The records; contradictions become problems."""
    records = []
    for each in annotations:
        try:
            records.append(annotated_record(each, classes))
        except ValueError as error:
            problems.append(problem(each.place, f"{error}.", each.name))
    return records


def _folder_of(root: Path) -> Path:
    """The folder of the photographs if `root` is an annotation file, which may be in a folder of its own."""
    if not root.is_file():
        return root
    if root.suffix.lower() in ARCHIVE_SUFFIXES:
        raise DatasetError(f"{root} is an archive. Unpack it and give the folder.")
    own = files_below(root.parent, *PHOTOGRAPH_SUFFIXES)
    return root.parent if own else root.parent.parent


def _check_one_product(root: Path) -> None:
    """Raises DatasetError if folders below `root` are data sets, as the categories of MVTec AD."""
    own = [folder.name for folder in subfolders(root) if (folder / TRAIN / GOOD).is_dir()]
    if len(own) > 1:
        raise DatasetError(
            f"The folder {root} holds several data sets: {', '.join(own)}. Give the folder of one, for "
            f"example {root / own[0]}."
        )


def _unsupported(folder: Path, files: Sequence[Path], photographs: Sequence[Path]) -> Iterator[Problem]:
    """Problems of photographs of other types, unless a converted one is beside them."""
    converted = {path.with_suffix("") for path in photographs}
    types = ", ".join(sorted(PHOTOGRAPH_SUFFIXES))
    for path in files:
        if path.suffix.lower() in UNSUPPORTED_SUFFIXES and path.with_suffix("") not in converted:
            text = f"{path} has an unsupported type. Expected {types}: convert or remove it."
            yield Problem(str(path), text, record_name(folder, path))


def _is_converted(picture: Path) -> bool:
    """Whether a picture is a copy that LabelMe's `labelme_export_json` makes beside the annotation."""
    folder = picture.parent
    return folder.name.endswith(("_json", "_export")) and (folder / "label_names.txt").is_file()


def _describe_unread(pictures: Sequence[Path], unread: Sequence[str]) -> list[str]:
    """Notes about archives and tables, and about copies of photographs."""
    copies = [str(path) for path in pictures if _is_converted(path)]
    return [
        *[f"Files that were not read: {list_names(unread)}. Unpack archives."] * bool(unread),
        *[f"Pictures that LabelMe exported were left out: {list_names(copies)}."] * bool(copies),
    ]


def _by_name(folder: Path, photographs: Sequence[Path], problems: list[Problem]) -> dict[str, Path]:
    """The photographs by name; equal names become problems."""
    named: dict[str, Path] = {}
    for path in photographs:
        name = record_name(folder, path)
        if (other := named.setdefault(name, path)) != path:
            text = f"Two photographs have the name '{name}': {other} and {path}. Rename one of them."
            problems.append(Problem(str(path), text, name))
    return named


def _one_for_each(readers: Readers, problems: list[Problem]) -> dict[str, Annotation]:
    """The annotation of each photograph by name; those of several files become problems."""
    annotations: dict[str, Annotation] = {}
    for reader in readers.values():
        for each in reader.usable_annotations():
            if (other := annotations.setdefault(each.name, each)) is not each:
                places = f"{other.place} and {each.place}"
                text = f"The photograph {each.photograph} has 2 annotations: {places}. Keep one."
                problems.append(Problem(each.place, text, each.name))
    return annotations


def _describe_masks(annotations: Sequence[Annotation]) -> list[str]:
    """Notes about photographs with several masks, or with a mask and shapes."""
    both = [each.name for each in annotations if each.masks and each.defects]
    several = [each.name for each in annotations if len(each.masks) > 1]
    return [
        *[f"Photographs with a mask file and shapes: {list_names(both)}; the masks are used."] * bool(both),
        *[f"Photographs with several mask files: {list_names(several)}; they are combined."] * bool(several),
    ]


def _without_unmasked(dataset: Dataset, root: Path) -> Dataset:
    """Turns defective photographs without a mask into problems, unless their supervision is `label`."""
    unmasked = [record for record in dataset.records if _is_unmasked(record)]
    number, of_folder = (Counter(map(_folder, records)) for records in (unmasked, dataset.records))
    whole = sorted(name for name in number if name and number[name] == of_folder[name])

    def check(record: Record) -> Record | Problem:
        if not _is_unmasked(record):
            return record
        lines = [f"'label  {name}'" for name in (whole if _folder(record) in whole else [record.name])]
        text = (
            f"The photograph {record.image_file} is defective but has no mask. Draw "
            f"{root / MASKS / record.name}.png, move the photograph to '{GOOD}', or, to use the class alone, "
            f"add to {root / SUPERVISION_FILE}: {', '.join(lines)}."
        )
        return Problem(str(record.image_file), text, record.name)

    return dataset.with_records(map(check, dataset.records))


def _is_unmasked(record: Record) -> bool:
    return record.label > 0 and record.mask_file is None and record.supervision != "label"


def _folder(record: Record) -> str:
    return record.name.rpartition("/")[0]
