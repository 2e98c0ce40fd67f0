"""Decides about photographs of which neither a folder, nor a mask, nor an annotation states the class."""

from collections.abc import Collection, Mapping
from pathlib import Path

from datasets.annotations.labels import DEFECT, GOOD
from datasets.formats.annotation_files import FORMATS
from datasets.problems import list_names
from datasets.sample import Problem
from segdec.errors import DatasetError


def resolve_unlabelled(
    root: Path,
    unlabelled: Mapping[str, Path],
    formats: Collection[str],
    *,
    has_classes: bool,
    has_problems: bool,
    has_orphans: bool,
    advice: str,
) -> tuple[list[Problem], set[str], list[str]]:
    """Decides about photographs without a class.

    They are good if a tool writes files only for photographs with defects (LabelMe, YOLO), and left out if
    annotation files list all their photographs (COCO, CVAT, Label Studio), or if an annotation file has no
    photograph: it may belong to one of these, under another name. With class folders or masks of
    other photographs, and without any annotation file, they are problems.

    Args:
        root: Folder of the data set.
        unlabelled: Name → file of these photographs.
        formats: Names of the formats of the annotation files that were read.
        has_classes: Whether folders or masks state the class of other photographs.
        has_problems: Whether the data set has problems, such as an annotation file that cannot be read.
        has_orphans: Whether the photograph of an annotation file is missing or unknown.
        advice: Sentence for the user, about files that were not read.

    Returns:
        Problems, the names of photographs that are left out, and notes for the user.

    Raises:
        DatasetError: If nothing states the class of any photograph.
    """
    if not unlabelled:
        return [], set(), []
    count = f"Photographs without an annotation: {list_names(list(unlabelled))}"
    listing = [name for name in formats if FORMATS[name].lists_photographs]
    if formats and not has_classes and not listing and not has_orphans:
        return [], set(), [f"{count}, read as good."]
    if has_orphans and not has_classes:
        return [], set(unlabelled), [f"{count}, left out, because annotation files have no photograph."]
    if listing or (has_problems and not has_classes):
        return [], set(unlabelled), [f"{count}, left out."]
    if not has_classes:
        raise DatasetError(_describe_no_class(root, len(unlabelled)) + advice)
    return [_problem(root, name, path) for name, path in unlabelled.items()], set(), []


def _problem(root: Path, name: str, path: Path) -> Problem:
    text = (
        f"The photograph {path} has no class: it is in no class folder and has neither a mask nor an "
        f"annotation. Move it to '{GOOD}' or to the folder of its defect in {root}."
    )
    return Problem(str(path), text, name)


def _describe_no_class(root: Path, count: int) -> str:
    known = "\n".join(f"  {name:<14} {each.files}" for name, each in FORMATS.items())
    return (
        f"{root} holds {count} photographs, but does not show which are good. Put good ones into "
        f"{root / GOOD}, defective ones into {root / DEFECT} and their masks into {root / 'masks' / DEFECT}. "
        f"Searched also for annotations:\n{known}"
    )
