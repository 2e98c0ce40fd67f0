"""Finds the photograph of each mask by its name, and names what does not pair."""

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
"""What tools put behind the stem of a photograph to name its mask."""


def pair_masks(
    folder: Path, photographs: Mapping[str, Path], good: str
) -> tuple[dict[str, Path], list[Problem]]:
    """Finds the mask of each photograph that has one, by its name, and what does not pair.

    `<folder>/<class>/<stem>.png` belongs to the photograph `<class>/<stem>`; `<stem>_mask`, `<stem>_label`
    and `<stem>_GT` are read likewise where no photograph is named so. `<folder>/<stem>.png` belongs to the
    one photograph with a defect of that stem, or to the one good photograph. A mask that belongs to no
    photograph or to several, two masks of one photograph, masks of a lossy type, and folders of masks that
    cannot be listed are problems; a photograph with a problem has no mask.

    Args:
        folder: Where the masks lie; it need not exist.
        photographs: Name (`<class>/<stem>`) → file.
        good: The folder of the class without defects.

    Raises:
        DatasetError: If `folder` cannot be listed.
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
            problems += _strays(path, owners, folder, photographs)
    for name, masks in found.items():
        problems += _unfit(name, masks, photographs[name])
    broken = {problem.name for problem in problems}
    return {name: masks[0] for name, masks in found.items() if name not in broken}, problems


def _mask_files(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    """The masks in `folder` and the folders there; one that cannot be listed is added to `problems`."""
    if not folder.exists():
        return
    for place in (folder, *subfolders(folder)):
        try:
            found = files(place)
        except DatasetError as error:
            problems.append(Problem(str(place), str(error)))
            continue
        yield from (path for path in found if path.suffix.lower() in SUFFIXES | LOSSY_SUFFIXES)


def _strays(
    path: Path, owners: list[str], folder: Path, photographs: Mapping[str, Path]
) -> Iterator[Problem]:
    """A mask of no photograph, or of several: each of them is in doubt then."""
    if not owners:
        expected = folder.parent / ("<class>" if path.parent == folder else path.parent.name)
        text = f"belongs to no photograph. Expected one named '{path.stem}' in {expected}: add it, or remove"
        yield Problem(str(path), f"The mask {path} {text} the mask.")
    for name in owners:
        text = (
            f"The mask {path} may belong to {' or '.join(str(photographs[name]) for name in owners)}. "
            f"Put it into {folder / owners[0].split('/', 1)[0]} or another class folder beside it."
        )
        yield Problem(str(photographs[name]), text, name)


def _unfit(name: str, masks: list[Path], photograph: Path) -> Iterator[Problem]:
    if len(masks) > 1:
        text = f"has {len(masks)} masks: {' and '.join(map(str, masks))}. Keep one."
        yield Problem(str(photograph), f"The photograph {photograph} {text}", name)
    elif masks[0].suffix.lower() in LOSSY_SUFFIXES:
        yield Problem(
            str(masks[0]),
            f"The mask {masks[0]} is of a type that changes values around edges. Expected one of "
            f"{', '.join(sorted(SUFFIXES))}: draw it anew and save it as PNG.",
            name,
        )
