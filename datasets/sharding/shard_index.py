"""The index of a set of shards: what lies where, and the digest of each file."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from datasets.sample import Split, Supervision
from datasets.sharding import file_systems
from segdec.errors import DatasetError

INDEX_FILE = "index.json"
VERSION = 2
"""1 told nothing of supervision and mask thresholds: every annotation was a mask, above 0."""

Bytes = Annotated[int, Field(ge=0)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, Field(pattern=r"^[\w-][\w.-]*$")]


class _IndexPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class IndexHeader(BaseModel):
    """What every version of the index begins with."""

    format: Literal["segdec shards"]
    version: int


class PackedShard(_IndexPart):
    """One TFRecord file: its name beside the index and its size, bytes."""

    name: FileName
    bytes: Bytes


class PackedRecord(_IndexPart):
    """One photograph.

    Attributes:
        name: As in the layout it came from, like all up to `mask_threshold`.
        shard: Number of the shard that holds it.
        offset: Where its record starts there, bytes.
        bytes: Length of the record with its frame.
        shape: Height, width (px) and channels of the photograph.
        photograph_sha256: Digest of the photograph's file, in hex.
        mask_sha256: Digest of the mask's file; None without a mask.
    """

    name: str
    split: Split
    label: Annotated[int, Field(ge=0)]
    group: str
    supervision: Supervision = "mask"
    mask_threshold: Annotated[int, Field(ge=0, le=254)] | None = None
    shard: Annotated[int, Field(ge=0)]
    offset: Bytes
    bytes: Bytes
    shape: tuple[int, int, int]
    photograph_sha256: Digest
    mask_sha256: Digest | None


class ShardIndex(_IndexPart):
    """What `index.json` holds. It is written last, so a set that has one is whole."""

    format: Literal["segdec shards"] = "segdec shards"
    version: Literal[1, 2] = 2
    classes: tuple[str, ...]
    shards: tuple[PackedShard, ...]
    records: tuple[PackedRecord, ...]

    @model_validator(mode="after")
    def _check_references(self) -> Self:
        if len({record.name for record in self.records}) < len(self.records):
            raise ValueError("two records have one name")
        for record in self.records:
            if record.shard >= len(self.shards) or record.label >= len(self.classes):
                raise ValueError(f"the record '{record.name}' names a shard or a class that is not listed")
            if record.offset + record.bytes > self.shards[record.shard].bytes:
                raise ValueError(f"the record '{record.name}' lies beyond the end of its shard")
        return self


def read_index(root: str) -> ShardIndex:
    """Reads the index of the shards at `root`, a folder or a URL.

    Raises:
        DatasetError: If there is none, it is damaged or its format is newer.
    """
    place = file_systems.join(root, INDEX_FILE)
    if file_systems.size(place) is None:
        raise DatasetError(
            f"There is no {place}: no shards lie there, or packing them did not come to its end. "
            "Give the folder or URL that was packed to, or pack again: python -m datasets pack"
        )
    text = file_systems.read(place)
    try:
        found = IndexHeader.model_validate_json(text)
        if found.version > VERSION:
            raise DatasetError(
                f"{place} has the format version {found.version}, this program reads up to {VERSION}. "
                "Use a newer program, or pack the set again with this one."
            )
        return ShardIndex.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise DatasetError(
            f"{place} is damaged or no index of shards ({where}: {first['msg']}). Copy it again, or pack the "
            "set anew."
        ) from error


def write_index(root: str, index: ShardIndex) -> None:
    """Writes `index` to `root`; DatasetError if it cannot be written."""
    file_systems.write(file_systems.join(root, INDEX_FILE), index.model_dump_json(indent=1).encode())
