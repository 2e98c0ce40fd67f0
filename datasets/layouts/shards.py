"""TFRecord shards with an index, as `python -m datasets pack` writes them: in a folder or in a bucket.

    root/index.json                       written last: classes, shards, digest of the table
    root/records.table                    location and digests of each item
    root/train-00000-of-00004.tfrecord    each item: photograph file, mask file, name

The items keep name, label, group, split, supervision and mask threshold of the original layout, and can be
read in any order.
"""

from datasets import file_systems
from datasets.sample import Dataset
from datasets.sharding.shard_index import read_index
from datasets.sharding.shard_items import ShardItems
from segdec.errors import DatasetError


def index(root: str) -> Dataset:
    """Lists the photographs in the shards at `root`, a folder or a URL, without reading them.

    Raises:
        DatasetError: If the index is missing, damaged or too new, or a shard is missing or truncated.
        MissingExtraError: If TensorFlow is not installed.
    """
    file_systems.check_scheme(root)
    shard_index = read_index(root)
    places = [file_systems.join(root, shard.name) for shard in shard_index.shards]
    for place, shard in zip(places, shard_index.shards, strict=True):
        size = file_systems.size(place)
        if size != shard.bytes:
            arrived = "is missing" if size is None else f"has {size} bytes"
            raise DatasetError(
                f"The shard {place} {arrived}. Expected {shard.bytes} bytes: copy it again, or pack the set "
                "again."
            )
    return Dataset(shard_index.classes, ShardItems(shard_index.items, places))
