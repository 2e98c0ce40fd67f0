"""A shard index without readable photographs, for tests of large sets."""

import hashlib
from pathlib import Path

from datasets.sample import Record, Split
from datasets.sharding.record_table import PackedRecord, RecordTable
from datasets.sharding.shard_index import PackedShard, ShardIndex, write_index


def write_index_only(folder: Path, count: int) -> None:
    """Writes an index of `count` photographs of 1408 × 512 px, and a shard that contains none of them."""

    def packed(number: int) -> PackedRecord:
        digest, name = hashlib.sha256(str(number).encode()).hexdigest(), f"line-{number % 8}/{number:09}"
        label = int(number % 7 == 0)
        digests = (digest, digest) if label else (digest,)
        split: Split = "train" if number % 5 else "val"
        files = (Path("image"), Path("mask") if label else None)
        record = Record(name, *files, label, name, split, shape=(512, 1408, 1), digests=digests)
        return PackedRecord(record, shard=0, offset=number, bytes=1)

    place = folder / "set"
    place.mkdir(parents=True)
    shard = PackedShard(name="all.tfrecord", bytes=count)
    (place / shard.name).write_bytes(bytes(count))
    table = RecordTable.from_records(map(packed, range(count)))
    write_index(str(place), ShardIndex(("good", "defect"), (shard,), table))
