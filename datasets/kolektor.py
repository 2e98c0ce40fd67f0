"""KolektorSDD in its native layout: `kosNN/PartP.jpg` beside `kosNN/PartP_label.bmp`.

Reference:
    D. Tabernik, S. Šela, J. Skvarč, D. Skočaj, Segmentation-based deep-learning approach for
    surface-defect detection, Journal of Intelligent Manufacturing, 2019.
"""

import re
from pathlib import Path

from datasets.listing import files, subfolders
from datasets.sample import Dataset, Record
from segdec.errors import DatasetError
from segdec.images import read_mask

CLASSES = ("good", "defect")

STRAY = "kos21/Part7"
"""Some copies of the set hold a second copy of kos21/Part6 under this name; it is never listed."""

_ITEM = re.compile(r"kos\d+")
_PHOTOGRAPH = re.compile(r"(Part\d+)\.jpg")
_MASK = re.compile(r"(Part\d+)_label\.bmp")


def index(root: Path) -> Dataset:
    """List the photographs below `root`, one group an item (`kos01`), without a split.

    The label is 1 when the full-size mask holds a value above 0: one published mask is drawn with 85.

    Raises:
        DatasetError: When the root cannot be listed or holds no item, or when a photograph or its
            mask is missing.
        ImageError: When a mask cannot be read.
    """
    items = [folder for folder in subfolders(root) if _ITEM.fullmatch(folder.name)]
    records = [record for item in items for record in _index_item(item)]
    if not records:
        raise DatasetError(
            f"The folder {root} holds no KolektorSDD photographs. Expected {root / 'kos01' / 'Part0.jpg'} "
            "and so on: give the folder that holds kos01, kos02, …"
        )
    return Dataset(classes=CLASSES, records=tuple(sorted(records, key=lambda record: record.name)))


def _index_item(item: Path) -> list[Record]:
    found = files(item)
    photographs = _by_part(found, _PHOTOGRAPH)
    masks = _by_part(found, _MASK)
    parts = [part for part in sorted(photographs | masks) if f"{item.name}/{part}" != STRAY]
    for part in parts:
        _check_pair(item, part, photographs, masks)
    return [_record(item.name, part, photographs[part], masks[part]) for part in parts]


def _by_part(found: list[Path], pattern: re.Pattern[str]) -> dict[str, Path]:
    matches = ((pattern.fullmatch(path.name), path) for path in found)
    return {match[1]: path for match, path in matches if match}


def _check_pair(item: Path, part: str, photographs: dict[str, Path], masks: dict[str, Path]) -> None:
    photograph, mask = item / f"{part}.jpg", item / f"{part}_label.bmp"
    if part not in masks:
        raise DatasetError(
            f"The photograph {photograph} has no mask. Expected {mask}: copy it from the published set, "
            "or remove the photograph."
        )
    if part not in photographs:
        raise DatasetError(
            f"The mask {mask} has no photograph. Expected {photograph}: copy it from the published set, "
            "or remove the mask."
        )


def _record(group: str, part: str, photograph: Path, mask: Path) -> Record:
    label = int(read_mask(mask).any())
    return Record(f"{group}/{part}", photograph, mask, label=label, group=group)
