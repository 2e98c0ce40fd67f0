"""Item → Sample: reads and decodes photographs and masks."""

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from datasets.annotations.class_values import distinct_values, read_classes
from datasets.annotations.computed_mask import within_limit
from datasets.causes import Cause, CodedDatasetError
from datasets.mask_threshold import UnclearMaskError
from datasets.reading_options import BEFORE_ROTATION
from datasets.sample import DataSetItem, Sample
from datasets.shard_file import ShardFile, read_shard_files
from segdec.images import DEFAULT_MAX_PIXELS, decode_image, decode_mask_values, read_file


@dataclass(frozen=True)
class Files:
    """The encoded files of an item; `mask` is None without a mask."""

    photograph: bytes
    mask: bytes | None

    def digests(self) -> tuple[str, ...]:
        """Returns the SHA-256, in hex, of the photograph's file and of the mask's, if there is one."""
        files = (self.photograph,) if self.mask is None else (self.photograph, self.mask)
        return tuple(hashlib.sha256(data).hexdigest() for data in files)


def read(
    item: DataSetItem, *, white_level: int | None = None, max_pixels: int = DEFAULT_MAX_PIXELS
) -> Sample:
    """Reads the photograph and the mask of `item`; takes 2 to 4 bytes of memory a pixel.

    `white_level` is the value of a 16-bit photograph that becomes 255, `max_pixels` the limit of each.

    Raises:
        ImageError: If a file cannot be read.
        DatasetError: If the mask has another size than the photograph, more than two values without a
            threshold, or a value that is not a class, or if a shard is damaged.
    """
    return decode(
        item, read_files(item, max_pixels=max_pixels), white_level=white_level, max_pixels=max_pixels
    )


def read_files(item: DataSetItem, *, max_pixels: int = DEFAULT_MAX_PIXELS) -> Files:
    """Reads the files of `item`, in one access if they are in one shard; raises the errors of `read`.

    `max_pixels` limits masks that are drawn from an annotation; other files are not decoded here.
    """
    photograph, mask = item.image_file, item.mask_file
    if isinstance(photograph, ShardFile) and isinstance(mask, ShardFile):
        return Files(*read_shard_files(photograph, mask))
    return Files(read_file(photograph), None if mask is None else read_file(within_limit(mask, max_pixels)))


def decode(
    item: DataSetItem, files: Files, *, white_level: int | None = None, max_pixels: int = DEFAULT_MAX_PIXELS
) -> Sample:
    """Decodes the files of `item`; arguments, result and errors as in `read`."""
    name = str(item.image_file)
    photograph = decode_image(
        files.photograph,
        name,
        white_level=white_level,
        max_pixels=max_pixels,
        accept_webp=True,  # `datasets.checking.describe_risks` warns
    )
    sample = Sample(
        item.name,
        photograph.pixels,
        None,
        item.label,
        item.supervision,
        bit_depth=photograph.bit_depth,
        warnings=photograph.warnings,
        orientation=photograph.orientation,
    )
    if files.mask is None:
        return sample
    values = _decode_mask(item, files.mask, sample, max_pixels)
    if item.mask_values is None:
        return replace(sample, mask=np.where(values > (item.mask_threshold or 0), np.uint8(255), np.uint8(0)))
    mask, classes, ignored = read_classes(values, item.mask_values, str(item.mask_file))
    if classes is not None and (classes == item.label).all():
        classes = None
    return replace(sample, mask=mask, classes=classes, ignored=ignored)


def content_digest(sample: Sample) -> str:
    """Returns the SHA-256 of the size and the pixels of the photograph, in hex."""
    digest = hashlib.sha256(repr(sample.image.shape).encode())
    digest.update(np.ascontiguousarray(sample.image).data)
    return digest.hexdigest()


def _decode_mask(item: DataSetItem, data: bytes, photograph: Sample, max_pixels: int) -> NDArray[np.uint8]:
    """The values of the mask."""
    shape = photograph.image.shape[:2]
    classes = None if item.mask_values is None else [value for value, _ in item.mask_values]
    values = decode_mask_values(data, str(item.mask_file), max_pixels=max_pixels, classes=classes)
    if values.shape != shape:
        # Some annotation tools ignore the EXIF orientation of a photograph.
        rotated = values.shape == shape[::-1]
        before = rotated and photograph.orientation >= 5
        code = "mask_before_rotation" if before else "mask_of_other_size"
        choice = f", or give {BEFORE_ROTATION}" if before else ""
        hint = f" If the annotation tool ignored the EXIF orientation, remove it{choice}." if rotated else ""
        size, expected = _size(values.shape), _size(shape)
        unit = "pixels (width × height)"
        raise CodedDatasetError(
            f"The mask {item.mask_file} is {size} {unit}, its photograph {item.image_file} is {expected} "
            f"{unit}. Expected equal sizes: draw the mask on this photograph, or check that the two belong "
            f"together.{hint}",
            Cause(code, {"mask": str(item.mask_file), "size": size, "expected": expected}),
        )
    if item.mask_threshold is None and item.mask_values is None:
        _check_values(item, values)
    return values


def _check_values(item: DataSetItem, mask: NDArray[np.uint8]) -> None:
    """Without a threshold the mask may hold 0 and one other value."""
    values = distinct_values(mask)
    if len(values) > 2 or (len(values) == 2 and values[0] > 0):
        raise UnclearMaskError(str(item.mask_file), mask, values)


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}×{shape[0]}"
