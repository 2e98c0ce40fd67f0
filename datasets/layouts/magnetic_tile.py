"""The magnetic tile set in its native layout: 1344 photographs of tiles, 952 of them good.

    root/MT_Free/Imgs/exp1_num_299060.jpg        a good tile; its mask, if there is one, is empty
    root/MT_Blowhole/Imgs/exp1_num_4727.jpg      a tile with blowholes, of any size
    root/MT_Blowhole/Imgs/exp1_num_4727.png      its mask, with smoothed edges: above 127 is defect
    root/MT_Break, MT_Crack, MT_Fray, MT_Uneven

`exp1` to `exp6` are exposures of one tile, and its number stands after `num`: a tile is one group, in
whatever folders its photographs lie. Files and folders of other names are not looked at.

A few published masks of MT_Uneven are empty. Of these photographs the class alone is known, so their
supervision is `label`. In the other folders of defects an empty mask is a problem.

Reference:
    Y. Huang, C. Qiu, K. Yuan, Surface defect saliency of magnetic tile, The Visual Computer, 2020.
"""

import re
from pathlib import Path

from datasets.layouts.listing import subfolders
from datasets.layouts.published_pairs import PublishedPair, collect, named, pair, read_masks
from datasets.sample import Dataset, Problem, Record
from datasets.splitting import default_split
from segdec.errors import DatasetError

GOOD = "good"

MASK_THRESHOLD = 127

_PREFIX = "MT_"
_FREE = "MT_Free"
_EMPTY_MASKS = "MT_Uneven"
_IMAGES = "Imgs"
_PHOTOGRAPH = re.compile(r"(.+)\.jpg")
_MASK = re.compile(r"(.+)\.png")
_STEM = re.compile(r"exp\d+_(num_\d+)")


def index(root: Path) -> Dataset:
    """Lists the photographs below `root`, named `MT_Crack/Imgs/exp1_num_3191`, one group a tile.

    The classes are `good` and those of the folders, for example `blowhole`. The set is published without
    a split: 60 % of the tiles of each class train, 20 % validate and 20 % test. Half a pair, a mask that
    cannot be read or contradicts its folder, and a photograph whose name tells no tile are problems of
    the data set.

    Raises:
        DatasetError: If the root cannot be listed, or lacks MT_Free or any folder of defects.
    """
    folders = [folder.name for folder in subfolders(root) if folder.name.startswith(_PREFIX)]
    defects = [name for name in folders if name != _FREE]
    pairs = [found for name in folders for found in _pairs(root / name)]
    if _FREE not in folders or not defects or not pairs:
        raise DatasetError(
            f"The folder {root} holds no magnetic tiles: of the folders {_PREFIX}… it has "
            f"{', '.join(folders) or 'none'}. Expected photographs in {root / _FREE / _IMAGES}, "
            f"{root / 'MT_Blowhole' / _IMAGES} and so on: give the folder that holds them."
        )
    classes = (GOOD, *(_class_name(name) for name in defects))
    found = read_masks(pairs, lambda *found: _record(classes, *found), threshold=MASK_THRESHOLD)
    return default_split(collect(classes, found))


def _class_name(folder: str) -> str:
    return GOOD if folder == _FREE else folder.removeprefix(_PREFIX).lower()


def _pairs(folder: Path) -> list[PublishedPair | Problem]:
    root, images = folder.parent, folder / _IMAGES
    if images not in subfolders(folder):
        return [Problem(str(folder), f"The folder holds no photographs. Expected them in {images}.")]
    prefix = f"{folder.name}/{_IMAGES}"
    return pair(
        named(images, _PHOTOGRAPH, prefix),
        named(images, _MASK, prefix),
        lambda name: root / f"{name}.jpg",
        lambda name: root / f"{name}.png",
        mask_needed=folder.name != _FREE,
    )


def _record(classes: tuple[str, ...], found: PublishedPair, marks_defect: bool) -> Record | Problem:
    folder, _, stem = found.name.split("/")
    tile = _STEM.fullmatch(stem)
    if tile is None:
        text = "The name tells no tile. Expected exp<exposure>_num_<tile>.jpg: give it its published name."
        return Problem(str(found.photograph), text, found.name)
    known = marks_defect == (folder != _FREE)
    if not known and folder != _EMPTY_MASKS:
        text = (
            f"The mask marks {'a' if marks_defect else 'no'} defect (a value above {MASK_THRESHOLD}), but it "
            f"lies in {folder}. Copy it again from the published set, or remove both files."
        )
        return Problem(str(found.mask), text, found.name)
    return Record(
        found.name,
        found.photograph,
        found.mask if known else None,
        label=classes.index(_class_name(folder)),
        group=tile[1],
        supervision="mask" if known else "label",
        mask_threshold=MASK_THRESHOLD,
    )
