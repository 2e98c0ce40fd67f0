"""Common steps of published layouts: pair photographs and masks, read the masks, build the data set."""

import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from datasets.causes import cause_of
from datasets.listing import files
from datasets.sample import Dataset, DataSetIssue, DataSetItem
from segdec.errors import ImageError
from segdec.images import decode_mask, read_file

Found = list[DataSetItem | DataSetIssue]


def pair_files(
    prefix: str,
    stem: str,
    photographs: tuple[Path, str],
    masks: tuple[Path, str],
    *,
    threshold: int = 0,
    mask_needed: bool = True,
) -> Found:
    """Pairs photographs and masks with the same stem.

    Items are named `<prefix>/<stem>`; `stem` is a regular expression, other files are ignored. `photographs`
    and `masks` are a folder and the end of its file names after the stem. `threshold` is the `mask_threshold`
    of the items; if `mask_needed`, a photograph without a mask is a problem.

    Returns:
        An item of class 0 for each pair, in its own group, and a problem for each file without the other.
    """
    stems, masked = _stems(stem, *photographs), _stems(stem, *masks)
    entries: Found = []
    for key in sorted(stems | masked):
        name, photograph, mask = f"{prefix}/{key}", _file(photographs, key), _file(masks, key)
        if key not in stems:
            entries.append(_missing("photograph", photograph, "mask", mask, name))
        elif key in masked:
            entries.append(DataSetItem(name, photograph, mask, 0, name, mask_threshold=threshold))
        elif mask_needed:
            entries.append(_missing("mask", mask, "photograph", photograph, name))
        else:
            entries.append(DataSetItem(name, photograph, None, 0, name, mask_threshold=threshold))
    return entries


def _stems(stem: str, folder: Path, end: str) -> set[str]:
    pattern = re.compile(f"({stem}){re.escape(end)}")
    matches = (pattern.fullmatch(path.name) for path in (files(folder) if folder.is_dir() else ()))
    return {match[1] for match in matches if match}


def _file(place: tuple[Path, str], stem: str) -> Path:
    folder, end = place
    return folder / f"{stem}{end}"


def _missing(what: str, expected: Path, other: str, path: Path, name: str) -> DataSetIssue:
    text = f"The {other} has no {what}. Expected {expected}: copy it from the published set, or remove the"
    return DataSetIssue(str(path), f"{text} {other}.", name)


def read_masks(entries: Found, label: Callable[[DataSetItem, bool], DataSetItem | DataSetIssue]) -> Found:
    """Reads the masks of the items in parallel; unreadable ones become problems.

    `label` completes an item; its second argument is whether the mask marks a defect.
    """

    def read(entry: DataSetItem | DataSetIssue) -> DataSetItem | DataSetIssue:
        if isinstance(entry, DataSetIssue):
            return entry
        mask, threshold = entry.mask_file, entry.mask_threshold or 0
        try:
            defect = mask is not None and decode_mask(read_file(mask), str(mask), threshold=threshold).any()
            return label(entry, bool(defect))
        except ImageError as error:
            return DataSetIssue(str(entry.mask_file), str(error), entry.name, cause_of(error))

    with ThreadPoolExecutor() as pool:
        return list(pool.map(read, entries))


def build_dataset(classes: tuple[str, ...], entries: Iterable[DataSetItem | DataSetIssue]) -> Dataset:
    """Builds the sorted data set without the items that are named in a problem."""
    items: list[DataSetItem] = []
    problems: list[DataSetIssue] = []
    for entry in entries:
        if isinstance(entry, DataSetItem):
            items.append(entry)
        else:
            problems.append(entry)
    broken = {problem.name for problem in problems}
    items.sort(key=lambda item: item.name)
    problems.sort(key=lambda problem: problem.place)
    return Dataset(classes, tuple(r for r in items if r.name not in broken), tuple(problems))
