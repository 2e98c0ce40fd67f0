"""Photographs of which neither a folder, nor a mask, nor an annotation states the class."""

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from datasets.annotations.labels import DEFECT, GOOD
from datasets.causes import Cause, CodedDatasetError
from datasets.formats.annotation_files import FORMATS
from datasets.listing import item_name, photographs_below
from datasets.problems import list_names
from datasets.sample import Dataset, DataSetIssue, DataSetItem
from segdec.images import SUFFIXES
from segdec.runtime.counts import count_of

IGNORE = "ignore"
"""Label of a photograph whose class is unknown."""


def list_photographs(root: Path) -> Dataset:
    """Lists all photographs below `root` without regard of folders, masks and annotations.

    Their label is `ignore`. Photographs whose names differ only in the suffix have it in their names.

    Raises:
        DatasetError: If a folder cannot be listed, or has no photographs.
    """
    photographs = [(item_name(root, path), path) for path in photographs_below(root)]
    if not photographs:
        types = ", ".join(sorted(SUFFIXES))
        raise CodedDatasetError(
            f"{root} has no photographs. Expected {types}.", Cause("no_photographs", {"types": types})
        )
    counts = Counter(name for name, _ in photographs)
    named = ((name if counts[name] == 1 else f"{name}{path.suffix}", path) for name, path in photographs)
    return Dataset(
        (IGNORE,), tuple(DataSetItem(name, path, None, 0, group=name) for name, path in sorted(named))
    )


def resolve_unlabelled(
    root: Path,
    unlabelled: Mapping[str, Path],
    formats: Mapping[Path, Collection[str]],
    *,
    has_classes: bool,
    has_problems: bool,
    has_orphans: bool,
    advice: str,
) -> tuple[list[DataSetIssue], set[str], list[str]]:
    """Decides about photographs without a class.

    They are good beside photographs with annotations of a tool that writes files only for photographs with
    defects (LabelMe, YOLO), and ignored if annotation files list their photographs (COCO, CVAT, Label
    Studio), or if an annotation file or mask has a problem and may belong to one of these: its photograph was
    not found, or it cannot be read.
    Otherwise, with class folders or masks of other photographs, they are problems. `unlabelled` are name →
    file of these photographs, `formats` folder → formats of the annotations there. The others say whether
    folders or masks state the class of other photographs, whether there are problems, and whether there are
    some of files whose photograph is unknown; `advice` is about files that were not read.

    Returns:
        Problems, the names of photographs that are ignored, and notes for the user.

    Raises:
        DatasetError: If nothing states the class of any photograph.
    """
    if not unlabelled:
        return [], set(), []
    every = {name for of_folder in formats.values() for name in of_folder}
    if has_orphans and not has_classes:
        why = "an annotation or a mask that may belong to them has a problem"
        return [], set(unlabelled), [f"{_count(unlabelled)}, left out: {why}."]
    if not (every or has_classes or has_problems):
        cause = Cause("no_label_anywhere", {"photographs": len(unlabelled)})
        raise CodedDatasetError(_describe_no_class(root, len(unlabelled)) + advice, cause)
    problems, good, left_out = [], [], []
    for name, path in unlabelled.items():
        beside = formats.get(path.parent, () if has_classes else every)
        if any(FORMATS[each].lists_photographs for each in beside or every):
            left_out.append(name)
        elif beside:
            good.append(name)
        elif has_classes:
            problems.append(_problem(name, path))
        else:
            left_out.append(name)
    notes = [f"{_count(good)}, read as good."] * bool(good)
    notes += [f"{_count(left_out)}, left out."] * bool(left_out)
    return problems, set(left_out), notes


def _count(names: Collection[str]) -> str:
    return f"Photographs without an annotation: {list_names(list(names))}"


def _problem(name: str, path: Path) -> DataSetIssue:
    text = (
        f"The photograph {path} has no class: it is in no class folder and has neither a mask nor an "
        f"annotation. Move it to {path.parent / GOOD}, or to a folder with the name of its defect beside "
        "that."
    )
    return DataSetIssue(str(path), text, name, Cause("photograph_without_class"))


def _describe_no_class(root: Path, count: int) -> str:
    known = "\n".join(f"  {name:<14} {each.files}" for name, each in FORMATS.items())
    return (
        f"{root} holds {count_of(count, 'photograph')}, but does not show which are good. Put good ones into "
        f"{root / GOOD}, or name their folder with --good (data.good_labels); put defective ones into "
        f"{root / DEFECT} and their masks into {root / 'masks' / DEFECT}. Searched also for annotations:\n"
        f"{known}"
    )
