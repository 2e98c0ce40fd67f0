"""Common parts of all index versions."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Bytes = Annotated[int, Field(ge=0)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, Field(pattern=r"^[\w-][\w.-]*$")]


class IndexPart(BaseModel):
    """Base class of the parts of an index."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class IndexHeader(BaseModel):
    """The fields of every index version."""

    format: Literal["segdec shards"]
    version: int


class PackedShard(IndexPart):
    """One TFRecord file: its name beside the index and its size, bytes."""

    name: FileName
    bytes: Bytes
