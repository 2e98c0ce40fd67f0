"""Sends a data set to a service."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from datasets.checking import ANY_WHITE_LEVEL
from datasets.conversion import class_mask
from datasets.reading import decode, read_files
from datasets.sample import IGNORED, Dataset, Problem, Record
from segdec.annotation_content import AnnotationContent
from segdec.client.data_sets import DataSetClient, KnownPhotograph, StoredPhotograph
from segdec.errors import ServiceError
from segdec.images import DEFAULT_MAX_PIXELS, encode_png

THREADS = 4
"""Photographs that are sent at the same time."""
REJECTED = frozenset({400, 409, 413, 415, 422})
"""Statuses that concern one photograph; after others the rest would fail, too."""
LEFT_OUT = "left_out"
"""Split of the photographs that the split of the data set leaves out."""

Outcome = Literal["sent", "present", "labelled", "kept", "removed", "split", "other_split"]
"""`kept`: has another label in the service, which stays; `removed`: somebody removed it there; `split`: got a
split, having had none; `other_split`: has another split in the service, which stays.
"""

Progress = Callable[[Sequence[Record]], Iterable[Record]]


@dataclass(frozen=True)
class PushResult:
    """What was sent.

    Attributes:
        counts: Number of photographs of each outcome.
        problems: Photographs that the service rejected.
    """

    counts: Counter[str]
    problems: tuple[Problem, ...]


def push(
    dataset: Dataset,
    target: DataSetClient,
    *,
    max_pixels: int = DEFAULT_MAX_PIXELS,
    progress: Progress = iter,
) -> PushResult:
    """Sends the photographs that the service does not have, and labels and splits for those without one.

    Nothing that people did in the service is changed, so that the same call continues after an interruption.

    Args:
        dataset: Checked records, see `datasets.checking`; their splits are sent.
        target: The data set of the service; classes that it does not have are added.
        max_pixels: Limit on height × width of photographs and masks.
        progress: Wraps the loop over the records.

    Raises:
        ServiceError: If the service does not answer, or rejects more than single photographs.
        ImageError, DatasetError: If a file cannot be read.
    """
    _add_classes(dataset, target)
    known = target.known_photographs(list(dict.fromkeys(map(_digest, dataset.records))))
    send = _Sending(dataset, target, known, max_pixels)
    counts: Counter[str] = Counter()
    problems: list[Problem] = []
    for found in _in_threads(send, dataset.records, progress):
        if isinstance(found, Problem):
            problems.append(found)
        else:
            counts.update(found)
    return PushResult(counts, tuple(problems))


def _add_classes(dataset: Dataset, target: DataSetClient) -> None:
    """Adds the classes of labels, and all of them if masks have classes of their own."""
    used = {record.label for record in dataset.records}
    if any(record.mask_values is not None for record in dataset.records):
        used |= set(range(len(dataset.classes)))
    known = {name.casefold() for name in target.classes}
    names = [dataset.classes[label] for label in sorted(used - {0})]
    if added := [name for name in names if name.casefold() not in known]:
        target.add_classes(added)


def _in_threads(
    send: Callable[[Record], Problem | list[Outcome]], records: Sequence[Record], progress: Progress
) -> Iterator[Problem | list[Outcome]]:
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="push")
    try:
        found = pool.map(send, records)
        for _ in progress(records):
            yield next(found)
    finally:
        pool.shutdown(cancel_futures=True)


def _digest(record: Record) -> str:
    if not record.digests:
        raise ValueError(f"{record.name} has no digest. Check the data set first.")
    return record.digests[0]


class _Sending:
    """Sends one record; the arguments are those of `push`."""

    def __init__(
        self, dataset: Dataset, target: DataSetClient, known: Mapping[str, KnownPhotograph], max_pixels: int
    ) -> None:
        self._target, self._known, self._max_pixels = target, known, max_pixels
        self._names = dataset.classes
        self._has_split = any(record.split for record in dataset.records)
        numbers = {name.casefold(): number for number, name in enumerate(target.classes, start=1)}
        self._values = np.zeros(256, np.uint8)
        self._values[IGNORED] = IGNORED
        for label, name in enumerate(self._names[1:], start=1):
            self._values[label] = numbers.get(name.casefold(), 0)

    def __call__(self, record: Record) -> Problem | list[Outcome]:
        try:
            return self._send(record)
        except ServiceError as error:
            if error.status not in REJECTED:
                raise
            return Problem(str(record.image_file), error.detail, record.name)

    def _send(self, record: Record) -> list[Outcome]:
        known = self._known.get(_digest(record))
        if known is not None and known.is_removed:
            return ["removed"]
        if known is None:
            return ["sent", *self._annotate(record, self._add(record))]
        return ["present", *self._add_split(record, known), *self._annotate(record, known)]

    def _add_split(self, record: Record, known: KnownPhotograph) -> list[Outcome]:
        split = self._split(record)
        if not split or known.split == split:
            return []
        if known.split is not None:
            return ["other_split"]
        self._add(record)
        return ["split"]

    def _annotate(self, record: Record, stored: StoredPhotograph) -> list[Outcome]:
        number = int(self._values[record.label]) if record.label else 0
        label = self._target.classes[number - 1] if number else self._names[0]
        if stored.annotation_id is not None:
            return ["kept"] if stored.label != label else []
        content = AnnotationContent(label=label, is_boxes=record.supervision == "box")
        self._target.annotate(stored, content, self._mask(record))
        return ["labelled"]

    def _add(self, record: Record) -> StoredPhotograph:
        data = read_files(record, max_pixels=self._max_pixels).photograph
        part = "" if record.group == record.name else record.group
        return self._target.add_photograph(data, name=record.name, part=part, split=self._split(record))

    def _split(self, record: Record) -> str:
        return (record.split_word or LEFT_OUT) if self._has_split else ""

    def _mask(self, record: Record) -> bytes | None:
        if record.mask_file is None or record.supervision == "label":
            return None
        files = read_files(record, max_pixels=self._max_pixels)
        sample = decode(record, files, white_level=ANY_WHITE_LEVEL, max_pixels=self._max_pixels)
        values = self._values[class_mask(sample)]
        return encode_png(values) if values.any() else None
