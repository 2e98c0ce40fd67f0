"""Whether a data set can be learnt from: every photograph and mask is looked at once, every offender named.

What cannot be used becomes a `Problem`: files that cannot be read, masks of another size, masks whose values
do not tell what is defective, masks that contradict the class, equal pictures of different classes.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeGuard, overload

import numpy as np

from datasets.check_cache import SAVE_INTERVAL, CheckCache, CheckResult
from datasets.near_duplicates import normalized_thumbnail
from datasets.reading import Files, content_digest, decode, read_files
from datasets.sample import Dataset, LazyRecords, Problem, Record, Sample
from segdec.errors import DatasetError, MissingExtraError, SegdecError
from segdec.images import DEFAULT_MAX_PIXELS
from segdec.imaging.integrity import is_webp

ANY_WHITE_LEVEL = 65535
"""For whoever compares photographs and leaves their brightness to others."""

Progress = Callable[[Sequence[Record]], Iterable[Record]]
Examine = Callable[[Sample], object]
Trusted = Callable[[tuple[int, int, int]], bool]


@dataclass(frozen=True)
class CheckedPhotograph:
    """What checking keeps of one photograph that can be used, beside its record.

    Attributes:
        record: The photograph, its shape and the digests of its files filled in.
        height: Pixels.
        width: Pixels.
        channels: 1 (grey) or 3 (colour).
        defect_px: Pixels of the mask that show a defect; None where it was not read.
        digest: Equal for equal pictures: the SHA-256 of size and pixels, so that the file format does not
            matter; that of the file where it was not read.
        webp: Whether the file is WebP, whose damage goes unnoticed; False where it was not read.
        small: Of `datasets.near_duplicates.normalized_thumbnail`; None where the file was not read.
    """

    record: Record
    height: int
    width: int
    channels: int
    defect_px: int | None
    digest: str
    webp: bool = False
    thumbnail: bytes | None = None


@dataclass(frozen=True)
class CheckedDataset:
    """A data set without its broken records, which are among its problems now, and what was found."""

    dataset: Dataset
    photographs: Sequence[CheckedPhotograph]


class UnreadPhotographs(Sequence[CheckedPhotograph]):
    """Photographs whose index is trusted, each made when it is asked for.

    Args:
        records: Theirs.
    """

    def __init__(self, records: LazyRecords) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> CheckedPhotograph: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[CheckedPhotograph, ...]: ...

    def __getitem__(self, index: int | slice) -> CheckedPhotograph | tuple[CheckedPhotograph, ...]:
        if isinstance(index, slice):
            return tuple(map(_unread, self._records[index]))
        return _unread(self._records[index])

    def equal(self) -> list[tuple[CheckedPhotograph, ...]]:
        """Returns one tuple for each picture that is there more than once."""
        return [tuple(self[index] for index in same) for same in self._records.equal_files()]


def _unread(record: Record) -> CheckedPhotograph:
    if record.shape is None or not record.digests:
        raise ValueError(f"The index knows neither shape nor digests of {record.name}; expected both.")
    return CheckedPhotograph(record, *record.shape, defect_px=None, digest=record.digests[0])


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
) -> CheckedDataset:
    """Reads every photograph and mask once, as many at a time as there are threads.

    Args:
        dataset: What to read.
        white_level: Value of a 16-bit photograph that becomes 255.
        max_pixels: Limit on height × width of photographs and masks.
        threads: How many read; None for one a core, eight at most. Each holds a photograph and its mask.
        progress: Shows how far it is.
        examine: Looks at each sample; raises a `SegdecError` if it cannot be used.
        trusted: Whether a photograph of this shape whose index has its digests needs no reading: it was
            checked when it was packed. Raises as `examine`.
        known: What was found before: files that have not changed since are not read. What is found now is
            added and saved, also if checking is interrupted.

    Raises:
        MissingExtraError: If what reads the files is not installed.
    """
    look = _Look(white_level, max_pixels, examine, trusted, known)
    if isinstance(dataset.records, LazyRecords) and all(map(look.trusts, dataset.records.shapes())):
        unread = UnreadPhotographs(dataset.records)
        if not list(_contradictions(dataset.classes, unread)):
            return CheckedDataset(dataset, unread)
    looks = list(_in_threads(look, dataset.records, threads or min(8, os.cpu_count() or 1), progress))
    photographs = _same_digests([found for found in looks if isinstance(found, CheckedPhotograph)])
    contradictions = list(_contradictions(dataset.classes, photographs))
    broken = {problem.name for problem in contradictions}
    photographs = [photograph for photograph in photographs if photograph.record.name not in broken]
    problems = [found for found in looks if isinstance(found, Problem)] + contradictions
    usable = replace(
        dataset,
        records=tuple(photograph.record for photograph in photographs),
        problems=(*dataset.problems, *sorted(problems, key=lambda problem: problem.name)),
    )
    return CheckedDataset(usable, tuple(photographs))


def raise_if_problems(dataset: Dataset) -> None:
    """Refuses a data set with problems.

    Raises:
        DatasetError: If it has any; one error lists them all.
    """
    if dataset.problems:
        raise DatasetError(describe_problems(dataset.problems))


def describe_problems(problems: Sequence[Problem]) -> str:
    """Says how many there are, one line each, and what to do."""
    many = len(problems) != 1
    return "\n".join(
        [
            f"The data set has {len(problems)} problem{'s' * many}:",
            *(f"  {format_problem(problem)}" for problem in problems),
            f"Repair {'them' if many else 'it'}, or leave out the photographs named here with "
            "--data.skip-broken (python -m training run) or --skip-broken (python -m training fit, "
            "python -m datasets pack, split).",
        ]
    )


def describe_risks(checked: CheckedDataset) -> list[str]:
    """Returns a line for each doubt about photographs that can be used."""
    if isinstance(checked.photographs, UnreadPhotographs):
        return []
    webp = [photograph.record.name for photograph in checked.photographs if photograph.webp]
    if not webp:
        return []
    many = f"1 photograph is a WebP file ({webp[0]})"
    if len(webp) > 1:
        many = f"{len(webp)} photographs are WebP files (the first: {webp[0]})"
    return [
        f"{many}. Damage goes unnoticed in these, so look at them; the service and the command line refuse "
        "them unless --accept-webp is given. Consider saving them as PNG."
    ]


def format_problem(problem: Problem) -> str:
    """Returns one line that names the place once; bytes that are no UTF-8 in file names are escaped."""
    text, place = " ".join(problem.text.split()), " ".join(problem.place.split())
    line = text if place in text else f"{place}: {text}"
    return line.encode(errors="backslashreplace").decode()


# === One record ===


def _in_threads(
    look: "_Look",
    records: Sequence[Record],
    threads: int,
    progress: Progress,
) -> Iterator[CheckedPhotograph | Problem]:
    """In the order of `records`; pixels live as long as a thread looks at them."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="check")
    try:
        found = pool.map(look, records)
        for number, _ in enumerate(progress(records), start=1):
            yield next(found)
            if look.known and number % SAVE_INTERVAL == 0:
                look.known.save()
    finally:
        pool.shutdown(cancel_futures=True)  # whoever interrupts does not wait for the rest
        if look.known:
            look.known.save()


