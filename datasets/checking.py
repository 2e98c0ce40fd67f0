"""Checks every photograph and mask of a data set once and reports all problems.

Problems are unreadable files, masks of another size, masks with ambiguous values, masks that contradict the
class, and equal pictures with different classes.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import TypeVar, overload

import numpy as np

from datasets.annotations.computed_mask import ComputedMask, source_files
from datasets.causes import Cause, CodedDatasetError, cause_of
from datasets.check_cache import SAVE_INTERVAL, CheckCache, CheckResult
from datasets.class_indices import read_class_indices
from datasets.exif_rotation import Evidence, describe_rotation, find_evidence
from datasets.mask_threshold import UnclearMaskError, advise
from datasets.near_duplicates import normalized_thumbnail
from datasets.problems import describe_causes, list_names
from datasets.reading import Files, content_digest, decode, read_files
from datasets.reading_options import BEFORE_ROTATION
from datasets.sample import Dataset, DataSetIssue, DataSetItem, LazyItems, Sample
from segdec.errors import MissingExtraError, SegdecError
from segdec.images import (
    BLANK_PALETTE,
    DEFAULT_MAX_PIXELS,
    SEVERAL_PICTURES,
    ImageHeader,
    read_file,
    read_header,
)
from segdec.imaging.integrity import is_webp

ANY_WHITE_LEVEL = 65535
"""White level for checks in which brightness does not matter."""

Progress = Callable[[Sequence[DataSetItem]], Iterable[DataSetItem]]
Result = TypeVar("Result")
Examine = Callable[[Sample], object]
Trusted = Callable[[tuple[int, int, int]], bool]


@dataclass(frozen=True)
class CheckedPhotograph:
    """A usable photograph and the result of its check.

    Attributes:
        item: The item, with shape and digests.
        height: Pixels.
        width: Pixels.
        channels: 1 (grey) or 3 (colour).
        defect_px: Number of defective mask pixels; None if the files were not read.
        digest: SHA-256 of size and pixels, equal for equal pictures in any file format; the SHA-256 of the
            file if it was not read.
        webp: Whether the file is WebP, which does not show damage; False if it was not read.
        thumbnail: From `datasets.near_duplicates.normalized_thumbnail`; None if the file was not read.
        bit_depth: Bits per channel of the file; None if it was not read.
        blank: Whether all colours of its palette are the same.
        several_pictures: Whether its file or a mask file has several pictures.
        rotation: What shows whether its annotation was drawn before its EXIF rotation.
    """

    item: DataSetItem
    height: int
    width: int
    channels: int
    defect_px: int | None
    digest: str
    webp: bool = False
    thumbnail: bytes | None = None
    bit_depth: int | None = None
    blank: bool = False
    several_pictures: bool = False
    rotation: Evidence = Evidence.NOT_NEEDED


@dataclass(frozen=True)
class CheckedDataset:
    """A data set whose broken items have become problems, and its checked photographs."""

    dataset: Dataset
    photographs: Sequence[CheckedPhotograph]


class UnreadPhotographs(Sequence[CheckedPhotograph]):
    """Packed photographs that are not read: created on access from the index of their shards."""

    def __init__(self, items: LazyItems) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> CheckedPhotograph: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[CheckedPhotograph, ...]: ...

    def __getitem__(self, index: int | slice) -> CheckedPhotograph | tuple[CheckedPhotograph, ...]:
        if isinstance(index, slice):
            return tuple(map(_unread, self._items[index]))
        return _unread(self._items[index])

    def duplicates(self) -> list[tuple[CheckedPhotograph, ...]]:
        """Returns the result of `find_duplicates`, from the digests of the files."""
        return [tuple(self[index] for index in same) for same in self._items.equal_files()]


def _unread(item: DataSetItem) -> CheckedPhotograph:
    if item.shape is None or not item.digests:
        raise ValueError(f"The index has no shape or no digests for {item.name}; expected both.")
    return CheckedPhotograph(item, *item.shape, defect_px=None, digest=item.digests[0])


@dataclass(frozen=True)
class UnclearMask(DataSetIssue):
    """A mask of more than two values and the threshold that fits it."""

    threshold: int = 0


def check_dataset(
    dataset: Dataset,
    *,
    white_level: int | None = None,
    max_pixels: int = DEFAULT_MAX_PIXELS,
    threads: int | None = None,
    progress: Progress = iter,
    examine: Examine | None = None,
    trusted: Trusted | None = None,
    known: CheckCache | None = None,
    strict: bool = False,
) -> CheckedDataset:
    """Reads every photograph and mask once, in parallel.

    If masks are unclear and hold class indices, they are read again as such: the data set of the result has
    other masks and a note.

    Args:
        dataset: The data set.
        white_level: Value of a 16-bit photograph that becomes 255.
        max_pixels: Limit on height × width of photographs and masks.
        threads: Number of threads, each with one photograph and mask in memory; None for one per core, at
            most eight.
        progress: Wraps the loop over the items, for example `tqdm`.
        examine: Additional check of each sample; raises a `SegdecError` if it cannot be used.
        trusted: Returns whether packed photographs of this shape need not be read, because they were
            checked when packed. Raises the same errors as `examine`.
        known: Cache of earlier results. New results are added and saved, also after an interruption.
        strict: Turn files with several pictures into problems.

    Raises:
        MissingExtraError: If a package that reads the files is not installed.
    """
    check = _ItemCheck(white_level, max_pixels, examine, trusted, known, strict)
    check_items = partial(
        _checked_items, check, threads=threads or min(8, os.cpu_count() or 1), progress=progress
    )
    if isinstance(dataset.items, LazyItems) and all(map(check.trusts, dataset.items.shapes())):
        unread = UnreadPhotographs(dataset.items)
        if not list(_contradictions(dataset.classes, unread)):
            return CheckedDataset(dataset, unread)
    results = list(check_items(dataset.items))
    if any(isinstance(result, UnclearMask) for result in results):
        indexed = read_class_indices(dataset, max_pixels)
        changed = [own is not other for own, other in zip(dataset.items, indexed.items, strict=True)]
        again = check_items(tuple(compress(indexed.items, changed)))
        results = [next(again) if new else old for old, new in zip(results, changed, strict=True)]
        dataset = indexed
    photographs = _same_digests([result for result in results if isinstance(result, CheckedPhotograph)])
    contradictions = list(_contradictions(dataset.classes, photographs))
    broken = {problem.name for problem in contradictions}
    photographs = [photograph for photograph in photographs if photograph.item.name not in broken]
    problems = _advised([result for result in results if isinstance(result, DataSetIssue)]) + contradictions
    usable = replace(
        dataset,
        items=tuple(photograph.item for photograph in photographs),
        problems=(*dataset.problems, *sorted(problems, key=lambda problem: problem.name)),
    )
    return CheckedDataset(usable, tuple(photographs))


def _advised(problems: list[DataSetIssue]) -> list[DataSetIssue]:
    """Adds the threshold that fits most masks to the problems of unclear ones."""
    thresholds = [problem.threshold for problem in problems if isinstance(problem, UnclearMask)]
    return [
        DataSetIssue(problem.place, f"{problem.text} {advise(thresholds)}", problem.name, problem.cause)
        if isinstance(problem, UnclearMask)
        else problem
        for problem in problems
    ]


def describe_risks(checked: CheckedDataset) -> list[str]:
    """Returns a warning line for each problem that usable photographs may cause."""
    if isinstance(checked.photographs, UnreadPhotographs):
        return []
    dropped = describe_causes(checked.dataset.dropped)
    if blank := [photograph.item.name for photograph in checked.photographs if photograph.blank]:
        dropped.append(f"{list_names(blank)}: {BLANK_PALETTE}.")
    if flat := [photograph.item.name for photograph in checked.photographs if is_flat(photograph)]:
        dropped.append(
            f"{list_names(flat)} show one colour and nothing else. Remove them if the lens was covered, the "
            "lamp off or the file saved wrongly: a model that learns them calls such photographs good."
        )
    if several := [photograph.item.name for photograph in checked.photographs if photograph.several_pictures]:
        dropped.append(
            f"{list_names(several)}: the file of the photograph or of its mask has several pictures; the "
            "first one is used. Save the picture to use as a file of its own; --strict (python -m training "
            "run: --data.strict true) makes these files problems."
        )
    sized_before = [each.name for each in checked.dataset.problems if BEFORE_ROTATION in each.text]
    rotation = {photograph.item.name: photograph.rotation for photograph in checked.photographs}
    dropped += describe_rotation(rotation, sized_before)
    webp = [photograph.item.name for photograph in checked.photographs if photograph.webp]
    if not webp:
        return dropped
    files = f"1 photograph is a WebP file ({webp[0]})"
    if len(webp) > 1:
        files = f"{len(webp)} photographs are WebP files (the first: {webp[0]})"
    return [
        *dropped,
        f"{files}. WebP does not show damage, so inspect them by eye. The service and the command line "
        "reject WebP without --accept-webp. Consider saving them as PNG.",
    ]


def is_flat(photograph: CheckedPhotograph) -> bool:
    """Returns whether the photograph shows one colour and nothing else."""
    return photograph.thumbnail is not None and not photograph.blank and not photograph.thumbnail.strip(b"\0")


# === One item ===


def map_in_threads(
    work: Callable[[DataSetItem], Result], items: Sequence[DataSetItem], threads: int, progress: Progress
) -> Iterator[Result]:
    """Yields results in the order of `items`; an interruption does not wait for the remaining items."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="items")
    try:
        results = pool.map(work, items)
        for _ in progress(items):
            yield next(results)
    finally:
        pool.shutdown(cancel_futures=True)


