"""Reads one photograph with its mask and checks them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from datasets.annotations.computed_mask import ComputedMask, source_files
from datasets.causes import Cause, CodedDatasetError, cause_of
from datasets.check_cache import CheckCache, CheckResult
from datasets.checked_photograph import CheckedPhotograph, unread
from datasets.exif_rotation import Evidence, find_evidence
from datasets.mask_threshold import UnclearMaskError
from datasets.near_duplicates import normalized_thumbnail
from datasets.reading import Files, content_digest, decode, read_files
from datasets.sample import DataSetIssue, DataSetItem, Sample
from segdec.errors import MissingExtraError, SegdecError
from segdec.images import BLANK_PALETTE, SEVERAL_PICTURES, ImageHeader, read_file, read_header
from segdec.imaging.integrity import is_webp

Examine = Callable[[Sample], object]
Trusted = Callable[[tuple[int, int, int]], bool]


@dataclass(frozen=True)
class UnclearMask(DataSetIssue):
    """A mask of more than two values and the threshold that fits it."""

    threshold: int = 0


@dataclass(frozen=True)
class ItemCheck:
    """Checks one item; the attributes are arguments of `check_dataset`."""

    white_level: int | None
    max_pixels: int
    examine: Examine | None
    trusted: Trusted | None
    known: CheckCache | None
    strict: bool

    def __call__(self, item: DataSetItem) -> CheckedPhotograph | DataSetIssue:
        try:
            if item.digests and self.trusts(item.shape):
                return unread(item)
            result = self._read(item)
            if self.strict and result.several_pictures:
                raise CodedDatasetError(
                    f"The file of the photograph {item.image_file}, or of its mask, has several pictures. "
                    "Expected one: save the picture to use as a file of its own.",
                    Cause("several_pictures"),
                )
        except MissingExtraError:
            raise
        except UnclearMaskError as error:
            cause = Cause("mask_unclear", {"mask": str(item.mask_file)})
            return UnclearMask(str(item.image_file), error.found, item.name, cause, error.threshold)
        except SegdecError as error:
            return DataSetIssue(str(item.image_file), str(error), item.name, cause_of(error))
        item = replace(item, shape=result.shape, digests=result.digests)
        return CheckedPhotograph(
            item,
            *result.shape,
            result.defect_px,
            result.pixels,
            result.webp,
            result.thumbnail,
            result.bit_depth,
            result.blank,
            result.several_pictures,
            result.rotation,
        )

    def trusts(self, shape: tuple[int, int, int] | None) -> bool:
        """Whether photographs of this shape need no reading if an index has their digests."""
        return shape is not None and self._fits(shape) and self.trusted is not None and self.trusted(shape)

    def _fits(self, shape: tuple[int, int, int]) -> bool:
        """Whether the size is within the limit; reading a larger photograph raises the error."""
        return shape[0] * shape[1] <= self.max_pixels

    def _read(self, item: DataSetItem) -> CheckResult:
        """The result from the cache if the files have not changed."""
        known, max_pixels = self.known, self.max_pixels
        if known is None:
            return self._decode(item, read_files(item, max_pixels=max_pixels))
        state = known.state(item)
        result = known.find(state)
        if result is None or not self._fits(result.shape):
            files = read_files(item, max_pixels=max_pixels)
            result = known.find(state, files.digests())
            if result is None or not self._fits(result.shape):
                result = self._decode(item, files)
            known.store(state, result)
        return result

    def _decode(self, item: DataSetItem, files: Files) -> CheckResult:
        sample = decode(item, files, white_level=self.white_level, max_pixels=self.max_pixels)
        _check_class(item, sample)
        if self.examine:
            self.examine(sample)
        height, width, channels = sample.image.shape
        defect_px = 0 if sample.mask is None else int(np.count_nonzero(sample.mask))
        pixels, thumbnail = content_digest(sample), normalized_thumbnail(sample.image)
        shape, webp = (height, width, channels), is_webp(files.photograph)
        blank = BLANK_PALETTE in sample.warnings
        masks = self._mask_headers(item, files)
        several = SEVERAL_PICTURES in sample.warnings or any(mask.has_further_pictures for mask in masks)
        is_rotated = any(mask.orientation != 1 for mask in masks)  # as its photograph
        rotation = Evidence.NOT_NEEDED if is_rotated else find_evidence(item, sample)
        rest = webp, thumbnail, sample.bit_depth, blank, several, rotation
        return CheckResult(shape, files.digests(), defect_px, pixels, *rest)

    def _mask_headers(self, item: DataSetItem, files: Files) -> list[ImageHeader]:
        """The headers of the mask files."""
        masks = [] if files.mask is None else [files.mask]
        if isinstance(item.mask_file, ComputedMask):
            masks = [read_file(file) for file in source_files(item.mask_file)]
        name, limit = str(item.mask_file), self.max_pixels
        return [read_header(mask, name, max_pixels=limit) for mask in masks]


def _check_class(item: DataSetItem, sample: Sample) -> None:
    defective = item.label > 0
    if sample.mask is None:
        if defective and item.supervision != "label":
            raise CodedDatasetError(
                f"The photograph {item.image_file} shows a defect but has no mask. Draw one, or add this "
                f"line to a supervision file to use the class alone: label  {item.name}",
                Cause("photograph_without_mask"),
            )
    elif bool(sample.mask.any()) != defective:
        above = f" (no value above {item.mask_threshold})" if defective and item.mask_threshold else ""
        values = {"mask": str(item.mask_file)}
        raise CodedDatasetError(
            f"The mask {item.mask_file} marks {'no' if defective else 'a'} defect{above}, but its "
            f"photograph {item.image_file} is labelled {'defective' if defective else 'good'}. Correct the "
            "mask or the class.",
            Cause("mask_empty", values) if defective else Cause("mask_of_good", values),
        )
