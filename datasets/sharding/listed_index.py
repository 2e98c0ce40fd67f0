"""Index versions 1 and 2, which list every record in JSON."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from datasets.sample import Split, Supervision
from datasets.sharding.index_parts import Bytes, Digest, IndexPart, PackedShard
from datasets.sharding.record_table import PackedRecord, RecordTable


class ListedRecord(IndexPart):
    """One photograph; the fields are those of `PackedRecord`."""

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


class ListedIndex(IndexPart):
    """Versions 1 and 2. In version 1 all annotations are masks with the threshold 0."""

    format: Literal["segdec shards"]
    version: Literal[1, 2]
    classes: tuple[str, ...]
    shards: tuple[PackedShard, ...]
    records: tuple[ListedRecord, ...]

    @model_validator(mode="after")
    def _check_references(self) -> Self:
        if len({record.name for record in self.records}) < len(self.records):
            raise ValueError("two records have the same name")
        for record in self.records:
            if record.shard >= len(self.shards) or record.label >= len(self.classes):
                raise ValueError(f"the record '{record.name}' refers to an unknown shard or class")
            if record.offset + record.bytes > self.shards[record.shard].bytes:
                raise ValueError(f"the record '{record.name}' is beyond the end of its shard")
        return self

    def table(self) -> RecordTable:
        """Returns the records as a `RecordTable`."""
        return RecordTable.from_records(PackedRecord(**dict(record)) for record in self.records)
