"""One file that lists the photographs: CSV, or JSON lines.

    root/manifest.csv        or manifest.jsonl; the root may be the file itself, with any name
    root/classes.txt         all classes, one on each line; any other label is then a problem. Required for
                             class_mask and for defective photographs alone, otherwise optional. Below a
                             first line `good`, names that may mean good are classes of defects, too
    root/splits.txt          optional; used if the manifest has no split

    image,label,mask,box,split,group
    line-1/0001.png,good,,,train,plate-7
    line-1/0002.png,dent,masks/0002.png,,train,plate-7
    line-1/0003.png,dent,,"120,40,32,18",val,plate-9

`image` and `label` are required, all other columns are optional, in any order. Paths are relative to the
folder of the manifest. Photographs without a defect have the label `good`, or one that means it; others are
classes. Good photographs alone are also a data set, with the classes `good` and `defect`.

    mask                  file of the photograph's size, PNG, BMP or TIFF, above 0 for defect pixels
    class_mask            instead of mask: the values of the file are the positions of the classes in
                          classes.txt, 1 for the first; 0 is no defect, 255 an area that is ignored
    box, boxes            x,y,width,height in px from the top left corner, several separated by `;`
    polygon, polygons     x,y,x,y,… likewise; in JSON lines lists of numbers or of points
    split                 train, val or test, or fold_1, fold_2, …; if any photograph has one, those without
                          are ignored
    group                 photographs of one group stay in one split; default: each is its own group
    name                  default: the path of the photograph without its suffix
    supervision           mask, box (the mask has the rectangles around defects) or label; default: mask with
                          a mask or polygons, box with boxes, and label with neither

Columns may be separated by commas, semicolons or tabs. `python -m datasets convert` writes this layout.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from datasets.annotations.label_meanings import (
    LabelMeanings,
    describe_good,
    interpret_labels,
    is_obviously_good,
)
from datasets.annotations.labels import DEFECT, GOOD, class_names
from datasets.annotations.manifest_file import read_manifest
from datasets.causes import Cause, CodedDatasetError
from datasets.file_bounds import FileOutsideError, outside_problem
from datasets.formats.annotation_reader import problem
from datasets.layouts.manifest_row import ManifestRow, read_name, read_row
from datasets.reading_options import DEFAULTS, ReadingOptions
from datasets.sample import IGNORED, Dataset, DataSetIssue, DataSetItem, MaskValues
from datasets.splitting import SPLIT_WORDS, assign_splits
from datasets.text_file import UTF8, read_annotation_text, read_text
from segdec.errors import DatasetError
from segdec.runtime.suggestions import nearest_name

NAMES = ("manifest.csv", "manifest.jsonl")
CLASSES_FILE = "classes.txt"


def index(root: Path, bounds: Path | None = None, reading: ReadingOptions = DEFAULTS) -> Dataset:
    """Lists the photographs of the manifest at `root`, a file or its folder.

    Problems are invalid lines, missing photographs and masks, unknown labels, shapes outside the photograph,
    annotations that contradict the label or each other, repeated photographs and names, and groups in two
    splits. Outside of the folder `bounds` no file is read: photographs with such a file are problems.

    Raises:
        DatasetError: If there is no manifest or two, it lacks a column or has an unknown one, no photograph
            is good and there is no `classes.txt`, or `classes.txt` or `splits.txt` is invalid.
    """
    path = _find(root)
    entries, listed = read_manifest(path), _read_classes(path.parent / CLASSES_FILE)
    labels = Counter(str(entry.values.get("label", GOOD)).strip() for entry in entries)
    if listed[:1] == (GOOD,):
        reading = replace(reading, defect_labels=(*reading.defect_labels, *listed[1:]))
    meanings = interpret_labels({*labels, *listed}, reading)
    rows, problems = [], []
    for entry in entries:
        name = ""
        try:
            if entry.error:
                raise ValueError(entry.error)
            name = read_name(entry.values, path.parent)
            rows.append(read_row(entry.line, entry.values, path, name, meanings, reading, bounds))
        except FileOutsideError as error:
            problems.append(outside_problem(error.path, name))
        except CodedDatasetError as error:
            problems.append(DataSetIssue(_place(path, [entry.line]), str(error), name, error.cause))
        except ValueError as error:
            problems.append(_problem(path, [entry.line], f"{error}. Correct the line.", name))
    defects = [name for name in listed if name not in meanings.good]
    known = (GOOD, *(defects or [DEFECT])) if listed else ()
    problems += _unknown_labels(path, rows, known) if known else _labels_by_case(path, rows)
    problems += [] if known else _unknown_values(path, rows)
    problems += [*_listed_twice(path, rows), *_split_groups(path, rows)]
    broken = {problem.name for problem in problems}
    kept = [row for row in rows if row.name not in broken and row.group not in broken]
    if not problems and not known:
        _check_good(path, {row.label for row in kept})
    classes = known or class_names(row.label for row in kept)
    classes = classes if len(classes) > 1 else (GOOD, DEFECT)
    values = _class_values(listed, classes, meanings)
    items = tuple(_item(row, classes, values) for row in sorted(kept, key=lambda row: row.name))
    dropped = tuple(_problem(path, [row.line], f"{text}.", row.name) for row in kept for text in row.dropped)
    encoding = read_annotation_text(path)[1]
    notes = [f"{path} is not UTF-8; it was read as {encoding}."] * (encoding != UTF8)
    notes += [note for label in sorted(meanings.good) for note in describe_good(label, labels[label])]
    own = frozenset({*labels, *listed})
    dataset = Dataset(classes, items, tuple(problems), dropped, tuple(notes), own)
    return assign_splits(dataset, path.parent)


def _item(row: ManifestRow, classes: tuple[str, ...], class_values: MaskValues) -> DataSetItem:
    label = classes.index(row.label)
    split, fold = SPLIT_WORDS[row.split] if row.split else (None, None)
    values = class_values if row.class_valued else None
    return DataSetItem(
        row.name,
        row.image,
        row.mask,
        label,
        row.group,
        split,
        row.supervision,
        mask_values=values,
        fold=fold,
        drawn_on=row.drawn_on,
    )


def _class_values(listed: Sequence[str], classes: Sequence[str], meanings: LabelMeanings) -> MaskValues:
    """The values of a `class_mask`: the position of each defect in `classes.txt`, and that of ignored areas.

    Position 1 is that of the first line, or of the second one below `good` or alike.
    """
    first = 0 if listed and is_obviously_good(listed[0]) else 1
    numbered = ((n, name) for n, name in enumerate(listed, start=first) if name not in meanings.good)
    return (*((n, classes.index(name)) for n, name in numbered), (IGNORED, IGNORED))


def _find(root: Path) -> Path:
    if root.is_file():
        return root
    manifests = [root / name for name in NAMES if (root / name).is_file()]
    if len(manifests) != 1:
        arrived = (
            "holds both" if manifests else "holds no" if root.is_dir() else "does not exist, nor does its"
        )
        raise DatasetError(
            f"{root} {arrived} {' and '.join(NAMES) if manifests else ' or '.join(NAMES)}. Give the manifest "
            "itself, or a folder with one of the two."
        )
    return manifests[0]


# === Classes ===


def _read_classes(path: Path) -> tuple[str, ...]:
    """Returns the lines of `classes.txt`; empty without that file.

    The line `good` alone states that no photograph shows a defect.
    """
    if not path.exists():
        return ()
    lines = [line.strip() for line in read_text(path).splitlines()]
    names = [line for line in lines if line]
    if not names or len(set(names)) < len(names):
        raise DatasetError(
            f"{path} holds {', '.join(names) or 'no class'}. Expected each class of defects once, on its own "
            "line."
        )
    return tuple(names)


def _unknown_labels(
    path: Path, rows: Sequence[ManifestRow], known: tuple[str, ...]
) -> Iterator[DataSetIssue]:
    for row in rows:
        if row.label not in known:
            text = (
                f"the label '{row.label}' is not one of the classes in {CLASSES_FILE}: {', '.join(known)}. "
            )
            text += f"Did you mean '{nearest_name(row.label, known)}'?"
            yield _problem(path, [row.line], text, row.name)


def _unknown_values(path: Path, rows: Sequence[ManifestRow]) -> Iterator[DataSetIssue]:
    """Yields a problem for masks of classes without a list that numbers them."""
    for row in rows:
        if row.class_valued:
            text = (
                f"there is a class_mask, but no {CLASSES_FILE} that numbers the classes. Write "
                f"{path.parent / CLASSES_FILE} with a class on each line, in the order of their mask values."
            )
            yield _problem(path, [row.line], text, row.name)


def _labels_by_case(path: Path, rows: Sequence[ManifestRow]) -> Iterator[DataSetIssue]:
    """Yields a problem for labels that differ from a more frequent one only by case."""
    counts = Counter(row.label for row in rows)
    spellings: dict[str, str] = {}
    for label, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        spellings.setdefault(label.lower(), label)
    for row in rows:
        usual = spellings[row.label.lower()]
        if row.label != usual:
            text = (
                f"the label '{row.label}' differs only by case from '{usual}' of {counts[usual]} "
                f"photographs. Use one of the two, or list both in {CLASSES_FILE}."
            )
            yield _problem(path, [row.line], text, row.name)


def _check_good(path: Path, labels: set[str]) -> None:
    """Raises without a good photograph: good ones may have another label."""
    if GOOD not in labels:
        raise DatasetError(
            f"The manifest {path} has these labels: {', '.join(sorted(labels))}. Expected '{GOOD}' for "
            "photographs without a defect, or the label of good ones in --good (data.good_labels). If there "
            f"are none, list the classes in {CLASSES_FILE}."
        )


# === Several lines ===


def _listed_twice(path: Path, rows: Sequence[ManifestRow]) -> Iterator[DataSetIssue]:
    named: set[str] = set()
    for same in _shared(rows, lambda row: row.image.resolve()):
        labels = sorted({row.label for row in same})
        said = f"with the labels {' and '.join(labels)}" if len(labels) > 1 else f"as {labels[0]}"
        text = (
            f"the photograph {same[0].image} is listed {len(same)} times, {said}. Keep one line; write "
            "several boxes of a photograph into one line, separated by ';'."
        )
        for name in sorted({row.name for row in same}):
            yield _problem(path, [row.line for row in same], text, name)
            named.add(name)
    for same in _shared(rows, lambda row: row.name):
        if same[0].name not in named:
            text = (
                f"{' and '.join(str(row.image) for row in same)} have the same name '{same[0].name}'. Give "
                "them different names in the column 'name'."
            )
            yield _problem(path, [row.line for row in same], text, same[0].name)


def _split_groups(path: Path, rows: Sequence[ManifestRow]) -> Iterator[DataSetIssue]:
    for same in _shared([row for row in rows if row.split], lambda row: row.group):
        first = {row.split: row for row in reversed(same)}
        if len(first) > 1:
            text = (
                f"the group '{same[0].group}' is assigned to {' and '.join(sorted(map(str, first)))}. All "
                "photographs of a group belong to one split."
            )
            yield _problem(path, sorted(row.line for row in first.values()), text, same[0].group)


def _shared(
    rows: Sequence[ManifestRow], key: Callable[[ManifestRow], Hashable]
) -> Iterator[list[ManifestRow]]:
    """The rows of each key that more than one row has."""
    by_key: dict[Hashable, list[ManifestRow]] = defaultdict(list)
    for row in rows:
        by_key[key(row)].append(row)
    return (same for same in by_key.values() if len(same) > 1)


def _problem(path: Path, lines: Sequence[int], text: str, name: str) -> DataSetIssue:
    return problem(_place(path, lines), text, name, Cause("manifest_line"))


def _place(path: Path, lines: Sequence[int]) -> str:
    return f"{path}, line{'s' if len(lines) > 1 else ''} {' and '.join(map(str, lines))}"
