"""Assigns records to shards."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from datasets.sample import Dataset, Record, Split
from datasets.shard_file import ShardFile
from datasets.splitting import SPLITS
from segdec.errors import DatasetError


@dataclass(frozen=True)
class PlannedShard:
    """A shard to write: number, file name, split, and records in their order."""

    number: int
    name: str
    split: Split
    records: tuple[Record, ...]


def packable(dataset: Dataset) -> Dataset:
    """Returns the data set without records that have no split; raises DatasetError if none has one."""
    assigned = dataset.assigned()
    if not assigned.records:
        raise DatasetError(
            f"None of the {len(dataset.records)} photographs has a split, so there is nothing to pack. Write "
            "a split file (python -m datasets split) and give --splits FILE."
        )
    return assigned


def plan_shards(dataset: Dataset, shard_bytes: int) -> list[PlannedShard]:
    """Plans shards of about `shard_bytes`; see `datasets.sharding.packing.pack`."""
    shards: list[PlannedShard] = []
    for split in SPLITS:
        records = dataset.of_split(split)
        needed = -(-sum(map(_size, records)) // shard_bytes)
        count = min(len(records), max(1, needed))
        for number, part in enumerate(_split_evenly(records, count)):
            name = f"{split}-{number:05d}-of-{count:05d}.tfrecord"
            shards.append(PlannedShard(len(shards), name, split, part))
    return shards


def _size(record: Record) -> int:
    """Size of the record's files, bytes; a missing file counts as 0 and is reported when it is read."""
    if isinstance(record.image_file, ShardFile):
        return record.image_file.length
    files = (record.image_file, record.mask_file)
    return sum(file.stat().st_size for file in files if isinstance(file, Path) and file.exists())


def _split_evenly(records: Sequence[Record], count: int) -> list[tuple[Record, ...]]:
    """Returns `count` parts with equal shares of each class, in a mixed order."""
    by_class = sorted(records, key=lambda record: (record.label, _hash(record)))
    return [tuple(sorted(by_class[number::count], key=_hash)) for number in range(count)]


def _hash(record: Record) -> bytes:
    return hashlib.sha256(record.name.encode()).digest()
