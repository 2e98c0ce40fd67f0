"""Which record goes into which shard."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from datasets.sample import Dataset, Record, Split
from datasets.shard_file import ShardFile
from datasets.splitting import SPLITS
from segdec.errors import DatasetError


@dataclass(frozen=True)
class PlannedShard:
    """A shard to be written: its number and file name, and its records in their order."""

    number: int
    name: str
    split: Split
    records: tuple[Record, ...]


def packable(dataset: Dataset) -> Dataset:
    """Returns the records that have a split alone.

    Raises:
        DatasetError: If no record has one.
    """
    records = tuple(record for record in dataset.records if record.split is not None)
    if not records:
        raise DatasetError(
            f"None of the {len(dataset.records)} photographs has a split, so there is nothing to pack. "
            "Name them in a split file and give --splits FILE."
        )
    return replace(dataset, records=records)


def plan_shards(dataset: Dataset, shard_bytes: int) -> list[PlannedShard]:
    """Plans the shards of all records that have a split, of about `shard_bytes` each.

    The shards of a split hold each class in equal parts, in an order that depends on the names alone.
    """
    shards: list[PlannedShard] = []
    for split in SPLITS:
        records = dataset.of_split(split)
        wanted = -(-sum(map(_size, records)) // shard_bytes)
        count = min(len(records), max(1, wanted))
        for place, dealt in enumerate(_deal(records, count)):
            name = f"{split}-{place:05d}-of-{count:05d}.tfrecord"
            shards.append(PlannedShard(len(shards), name, split, dealt))
    return shards


def _size(record: Record) -> int:
    """Bytes of the record's files; a file that is gone counts nothing, and is refused when it is read."""
    if isinstance(record.image_file, ShardFile):
        return record.image_file.length
    files = (record.image_file, record.mask_file)
    return sum(file.stat().st_size for file in files if isinstance(file, Path) and file.exists())


def _deal(records: Sequence[Record], count: int) -> list[tuple[Record, ...]]:
    """`count` equal parts, the classes of each mixed."""
    by_class = sorted(records, key=lambda record: (record.label, _hash(record)))
    return [tuple(sorted(by_class[place::count], key=_hash)) for place in range(count)]


def _hash(record: Record) -> bytes:
    return hashlib.sha256(record.name.encode()).digest()
