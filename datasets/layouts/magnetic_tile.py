"""The magnetic tile set in its native layout: 1344 photographs of tiles, 952 of them good.

    root/MT_Free/Imgs/exp1_num_299060.jpg        a good tile; its mask, if there is one, is empty
    root/MT_Blowhole/Imgs/exp1_num_54246.jpg     a tile with blowholes, of any size
    root/MT_Blowhole/Imgs/exp1_num_54246.png     its mask, with smooth edges: above 127 is a defect
    root/MT_Blowhole/Imgs/exp2_num_54273.jpg     the same tile with its second exposure
    root/MT_Break, MT_Crack, MT_Fray, MT_Uneven

`exp1` to `exp6` are exposures. The number after `num` belongs to the photograph, not to the tile: the
exposures of a tile were taken one after the other, so their numbers are close, possibly in different folders.
A group is a run of close numbers without a repeated exposure. Files and folders with other names are
ignored.

A few published masks of MT_Uneven are empty. These photographs have only a class, so their supervision is
`label`. In the other folders of defects an empty mask is a problem.

Reference:
    Y. Huang, C. Qiu, K. Yuan, Surface defect saliency of magnetic tile, The Visual Computer, 2020.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from datasets.annotations.labels import GOOD
from datasets.layouts.published_pairs import Found, build_dataset, pair_files, read_masks
from datasets.listing import subfolders
from datasets.sample import Dataset, DataSetIssue, DataSetItem
from datasets.splitting import default_split
from segdec.errors import DatasetError

MASK_THRESHOLD = 127

MAX_NUMBER_GAP = 200
"""Largest difference of the numbers of consecutive exposures of a tile: mostly 13 to 60, at most 194.

A group may include several folders: exposures that do not show a blowhole are in MT_Free. A tile that was
photographed again with the same exposure becomes another group; `split --group-twins` joins them."""

_PREFIX = "MT_"
FREE = "MT_Free"
_EMPTY_MASKS = "MT_Uneven"
_IMAGES = "Imgs"
_NUMBER = re.compile(r".*/exp(\d+)_num_(\d+)")


def index(root: Path) -> Dataset:
    """Lists the photographs below `root`, named `MT_Crack/Imgs/exp1_num_3191`, grouped by tile.

    A group is named by its first number: `num_3191`. The classes are `good` and those of the folders, for
    example `blowhole`. The set is published without a split, so the default split applies. Problems are
    photographs without a mask, masks without a photograph, masks that cannot be read or contradict their
    folder, and photographs without a number in their name.

    Raises:
        DatasetError: If the root cannot be listed, or lacks MT_Free or any folder of defects.
    """
    folders = [folder.name for folder in subfolders(root) if folder.name.startswith(_PREFIX)]
    defects = [name for name in folders if name != FREE]
    pairs = [entry for name in folders for entry in _pairs(root / name)]
    if FREE not in folders or not defects or not pairs:
        raise DatasetError(
            f"The folder {root} holds no magnetic tiles: its folders {_PREFIX}… are "
            f"{', '.join(folders) or 'none'}. Expected photographs in {root / FREE / _IMAGES}, "
            f"{root / 'MT_Blowhole' / _IMAGES} and so on: give their parent folder."
        )
    classes = (GOOD, *(_class_name(name) for name in defects))
    groups = _groups(entry.name for entry in pairs if isinstance(entry, DataSetItem))
    entries = read_masks(pairs, lambda *entry: _labelled(classes, groups, *entry))
    return default_split(build_dataset(classes, entries))


def _class_name(folder: str) -> str:
    return GOOD if folder == FREE else folder.removeprefix(_PREFIX).lower()


def _pairs(folder: Path) -> Found:
    images = folder / _IMAGES
    if not images.is_dir():
        return [DataSetIssue(str(folder), f"The folder holds no photographs. Expected them in {images}.")]
    prefix, mask_needed = f"{folder.name}/{_IMAGES}", folder.name != FREE
    return pair_files(
        prefix, ".+", (images, ".jpg"), (images, ".png"), threshold=MASK_THRESHOLD, mask_needed=mask_needed
    )


@dataclass
class _Tile:
    """A group under construction."""

    name: str
    last: int
    exposures: set[int]


def _groups(names: Iterable[str]) -> dict[str, str]:
    """Returns the group of each photograph with a number in its name."""
    matches = ((name, _NUMBER.fullmatch(name)) for name in names)
    numbered = sorted((int(match[2]), int(match[1]), name) for name, match in matches if match)
    groups: dict[str, str] = {}
    tiles: list[_Tile] = []  # the most recently extended one is last
    for number, exposure, name in numbered:
        near = [
            tile for tile in tiles if number - tile.last <= MAX_NUMBER_GAP and exposure not in tile.exposures
        ]
        tile = near[-1] if near else _Tile(f"num_{number}", number, set())
        tile.last = number
        tile.exposures.add(exposure)
        groups[name] = tile.name
        tiles = [*(one for one in tiles if one is not tile), tile]
    return groups


def _labelled(
    classes: tuple[str, ...], groups: dict[str, str], item: DataSetItem, marks_defect: bool
) -> DataSetItem | DataSetIssue:
    folder = item.name.partition("/")[0]
    if item.name not in groups:
        text = "The name has no number. Expected exp<exposure>_num_<number>.jpg: restore the published name."
        return DataSetIssue(str(item.image_file), text, item.name)
    item = replace(item, label=classes.index(_class_name(folder)), group=groups[item.name])
    if marks_defect == (folder != FREE):
        return item
    if folder == _EMPTY_MASKS:
        return replace(item, mask_file=None, supervision="label")
    text = (
        f"The mask marks {'a' if marks_defect else 'no'} defect (a value above {MASK_THRESHOLD}), but it is "
        f"in {folder}. Copy it again from the published set, or remove both files."
    )
    return DataSetIssue(str(item.mask_file), text, item.name)
