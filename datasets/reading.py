"""Record → Sample: the one place where a photograph and its mask become pixels."""

import hashlib
from dataclasses import dataclass

from datasets.sample import Record, Sample
from datasets.shard_file import ShardFile, read_together
from segdec.errors import DatasetError
from segdec.images import decode_image, decode_mask, read_file


@dataclass(frozen=True)
class Files:
    """The files of a record, undecoded; `mask` is None where there is none."""

    photograph: bytes
    mask: bytes | None

    def digests(self) -> tuple[str, ...]:
        """SHA-256 of the photograph's file and of the mask's, where there is one, in hex."""
        files = (self.photograph,) if self.mask is None else (self.photograph, self.mask)
        return tuple(hashlib.sha256(data).hexdigest() for data in files)


def read(record: Record, *, white_level: int | None = None) -> Sample:
    """Read the photograph and the mask of `record`.

    Args:
        record: What to read.
        white_level: Value of a 16-bit photograph that becomes 255, as the model's `input.white_level` says.

    Returns:
        The sample: image uint8 [H, W, C], mask uint8 [H, W] (255 where any value is above 0) or None.

    Raises:
        ImageError: When a file cannot be read; the message names it.
        DatasetError: When the mask is not of the photograph's size, or a shard is damaged.
    """
    return decode(record, read_files(record), white_level=white_level)


def read_files(record: Record) -> Files:
    """Read the files of `record`, in one access where they lie in one place; raises as `read`."""
    photograph, mask = record.image_path, record.mask_path
    if isinstance(photograph, ShardFile) and isinstance(mask, ShardFile):
        return Files(*read_together(photograph, mask))
    return Files(read_file(photograph), None if mask is None else read_file(mask))


def decode(record: Record, files: Files, *, white_level: int | None = None) -> Sample:
    """Turn the files of `record` into pixels; takes, returns and raises as `read`."""
    image = decode_image(files.photograph, str(record.image_path), white_level=white_level).pixels
    mask = None if files.mask is None else decode_mask(files.mask, str(record.mask_path))
    if mask is not None and mask.shape != image.shape[:2]:
        raise DatasetError(
            f"The mask {record.mask_path} is {_size(mask.shape)}, its photograph {record.image_path} is "
            f"{_size(image.shape)}. A mask has the size of its photograph: draw it anew on the photograph, "
            "or check that the two belong together."
        )
    return Sample(name=record.name, image=image, mask=mask, label=record.label)


class DigestingReader:
    """Reads records and keeps the digests of their files, so that none is read again for its digest.

    Args:
        white_level: As in `read`.
    """

    def __init__(self, white_level: int | None = None) -> None:
        self._white_level = white_level
        self._digests: dict[str, tuple[str, ...]] = {}

    def read(self, record: Record) -> Sample:
        """The sample of `record`; see `read`."""
        files = read_files(record)
        if record.digests is None and record.name not in self._digests:
            self._digests[record.name] = files.digests()
        return decode(record, files, white_level=self._white_level)

    def digests(self, record: Record) -> tuple[str, ...]:
        """SHA-256 of the files of `record`, in hex; they are read when neither index nor reader knows it.

        Raises:
            ImageError: When a file cannot be read; the message names it.
        """
        if record.digests is not None:
            return record.digests
        if record.name not in self._digests:
            self._digests[record.name] = read_files(record).digests()
        return self._digests[record.name]


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}×{shape[0]} pixels (width × height)"
