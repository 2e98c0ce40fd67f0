"""KolektorSDD in its native layout: 399 photographs of 50 commutators, 52 of them with a defect.

    root/kos01/Part0.jpg           grey, 500 pixels wide and 1235 to 1285 high
    root/kos01/Part0_label.bmp     its mask, above 0 for a defect (one mask also has 85); empty if good

Files and folders with other names are ignored.

Reference:
    D. Tabernik, S. Šela, J. Skvarč, D. Skočaj, Segmentation-based deep-learning approach for
    surface-defect detection, Journal of Intelligent Manufacturing, 2019.
"""

import re
from dataclasses import replace
from pathlib import Path

from datasets.layouts.published_pairs import build_dataset, pair_files, read_masks
from datasets.listing import subfolders
from datasets.sample import Dataset, DataSetItem
from segdec.errors import DatasetError

CLASSES = ("good", "defect")

EXTRA_COPY = "kos21/Part7"
"""Some copies of the set hold kos21/Part6 again under this name; it is ignored."""


def index(root: Path) -> Dataset:
    """Lists the photographs below `root` without a split; each commutator (`kos01`) is a group.

    The label is 1 if the full-size mask holds a value above 0. Problems are photographs without a mask, masks
    without a photograph, and unreadable masks.

    Raises:
        DatasetError: If the root cannot be listed or holds no folder of a commutator.
    """
    folders = [folder for folder in subfolders(root) if re.fullmatch(r"kos\d+", folder.name)]
    entries = [
        entry
        for commutator in folders
        for entry in pair_files(commutator.name, r"Part\d+", (commutator, ".jpg"), (commutator, "_label.bmp"))
        if entry.name != EXTRA_COPY
    ]
    if not entries:
        raise DatasetError(
            f"The folder {root} holds no KolektorSDD photographs. Expected {root / 'kos01' / 'Part0.jpg'} "
            "and so on: give the folder of kos01, kos02, …"
        )
    return build_dataset(CLASSES, read_masks(entries, _labelled))


def _labelled(item: DataSetItem, marks_defect: bool) -> DataSetItem:
    return replace(item, label=int(marks_defect), group=item.name.partition("/")[0])
