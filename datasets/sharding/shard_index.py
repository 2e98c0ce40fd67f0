"""The index of a set of shards: the location and the digest of each file.

index.json     classes, shards, size and digest of the table; written last, so it marks a complete set
records.table  a row for each photograph (`datasets.sharding.item_table`)
"""

import hashlib
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from datasets import file_systems
from datasets.sharding.item_table import CLASS_MASK, ItemTable
from segdec.errors import DatasetError

INDEX_FILE = "index.json"
TABLE_FILE = "records.table"
VERSION, VERSION_WITHOUT_CLASSES = 4, 3
"""Version 4 has masks with classes, version 3 has none; a set without such masks is written as version 3."""

Bytes = Annotated[int, Field(ge=0)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, Field(pattern=r"^[\w-][\w.-]*$")]


class _IndexPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PackedShard(_IndexPart):
    """One TFRecord file: its name in the folder of the index, and its size, bytes."""

    name: FileName
    bytes: Bytes


@dataclass(frozen=True)
class ShardIndex:
    """Classes, shards and items of a set."""

    classes: tuple[str, ...]
    shards: tuple[PackedShard, ...]
    items: ItemTable


class _Version(BaseModel):
    """The fields of every index version."""

    format: Literal["segdec shards"]
    version: int


class _Index(_IndexPart):
    """The content of `index.json`."""

    format: Literal["segdec shards"] = "segdec shards"
    version: Literal[3, 4] = 3
    classes: tuple[str, ...]
    shards: tuple[PackedShard, ...]
    records: Annotated[int, Field(ge=0)]
    table_sha256: Digest


def read_index(root: str) -> ShardIndex:
    """Reads the index of the shards at `root`, a folder or a URL.

    Raises:
        DatasetError: If it is missing, damaged or of a newer version.
    """
    place = file_systems.join(root, INDEX_FILE)
    if file_systems.size(place) is None:
        raise DatasetError(
            f"{place} does not exist: there are no shards, or packing was interrupted. Give the folder or "
            "URL of packed shards, or pack again: python -m datasets pack"
        )
    text = file_systems.read(place)
    try:
        header = _Version.model_validate_json(text)
        if header.version > VERSION:
            raise DatasetError(
                f"{place} has the format version {header.version}; this program reads versions up to "
                f"{VERSION}. Use a newer program, or pack the set again with this one."
            )
        index = _Index.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise DatasetError(
            f"{place} is damaged or not an index of shards ({where}: {first['msg']}). Copy it again, or pack "
            "the set again."
        ) from error
    return ShardIndex(index.classes, index.shards, _read_table(root, index))


def _read_table(root: str, index: _Index) -> ItemTable:
    place = file_systems.join(root, TABLE_FILE)
    data = file_systems.read(place)
    if hashlib.sha256(data).hexdigest() != index.table_sha256:
        raise DatasetError(
            f"{place} is damaged, or does not belong to the {INDEX_FILE} in its folder. Copy both again, or "
            "pack the set again."
        )
    try:
        table = ItemTable.from_bytes(data, index.records)
        _check_references(index, table)
    except ValueError as error:
        index_place = file_systems.join(root, INDEX_FILE)
        raise DatasetError(
            f"{index_place} is damaged or not an index of shards ({error}). Copy it again, or pack the set "
            "again."
        ) from error
    return table


def _check_references(index: _Index, table: ItemTable) -> None:
    rows, sizes = table.rows, np.array([shard.bytes for shard in index.shards], np.uint64)
    if (rows["shard"] >= len(index.shards)).any() or (rows["label"] >= len(index.classes)).any():
        raise ValueError("a record refers to an unknown shard or class")
    if (rows["offset"] + rows["bytes"] > sizes[rows["shard"]]).any():
        raise ValueError("a record is beyond the end of its shard")


def write_index(root: str, index: ShardIndex) -> None:
    """Writes `index` to `root`; raises DatasetError if that fails."""
    table = index.items.to_bytes()
    classed = bool((index.items.rows["mask_threshold"] == CLASS_MASK).any())
    header = _Index(
        version=VERSION if classed else VERSION_WITHOUT_CLASSES,
        classes=index.classes,
        shards=index.shards,
        records=len(index.items),
        table_sha256=hashlib.sha256(table).hexdigest(),
    )
    file_systems.write(file_systems.join(root, TABLE_FILE), table)
    file_systems.write(file_systems.join(root, INDEX_FILE), header.model_dump_json(indent=1).encode())
