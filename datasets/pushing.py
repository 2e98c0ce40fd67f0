"""Sends a data set to a service."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from datasets.checking import ANY_WHITE_LEVEL, Progress, map_in_threads
from datasets.conversion import class_mask
from datasets.reading import decode, read_files
from datasets.sample import IGNORED, Dataset, DataSetIssue, DataSetItem
from segdec.annotation_content import AnnotationContent
from segdec.client.data_sets import DataSetClient
from segdec.data_set_schemas import KnownPhotograph, PhotographSummary
from segdec.errors import ServiceError
from segdec.images import DEFAULT_MAX_PIXELS, encode_png

THREADS = 4
"""Photographs that are sent at the same time."""
REJECTED = frozenset({400, 409, 413, 415, 422})
"""Statuses that concern one photograph; after others the rest would fail, too."""
LEFT_OUT = "left_out"
"""Split of the photographs that the split of the data set ignores."""

PushOutcome = Literal["sent", "present", "labelled", "kept", "removed", "split", "other_split"]
"""`kept`: has another label in the service, which stays; `removed`: somebody removed it there; `split`: got a
split, having had none; `other_split`: has another split in the service, which stays.
"""


@dataclass(frozen=True)
class PushResult:
    """What was sent.

    Attributes:
        counts: Number of photographs of each outcome.
        problems: Photographs that the service rejected.
    """

    counts: Counter[str]
    problems: tuple[DataSetIssue, ...]


def push(
    dataset: Dataset,
    target: DataSetClient,
    *,
    max_pixels: int = DEFAULT_MAX_PIXELS,
    progress: Progress = iter,
) -> PushResult:
    """Sends the photographs that the service does not have, and labels and splits for those without one.

    Nothing that people did in the service is changed, so that the same call continues after an interruption.
    `dataset` has checked items, see `datasets.checking`, whose splits are sent; classes that `target` does
    not have are added. `max_pixels` limits photographs and masks; `progress` wraps the loop over the items.

    Raises:
        ServiceError: If the service does not answer, or rejects more than single photographs.
        ImageError, DatasetError: If a file cannot be read.
    """
    _add_classes(dataset, target)
    known = target.known_photographs(list(dict.fromkeys(map(_digest, dataset.items))))
    send = _Sending(dataset, target, known, max_pixels)
    counts: Counter[str] = Counter()
    problems: list[DataSetIssue] = []
    for result in map_in_threads(send, dataset.items, THREADS, progress):
        if isinstance(result, DataSetIssue):
            problems.append(result)
        else:
            counts.update(result)
    return PushResult(counts, tuple(problems))


def _add_classes(dataset: Dataset, target: DataSetClient) -> None:
    """Adds the classes of labels, and all of them if masks have classes of their own."""
    used = {item.label for item in dataset.items}
    if any(item.mask_values is not None for item in dataset.items):
        used |= set(range(len(dataset.classes)))
    known = {name.casefold() for name in target.classes}
    names = [dataset.classes[label] for label in sorted(used - {0})]
    if added := [name for name in names if name.casefold() not in known]:
        target.add_classes(added, unclear_are_defects=True)  # otherwise the check would have asked


def _digest(item: DataSetItem) -> str:
    if not item.digests:
        raise ValueError(f"{item.name} has no digest. Check the data set first.")
    return item.digests[0]


class _Sending:
    """Sends one item; the arguments are those of `push`."""

    def __init__(
        self, dataset: Dataset, target: DataSetClient, known: Mapping[str, KnownPhotograph], max_pixels: int
    ) -> None:
        self._target, self._known, self._max_pixels = target, known, max_pixels
        self._names = dataset.classes
        self._has_split = any(item.split for item in dataset.items)
        numbers = {name.casefold(): number for number, name in enumerate(target.classes, start=1)}
        self._values = np.zeros(256, np.uint8)
        self._values[IGNORED] = IGNORED
        for label, name in enumerate(self._names[1:], start=1):
            self._values[label] = numbers.get(name.casefold(), 0)

    def __call__(self, item: DataSetItem) -> DataSetIssue | list[PushOutcome]:
        try:
            return self._send(item)
        except ServiceError as error:
            if error.status not in REJECTED:
                raise
            return DataSetIssue(str(item.image_file), error.detail, item.name)

    def _send(self, item: DataSetItem) -> list[PushOutcome]:
        known = self._known.get(_digest(item))
        if known is not None and known.is_removed:
            return ["removed"]
        if known is None:
            return ["sent", *self._annotate(item, self._add(item))]
        return ["present", *self._add_split(item, known), *self._annotate(item, known)]

    def _add_split(self, item: DataSetItem, known: KnownPhotograph) -> list[PushOutcome]:
        split = self._split(item)
        if not split or known.split == split:
            return []
        if known.split is not None:
            return ["other_split"]
        self._add(item)
        return ["split"]

    def _annotate(self, item: DataSetItem, stored: PhotographSummary) -> list[PushOutcome]:
        number = int(self._values[item.label]) if item.label else 0
        label = self._target.classes[number - 1] if number else self._names[0]
        if stored.annotation_id is not None:
            return ["kept"] if stored.label != label else []
        content = AnnotationContent(label=label, is_boxes=item.supervision == "box")
        self._target.annotate(stored, content, self._mask(item))
        return ["labelled"]

    def _add(self, item: DataSetItem) -> PhotographSummary:
        data = read_files(item, max_pixels=self._max_pixels).photograph
        part = "" if item.group == item.name else item.group
        return self._target.add_photograph(data, name=item.name, part=part, split=self._split(item))

    def _split(self, item: DataSetItem) -> str:
        return (item.split_word or LEFT_OUT) if self._has_split else ""

    def _mask(self, item: DataSetItem) -> bytes | None:
        if item.mask_file is None or item.supervision == "label":
            return None
        files = read_files(item, max_pixels=self._max_pixels)
        sample = decode(item, files, white_level=ANY_WHITE_LEVEL, max_pixels=self._max_pixels)
        values = self._values[class_mask(sample)]
        return encode_png(values) if values.any() else None
