"""A photograph or mask within a TFRecord shard, and the format of the records there."""

import hashlib
from dataclasses import dataclass

from datasets import file_systems
from segdec.errors import DatasetError

HEADER_BYTES = 12
"""TFRecord: length of the data (8), checksum of the length (4); then the data."""

FOOTER_BYTES = 4
"""TFRecord: checksum of the data."""

PHOTOGRAPH, MASK, NAME = "photograph", "mask", "name"
"""Features of a record, each one byte string."""


@dataclass(frozen=True)
class ShardFile:
    """One file within a record of a shard, with the reading interface of `pathlib.Path`.

    Attributes:
        shard: Path or URL of the shard.
        offset: Start of the record, bytes.
        length: Length of the record with its TFRecord frame, bytes.
        record: Name of the record.
        feature: `photograph` or `mask`.
        sha256: Digest of the file, in hex.
    """

    shard: str
    offset: int
    length: int
    record: str
    feature: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.shard}, {self.feature} of '{self.record}'"

    def read_bytes(self) -> bytes:
        """Reads the file and checks its digest; DatasetError if the shard cannot be read or is damaged."""
        return read_shard_files(self)[0]


def read_shard_files(*files: ShardFile) -> list[bytes]:
    """Reads files of one record in one access; raises the errors of `ShardFile.read_bytes`."""
    first = files[0]
    record = file_systems.read_range(first.shard, first.offset, first.length)
    try:
        features = decode_record(record[HEADER_BYTES:-FOOTER_BYTES])
    except Exception as error:  # protobuf has no public, typed exception
        raise _damaged(first) from error
    contents = [features.get(file.feature, b"") for file in files]
    for data, file in zip(contents, files, strict=True):
        if hashlib.sha256(data).hexdigest() != file.sha256:  # also an index and a shard of different sets
            raise _damaged(file)
    return contents


def encode_record(features: dict[str, bytes]) -> bytes:
    """Packs byte strings by name as a serialised `tf.train.Example`."""
    train = file_systems.tensorflow().train
    lists = {
        name: train.Feature(bytes_list=train.BytesList(value=[value])) for name, value in features.items()
    }
    return bytes(train.Example(features=train.Features(feature=lists)).SerializeToString(deterministic=True))


def decode_record(data: bytes) -> dict[str, bytes]:
    """Unpacks the byte strings of `encode_record`."""
    example = file_systems.tensorflow().train.Example.FromString(data)
    return {name: b"".join(value.bytes_list.value) for name, value in example.features.feature.items()}


def _damaged(file: ShardFile) -> DatasetError:
    return DatasetError(
        f"The shard {file.shard} is damaged: the {file.feature} of the record '{file.record}' at byte "
        f"{file.offset} does not match its digest. Copy the shard again, or pack the set again."
    )