@dataclass(frozen=True)
class _Look:
    """Looks at one record; the attributes are arguments of `check_dataset`."""

    white_level: int | None
    max_pixels: int
    examine: Examine | None
    trusted: Trusted | None
    known: CheckCache | None

    def __call__(self, record: Record) -> CheckedPhotograph | Problem:
        try:
            if record.digests and self.trusts(record.shape):
                return _unread(record)
            facts = self._read(record) if self.known is None else self._read_if_new(record, self.known)
        except MissingExtraError:
            raise
        except SegdecError as error:
            return Problem(str(record.image_file), str(error), record.name)
        found = replace(record, shape=facts.shape, digests=facts.digests)
        return CheckedPhotograph(
            found,
            *facts.shape,
            defect_px=facts.defect_px,
            digest=facts.pixels,
            webp=facts.webp,
            thumbnail=facts.thumbnail,
        )

    def trusts(self, shape: tuple[int, int, int] | None) -> bool:
        """Whether photographs of this shape need no reading where an index has their digests."""
        return self.trusted is not None and self._fits(shape) and self.trusted(shape)

    def _fits(self, shape: tuple[int, int, int] | None) -> TypeGuard[tuple[int, int, int]]:
        """Whether the size is known and within the limit; reading a larger one says what is wrong."""
        return shape is not None and shape[0] * shape[1] <= self.max_pixels

    def _read_if_new(self, record: Record, known: CheckCache) -> CheckResult:
        state = known.state(record)
        facts = known.find(state)
        if facts is None or not self._fits(facts.shape):
            files = read_files(record, max_pixels=self.max_pixels)
            facts = known.find_by_digests(state, files.digests())
            if facts is None or not self._fits(facts.shape):
                facts = self._decode(record, files)
            known.store(state, facts)
        return facts

    def _read(self, record: Record) -> CheckResult:
        return self._decode(record, read_files(record, max_pixels=self.max_pixels))

    def _decode(self, record: Record, files: Files) -> CheckResult:
        sample = decode(record, files, white_level=self.white_level, max_pixels=self.max_pixels)
        _check_class(record, sample)
        if self.examine:
            self.examine(sample)
        height, width, channels = sample.image.shape
        defect_px = 0 if sample.mask is None else int(np.count_nonzero(sample.mask))
        return CheckResult(
            (height, width, channels),
            files.digests(),
            defect_px,
            content_digest(sample),
            is_webp(files.photograph),
            normalized_thumbnail(sample.image),
        )


