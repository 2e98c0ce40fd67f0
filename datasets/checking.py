"""Checks every photograph and mask of a data set once and reports all problems.

Problems are unreadable files, masks of another size, masks with ambiguous values, masks that contradict the
class, and equal pictures with different classes.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import TypeVar

from datasets.causes import Cause
from datasets.check_cache import SAVE_INTERVAL, CheckCache
from datasets.checked_photograph import (
    CheckedDataset,
    CheckedPhotograph,
    UnreadPhotographs,
    find_duplicates,
    is_flat,
)
from datasets.class_indices import read_class_indices
from datasets.exif_rotation import describe_rotation
from datasets.item_check import Examine, ItemCheck, Trusted, UnclearMask
from datasets.mask_threshold import advise
from datasets.problems import describe_causes, list_names
from datasets.reading_options import BEFORE_ROTATION
from datasets.sample import Dataset, DataSetIssue, DataSetItem, LazyItems
from segdec.images import BLANK_PALETTE, DEFAULT_MAX_PIXELS

ANY_WHITE_LEVEL = 65535
"""White level for checks in which brightness does not matter."""

Progress = Callable[[Sequence[DataSetItem]], Iterable[DataSetItem]]
Result = TypeVar("Result")


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
    check = ItemCheck(white_level, max_pixels, examine, trusted, known, strict)
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


# === All items ===


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
    check: ItemCheck, items: Sequence[DataSetItem], threads: int, progress: Progress
) -> Iterator[CheckedPhotograph | DataSetIssue]:
    try:
        for number, result in enumerate(map_in_threads(check, items, threads, progress), start=1):
            yield result
            if check.known and number % SAVE_INTERVAL == 0:
                check.known.save()
    finally:
        if check.known:
            check.known.save()


def _same_digests(photographs: list[CheckedPhotograph]) -> list[CheckedPhotograph]:
    """Gives items that were not read the pixel digest of an item with the same file, if one was read."""
    read = [photograph for photograph in photographs if photograph.defect_px is not None]
    pixels = {photograph.item.digests[0]: photograph.digest for photograph in read if photograph.item.digests}
    return [
        replace(f, digest=pixels.get(f.digest, f.digest)) if f.defect_px is None else f for f in photographs
    ]


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
