"""Record → Sample: the one place where a photograph and its mask become pixels."""

import hashlib
from dataclasses import dataclass

import numpy as np

from datasets.annotations.boxed_mask import BoxedMask
from datasets.annotations.drawn_mask import DrawnMask
from datasets.sample import Record, Sample
from datasets.sharding.shard_file import ShardFile, read_together
from segdec.errors import DatasetError
from segdec.images import DEFAULT_MAX_PIXELS, decode_image, decode_mask, read_file


@dataclass(frozen=True)
class Files:
    """The files of a record, undecoded; `mask` is None where there is none."""

    photograph: bytes
    mask: bytes | None

    def digests(self) -> tuple[str, ...]:
        """SHA-256 of the photograph's file and of the mask's, where there is one, in hex."""
        files = (self.photograph,) if self.mask is None else (self.photograph, self.mask)
        return tuple(hashlib.sha256(data).hexdigest() for data in files)


def read(record: Record, *, white_level: int | None = None, max_pixels: int = DEFAULT_MAX_PIXELS) -> Sample:
    """Read the photograph and the mask of `record`, both whole: 2 to 4 bytes a pixel stay in memory.

    Args:
        record: What to read.
        white_level: Value of a 16-bit photograph that becomes 255, as the model's `input.white_level` says.
        max_pixels: Limit on height × width of each of the two.

    Returns:
        The sample: image uint8 [H, W, C], mask uint8 [H, W] (255 where any value is above the record's
        `mask_threshold`) or None.

    Raises:
        ImageError: When a file cannot be read; the message names it.
        DatasetError: When the mask is not of the photograph's size, or a shard is damaged.
    """
    return decode(
        record, read_files(record, max_pixels=max_pixels), white_level=white_level, max_pixels=max_pixels
    )


def read_files(record: Record, *, max_pixels: int = DEFAULT_MAX_PIXELS) -> Files:
    """Read the files of `record`, in one access where they lie in one place; raises as `read`.

    A mask that is drawn has `max_pixels` at most; the pixels of other files are not looked at.
    """
    photograph, mask = record.image_path, record.mask_path
    if isinstance(mask, DrawnMask | BoxedMask):
        mask = mask.within(max_pixels)
    if isinstance(photograph, ShardFile) and isinstance(mask, ShardFile):
        return Files(*read_together(photograph, mask))
    return Files(read_file(photograph), None if mask is None else read_file(mask))


def decode(
    record: Record,
    files: Files,
    *,
    white_level: int | None = None,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> Sample:
    """Turn the files of `record` into pixels; takes, returns and raises as `read`."""
    name = str(record.image_path)
    image = decode_image(files.photograph, name, white_level=white_level, max_pixels=max_pixels).pixels
    mask = None
    if files.mask is not None:
        name, threshold = str(record.mask_path), record.mask_threshold or 0
        mask = decode_mask(files.mask, name, threshold=threshold, max_pixels=max_pixels)
    if mask is not None and mask.shape != image.shape[:2]:
        # A camera held upright notes that its picture is to be turned; some tools show it unturned.
        turned = mask.shape == image.shape[1::-1]
        hint = " If the photograph was annotated unturned, remove its EXIF orientation." if turned else ""
        raise DatasetError(
            f"The mask {record.mask_path} is {_size(mask.shape)}, its photograph {record.image_path} is "
            f"{_size(image.shape)}. A mask has the size of its photograph: draw it anew on the photograph, "
            f"or check that the two belong together.{hint}"
        )
    return Sample(record.name, image, mask, record.label, record.supervision)


def content_digest(sample: Sample) -> str:
    """SHA-256 of the size and the pixels of the photograph, in hex."""
    digest = hashlib.sha256(repr(sample.image.shape).encode())
    digest.update(np.ascontiguousarray(sample.image).data)
    return digest.hexdigest()


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}×{shape[0]} pixels (width × height)"
