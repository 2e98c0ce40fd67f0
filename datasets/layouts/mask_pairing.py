"""Pairs photographs and masks by name."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from datasets.layouts.listing import files, subfolders
from datasets.sample import Problem
from segdec.errors import DatasetError

SUFFIXES = frozenset({".png", ".bmp", ".tif", ".tiff"})
LOSSY_SUFFIXES = frozenset({".jpg", ".jpeg", ".webp"})

_ENDING = re.compile("_(mask|label|gt)$", re.IGNORECASE)
"""Suffixes of mask names, after the stem of the photograph."""


def pair_masks(
    folder: Path, photographs: Mapping[str, Path], good: str
) -> tuple[dict[str, Path], list[Problem]]:
    """Finds the mask of each photograph by name; returns masks and problems.

    `<folder>/<class>/<stem>.png` belongs to the photograph `<class>/<stem>`, and so do `<stem>_mask`,
    `<stem>_label` and `<stem>_GT` unless a photograph has this stem. `<folder>/<stem>.png` belongs to the
    only defective photograph with this stem, or to the only good one. Problems are masks of no photograph or
    of several, two masks of one photograph, masks of a lossy type, and folders that cannot be listed. A
    photograph with a problem has no mask.

    `folder` need not exist; DatasetError if it cannot be listed. `photographs` are name (`<class>/<stem>`) →
    file; `good` is the folder of good photographs.
    """
    found: dict[str, list[Path]] = defaultdict(list)
    problems: list[Problem] = []
    by_stem: dict[str, list[str]] = defaultdict(list)
    for name in photographs:
        by_stem[name.split("/", 1)[1]].append(name)
    for path in _mask_files(folder, problems):
        stem = path.stem if path.stem in by_stem else _ENDING.sub("", path.stem)
        owners = by_stem.get(stem, [])
        if path.parent != folder:
            owners = [name for name in owners if name == f"{path.parent.name}/{stem}"]
        else:
            owners = [name for name in owners if not name.startswith(f"{good}/")] or owners
        if len(owners) == 1:
            found[owners[0]].append(path)
        else:
            problems += _unpaired(path, owners, folder, photographs)
    for name, masks in found.items():
        problems += _unfit(name, masks, photographs[name])
    broken = {problem.name for problem in problems}
    return {name: masks[0] for name, masks in found.items() if name not in broken}, problems


def _mask_files(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    """The masks in `folder` and its subfolders; a subfolder that cannot be listed becomes a problem."""
    if not folder.exists():
        return
    for place in (folder, *subfolders(folder)):
        try:
            found = files(place)
        except DatasetError as error:
            problems.append(Problem(str(place), str(error)))
            continue
        yield from (path for path in found if path.suffix.lower() in SUFFIXES | LOSSY_SUFFIXES)


def _unpaired(
    path: Path, owners: list[str], folder: Path, photographs: Mapping[str, Path]
) -> Iterator[Problem]:
    """Yields a problem for a mask without a photograph, or for each of several possible photographs."""
    if not owners:
        expected = folder.parent / ("<class>" if path.parent == folder else path.parent.name)
        text = f"has no photograph. Expected one named '{path.stem}' in {expected}: add it, or remove"
        yield Problem(str(path), f"The mask {path} {text} the mask.")
    for name in owners:
        text = (
            f"The mask {path} may belong to {' or '.join(str(photographs[name]) for name in owners)}. "
            f"Move it to {folder / owners[0].split('/', 1)[0]} or the folder of another class."
        )
        yield Problem(str(photographs[name]), text, name)


def _unfit(name: str, masks: list[Path], photograph: Path) -> Iterator[Problem]:
    if len(masks) > 1:
        text = f"has {len(masks)} masks: {' and '.join(map(str, masks))}. Keep one."
        yield Problem(str(photograph), f"The photograph {photograph} {text}", name)
    elif masks[0].suffix.lower() in LOSSY_SUFFIXES:
        text = (
            f"has a lossy type, which changes values. Expected one of {', '.join(sorted(SUFFIXES))}: draw it"
        )
        yield Problem(str(masks[0]), f"The mask {masks[0]} {text} again and save it as PNG.", name)
