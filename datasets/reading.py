"""Record → Sample: the one place where a photograph and its mask become pixels."""

import hashlib
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from datasets.annotations.boxed_mask import BoxedMask
from datasets.annotations.class_values import read_classes
from datasets.annotations.drawn_mask import DrawnMask
from datasets.sample import Record, Sample
from datasets.shard_file import ShardFile, read_shard_files
from segdec.errors import DatasetError
from segdec.images import DEFAULT_MAX_PIXELS, decode_image, decode_mask_values, read_file

NAMED_VALUES = 6
"""As many values of a mask are named; a smoothed one has 256."""


@dataclass(frozen=True)
class Files:
    """The files of a record, undecoded; `mask` is None where there is none."""

    photograph: bytes
    mask: bytes | None

    def digests(self) -> tuple[str, ...]:
        """Returns the SHA-256 of the photograph's file and of the mask's, where there is one, in hex."""
        files = (self.photograph,) if self.mask is None else (self.photograph, self.mask)
        return tuple(hashlib.sha256(data).hexdigest() for data in files)


def read(record: Record, *, white_level: int | None = None, max_pixels: int = DEFAULT_MAX_PIXELS) -> Sample:
    """Reads the photograph and the mask of `record`, both whole: 2 to 4 bytes a pixel stay in memory.

    Args:
        record: What to read.
        white_level: Value of a 16-bit photograph that becomes 255, as the model's `input.white_level` says.
        max_pixels: Limit on height × width of each of the two.

    Returns:
        The sample: image uint8 [H, W, C], mask uint8 [H, W] (255 where any value is above the record's
        `mask_threshold`) or None.

    Raises:
        ImageError: If a file cannot be read; the message names it.
        DatasetError: If the mask is not of the photograph's size, if it holds more than 0 and one value
            more and nobody has said which of them show a defect, if it holds a value that is no class where
            its values are classes, or if a shard is damaged.
    """
    return decode(
        record, read_files(record, max_pixels=max_pixels), white_level=white_level, max_pixels=max_pixels
    )


def read_files(record: Record, *, max_pixels: int = DEFAULT_MAX_PIXELS) -> Files:
    """Reads the files of `record`, in one access where they lie in one place; raises as `read`.

    A mask that is drawn has `max_pixels` at most; the pixels of other files are not looked at.
    """
    photograph, mask = record.image_file, record.mask_file
    if isinstance(mask, DrawnMask | BoxedMask):
        mask = mask.within(max_pixels)
    if isinstance(photograph, ShardFile) and isinstance(mask, ShardFile):
        return Files(*read_shard_files(photograph, mask))
    return Files(read_file(photograph), None if mask is None else read_file(mask))


def decode(
    record: Record,
    files: Files,
    *,
    white_level: int | None = None,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> Sample:
    """Turns the files of `record` into pixels; takes, returns and raises as `read`."""
    name = str(record.image_file)
    image = decode_image(
        files.photograph,
        name,
        white_level=white_level,
        max_pixels=max_pixels,
        accept_webp=True,  # whoever trains looks at what there is; checking says what is risked
    ).pixels
    if files.mask is None:
        return Sample(record.name, image, None, record.label, record.supervision)
    values = _decode_mask(record, files.mask, image.shape[:2], max_pixels)
    if record.mask_values is None:
        mask, classes = np.where(values > (record.mask_threshold or 0), np.uint8(255), np.uint8(0)), None
    else:
        mask, classes = read_classes(values, record.mask_values, str(record.mask_file))
    return Sample(record.name, image, mask, record.label, record.supervision, classes)


def content_digest(sample: Sample) -> str:
    """Returns the SHA-256 of the size and the pixels of the photograph, in hex."""
    digest = hashlib.sha256(repr(sample.image.shape).encode())
    digest.update(np.ascontiguousarray(sample.image).data)
    return digest.hexdigest()


def _decode_mask(record: Record, data: bytes, shape: tuple[int, ...], max_pixels: int) -> NDArray[np.uint8]:
    """The values of the mask; `shape` is that of the photograph."""
    values = decode_mask_values(data, str(record.mask_file), max_pixels=max_pixels)
    if values.shape != shape:
        # A camera held upright notes that its picture is to be turned; some tools show it unturned.
        turned = values.shape == shape[::-1]
        hint = " If the photograph was annotated unturned, remove its EXIF orientation." if turned else ""
        raise DatasetError(
            f"The mask {record.mask_file} is {_size(values.shape)}, its photograph {record.image_file} is "
            f"{_size(shape)}. A mask has the size of its photograph: draw it anew on the photograph, "
            f"or check that the two belong together.{hint}"
        )
    if record.mask_threshold is None and record.mask_values is None:
        _check_values(record, values)
    return values


def _check_values(record: Record, mask: NDArray[np.uint8]) -> None:
    """Nobody has said where to cut: the mask may hold 0 and one value more."""
    values = np.flatnonzero(cv2.calcHist([mask], [0], None, [256], [0, 256])).tolist()
    if len(values) > 2 or (len(values) == 2 and values[0] > 0):
        named = ", ".join(map(str, values[:NAMED_VALUES])) + (", …" if len(values) > NAMED_VALUES else "")
        raise DatasetError(
            f"The mask {record.mask_file} has {len(values)} values: {named}. Expected 0 and one value more. "
            "Say above which one a pixel shows a defect: set data.mask_threshold, or --mask-threshold of "
            "a command (127 for smoothed edges, 0 where every number stands for a defect)."
        )


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}×{shape[0]} pixels (width × height)"
