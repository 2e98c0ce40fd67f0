"""TFRecord shards with an index, as `python -m datasets pack` writes them: in a folder or in a bucket.

    root/index.json                       written last: what lies where, and the digest of each file
    root/train-00000-of-00004.tfrecord    each record: the photograph's file, the mask's file, the name

The records keep name, label, group, split, supervision and mask threshold of the layout they were packed
from. A photograph is read by its place, in any order.
"""

from datasets.sample import Dataset, Record
from datasets.sharding import file_systems
from datasets.sharding.shard_file import MASK, PHOTOGRAPH, ShardFile
from datasets.sharding.shard_index import PackedRecord, PackedShard, read_index
from segdec.errors import DatasetError


def index(root: str) -> Dataset:
    """Lists the photographs in the shards at `root`, a folder or a URL, without reading any.

    Raises:
        DatasetError: If the index is missing, damaged or too new, or a shard is missing or was cut.
        MissingExtraError: If TensorFlow is not installed.
    """
    file_systems.check_scheme(root)
    found = read_index(root)
    for shard in found.shards:
        _check_size(root, shard)
    places = [file_systems.join(root, shard.name) for shard in found.shards]
    records = (_record(entry, places[entry.shard]) for entry in found.records)
    return Dataset(classes=found.classes, records=tuple(records))


def _check_size(root: str, shard: PackedShard) -> None:
    place = file_systems.join(root, shard.name)
    size = file_systems.size(place)
    if size != shard.bytes:
        arrived = "is missing" if size is None else f"has {size} bytes"
        raise DatasetError(
            f"The shard {place} {arrived}. Expected {shard.bytes} bytes: copy it again, or pack the set anew."
        )


def _record(entry: PackedRecord, shard: str) -> Record:
    def file(feature: str, sha256: str) -> ShardFile:
        return ShardFile(shard, entry.offset, entry.bytes, entry.name, feature, sha256)

    digests = (entry.photograph_sha256, *([entry.mask_sha256] if entry.mask_sha256 else []))
    return Record(
        entry.name,
        file(PHOTOGRAPH, entry.photograph_sha256),
        file(MASK, entry.mask_sha256) if entry.mask_sha256 else None,
        label=entry.label,
        group=entry.group,
        split=entry.split,
        supervision=entry.supervision,
        mask_threshold=entry.mask_threshold,
        shape=entry.shape,
        digests=digests,
    )
