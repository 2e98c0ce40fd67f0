"""Assigns items to shards."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from datasets.annotations.numbered_mask import NumberedMask
from datasets.sample import VALUES_ARE_CLASSES, Dataset, DataSetItem, LazyItems, Split
from datasets.shard_file import ShardFile
from datasets.splitting import SPLITS
from segdec.errors import DatasetError


@dataclass(frozen=True)
class PlannedShard:
    """A shard to write: number, file name, split, and items in their order."""

    number: int
    name: str
    split: Split
    items: tuple[DataSetItem, ...]


def packable(dataset: Dataset) -> Dataset:
    """Returns the data set without items that have no split; the values in masks become class indices.

    Raises DatasetError if no item has a split.
    """
    assigned = dataset.assigned()
    if not assigned.items:
        raise DatasetError(
            f"None of the {len(dataset.items)} photographs has a split, so there is nothing to pack. Write "
            "a split file (python -m datasets split) and give --splits FILE."
        )
    if isinstance(assigned.items, LazyItems):  # of shards
        return assigned
    return assigned.with_items(map(_numbered, assigned.items))


def _numbered(item: DataSetItem) -> DataSetItem:
    """The item with class indices in its mask: the table of a shard does not list values of classes."""
    if item.mask_file is None or all(value == index for value, index in item.mask_values or ()):
        return item
    mask = NumberedMask(item.mask_file, item.mask_values or ())
    return replace(item, mask_file=mask, mask_values=VALUES_ARE_CLASSES, digests=None)


def plan_shards(dataset: Dataset, shard_bytes: int) -> list[PlannedShard]:
    """Plans shards of about `shard_bytes`; see `datasets.sharding.packing.pack`."""
    shards: list[PlannedShard] = []
    for split in SPLITS:
        items = dataset.of_split(split)
        needed = -(-sum(map(_size, items)) // shard_bytes)
        count = min(len(items), max(1, needed))
        for number, part in enumerate(_split_evenly(items, count)):
            name = f"{split}-{number:05d}-of-{count:05d}.tfrecord"
            shards.append(PlannedShard(len(shards), name, split, part))
    return shards


def _size(item: DataSetItem) -> int:
    """Size of the item's files, bytes; a missing file counts as 0 and is reported when it is read."""
    if isinstance(item.image_file, ShardFile):
        return item.image_file.length
    files = (item.image_file, item.mask_file)
    return sum(file.stat().st_size for file in files if isinstance(file, Path) and file.exists())


def _split_evenly(items: Sequence[DataSetItem], count: int) -> list[tuple[DataSetItem, ...]]:
    """Returns `count` parts with equal shares of each class, in a mixed order."""
    by_class = sorted(items, key=lambda item: (item.label, _hash(item)))
    return [tuple(sorted(by_class[number::count], key=_hash)) for number in range(count)]


def _hash(item: DataSetItem) -> bytes:
    return hashlib.sha256(item.name.encode()).digest()