def _check_class(record: Record, sample: Sample) -> None:
    defective = record.label > 0
    if sample.mask is None:
        if defective and record.supervision != "label":
            raise DatasetError(
                f"The photograph {record.image_file} shows a defect but has no mask. Draw it, or say in a "
                f"supervision file that its class is all there is: label  {record.name}"
            )
    elif bool(sample.mask.any()) != defective:
        above = f" (no value above {record.mask_threshold})" if defective and record.mask_threshold else ""
        raise DatasetError(
            f"The mask {record.mask_file} marks {'no' if defective else 'a'} defect{above}, but the class of "
            f"its photograph {record.image_file} is {'one of a defect' if defective else 'good'}. Draw the "
            "mask anew, or give the photograph the class it belongs to."
        )


# === All together ===


def _same_digests(photographs: list[CheckedPhotograph]) -> list[CheckedPhotograph]:
    """Records that were not read get the digest of the pixels where another record of their file was."""
    pixels = {
        f.record.digests[0]: f.digest for f in photographs if f.record.digests and f.defect_px is not None
    }
    return [
        photograph
        if photograph.defect_px is not None
        else replace(photograph, digest=pixels.get(photograph.digest, photograph.digest))
        for photograph in photographs
    ]


def find_duplicates(photographs: Sequence[CheckedPhotograph]) -> list[tuple[CheckedPhotograph, ...]]:
    """Returns one tuple for each picture that is there more than once."""
    if isinstance(photographs, UnreadPhotographs):
        return photographs.equal()
    same: dict[str, list[CheckedPhotograph]] = defaultdict(list)
    for photograph in photographs:
        same[photograph.digest].append(photograph)
    return [tuple(found) for found in same.values() if len(found) > 1]


def _contradictions(classes: tuple[str, ...], photographs: Sequence[CheckedPhotograph]) -> Iterator[Problem]:
    for same in find_duplicates(photographs):
        of_label = {photograph.record.label: photograph.record for photograph in reversed(same)}
        if len(of_label) == 1:
            continue
        for photograph in same:
            label = photograph.record.label
            other = next(record for other, record in of_label.items() if other != label)
            yield Problem(
                str(photograph.record.image_file),
                f"The photograph {photograph.record.image_file} ({classes[label]}) is the same picture as "
                f"{other.image_file} ({classes[other.label]}). Keep it in the class it belongs to.",
                photograph.record.name,
            )