def _checked_items(
    check: "_ItemCheck", items: Sequence[DataSetItem], threads: int, progress: Progress
) -> Iterator[CheckedPhotograph | DataSetIssue]:
    try:
        for number, result in enumerate(map_in_threads(check, items, threads, progress), start=1):
            yield result
            if check.known and number % SAVE_INTERVAL == 0:
                check.known.save()
    finally:
        if check.known:
            check.known.save()


@dataclass(frozen=True)
class _ItemCheck:
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
                return _unread(item)
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


# === All together ===


def _same_digests(photographs: list[CheckedPhotograph]) -> list[CheckedPhotograph]:
    """Gives items that were not read the pixel digest of an item with the same file, if one was read."""
    read = [photograph for photograph in photographs if photograph.defect_px is not None]
    pixels = {photograph.item.digests[0]: photograph.digest for photograph in read if photograph.item.digests}
    return [
        replace(f, digest=pixels.get(f.digest, f.digest)) if f.defect_px is None else f for f in photographs
    ]


def find_duplicates(photographs: Sequence[CheckedPhotograph]) -> list[tuple[CheckedPhotograph, ...]]:
    """Returns one tuple for each picture that occurs more than once."""
    if isinstance(photographs, UnreadPhotographs):
        return photographs.duplicates()
    same: dict[str, list[CheckedPhotograph]] = defaultdict(list)
    for photograph in photographs:
        same[photograph.digest].append(photograph)
    return [tuple(equal) for equal in same.values() if len(equal) > 1]


def _contradictions(
    classes: tuple[str, ...], photographs: Sequence[CheckedPhotograph]
) -> Iterator[DataSetIssue]:
    for same in find_duplicates(photographs):
        of_label = {photograph.item.label: photograph.item for photograph in reversed(same)}
        if len(of_label) == 1:
            continue
        for item in (photograph.item for photograph in same):
            other = next(other for label, other in of_label.items() if label != item.label)
            text = (
                f"The photograph {item.image_file} ({classes[item.label]}) is the same picture as "
                f"{other.image_file} ({classes[other.label]}). Keep it in the correct class only."
            )
            values = {"label": classes[item.label], "other": other.name, "other_label": classes[other.label]}
            yield DataSetIssue(str(item.image_file), text, item.name, Cause("same_picture", values))
