"""Writes a data set as TFRecord shards, which `datasets.layouts.shards` reads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from datasets import file_systems
from datasets.checking import ANY_WHITE_LEVEL, check_dataset
from datasets.problems import raise_if_problems
from datasets.reading import read_files
from datasets.sample import Dataset
from datasets.shard_file import FOOTER_BYTES, HEADER_BYTES, MASK, NAME, PHOTOGRAPH, encode_record
from datasets.sharding.item_table import ItemTable, PackedItem
from datasets.sharding.shard_index import (
    INDEX_FILE,
    TABLE_FILE,
    PackedShard,
    ShardIndex,
    read_index,
    write_index,
)
from datasets.sharding.shard_plan import PlannedShard, packable, plan_shards
from segdec.errors import DatasetError
from segdec.images import DEFAULT_MAX_PIXELS
from segdec.runtime.files import atomic_folder

DEFAULT_SHARD_MB = 128


def pack(
    dataset: Dataset,
    out: str,
    *,
    shard_mb: int = DEFAULT_SHARD_MB,
    overwrite: bool = False,
    max_pixels: int = DEFAULT_MAX_PIXELS,
    advance: Callable[[], object] = lambda: None,
) -> ShardIndex:
    """Writes the items of `dataset` that have a split to `out`, atomically.

    Each shard of a split holds an equal part of each class, in an order that depends only on the names. Items
    that were not checked yet (see `datasets.checking`) are checked first. `out` is a folder to create, or a
    URL that TensorFlow can write. With `overwrite`, shards there are replaced, never other content.
    `shard_mb` is approximate; `advance` is called after each item.

    Raises:
        DatasetError: If no item has a split, the data set has problems (lists all), or `out` exists or
            cannot be written.
        MissingExtraError: If TensorFlow is not installed.
    """
    file_systems.check_scheme(out)
    if shard_mb < 1:
        raise DatasetError(f"--shard-mb {shard_mb} is too small. Expected at least 1.")
    check_output(dataset, out, overwrite=overwrite)
    # Files are packed unchanged; training sets the white level.
    checked = check_dataset(
        packable(dataset), white_level=ANY_WHITE_LEVEL, max_pixels=max_pixels, trusted=lambda _: True
    ).dataset
    raise_if_problems(checked)
    shards = plan_shards(checked, shard_mb * 1_000_000)
    with _new_set(out, overwrite) as folder:
        written = [_write_shard(folder, shard, max_pixels, advance) for shard in shards]
        items = ItemTable.from_items(entry for _, entries in written for entry in entries)
        index = ShardIndex(dataset.classes, tuple(shard for shard, _ in written), items)
        write_index(folder, index)
    return index


def check_output(dataset: Dataset, out: str, *, overwrite: bool) -> None:
    """Raises DatasetError if `out` exists and may not be replaced."""
    if file_systems.is_url(out):
        taken = file_systems.size(file_systems.join(out, INDEX_FILE)) is not None
    else:
        taken = Path(out).exists()
    if not taken:
        return
    if not overwrite:
        raise DatasetError(f"{out} exists. Choose another path, or give --overwrite to replace shards.")
    try:
        read_index(out)
    except DatasetError as error:
        raise DatasetError(
            f"{out} exists and has no readable shards, so it is not replaced. Choose another path, or "
            "remove it."
        ) from error
    if any(str(item.image_file).startswith(file_systems.join(out, "")) for item in dataset.items):
        raise DatasetError(f"{out} holds the shards that would be packed. Choose another path.")


@contextmanager
def _new_set(out: str, overwrite: bool) -> Iterator[str]:
    """Yields the folder to write to. A URL cannot be replaced atomically: its index is written last."""
    if file_systems.is_url(out):
        file_systems.make_folder(out)
        _remove_set(out)
        yield out
        return
    try:
        with atomic_folder(Path(out), overwrite=overwrite) as staged:
            yield str(staged)
    except OSError as error:
        raise DatasetError(
            f"The shards cannot be written to {out} ({error}). Choose another path."
        ) from error


def _remove_set(out: str) -> None:
    place = file_systems.join(out, INDEX_FILE)
    if file_systems.size(place) is None:
        return
    files = [TABLE_FILE, *(shard.name for shard in read_index(out).shards)]
    file_systems.remove(place)
    for file in (file_systems.join(out, name) for name in files):
        if file_systems.size(file) is not None:
            file_systems.remove(file)


def _write_shard(
    folder: str, shard: PlannedShard, max_pixels: int, advance: Callable[[], object]
) -> tuple[PackedShard, list[PackedItem]]:
    place = file_systems.join(folder, shard.name)
    entries: list[PackedItem] = []
    end = 0
    with file_systems.record_writer(place) as write:
        for item in shard.items:
            files = read_files(item, max_pixels=max_pixels)
            if item.shape is None or files.digests() != item.digests:
                raise DatasetError(
                    f"{item.image_file} or its mask has changed since the check. Pack again when no other "
                    "program writes to the data set."
                )
            features = {NAME: item.name.encode(), PHOTOGRAPH: files.photograph}
            data = encode_record(features if files.mask is None else {**features, MASK: files.mask})
            write(data)
            entries.append(PackedItem(item, shard.number, end, HEADER_BYTES + len(data) + FOOTER_BYTES))
            end += entries[-1].bytes
            advance()
    size = file_systems.size(place)
    if size != end:
        raise DatasetError(
            f"{place} has {size} bytes after {end} were written. Check the disk and pack again."
        )
    return PackedShard(name=shard.name, bytes=end), entries
