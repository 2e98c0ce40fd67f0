"""What a data set holds, as facts that settings can be chosen by."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import cv2
import numpy as np

from datasets.annotations.labels import DEFECT
from datasets.check_cache import CheckCache, CheckResult, FileState
from datasets.checking import (
    CheckedDataset,
    CheckedPhotograph,
    check_dataset,
    describe_risks,
    format_problem,
    raise_if_problems,
)
from datasets.layouts.split_assignment import SPLITS_FILE
from datasets.leaks import near_duplicates_for_split
from datasets.sample import Dataset, Record, Sample, is_unlocalized
from datasets.splitting import SPLITS, default_split
from segdec.errors import DatasetError
from segdec.images import DEFAULT_MAX_PIXELS
from segdec.runtime.cli import progress_bar

COLOUR_LEVELS = 8
"""Levels of 255 by which the channels of a pixel may differ in a photograph that is grey all the same, on
average over its most coloured hundredth: lossy files leave some."""

SMALLEST_SHARE = 0.05
"""Of the defective photographs, as many may show smaller defects than what is called the smallest."""

MAX_PROPORTION_RATIO = 1.1
"""Factor between the proportions of two photographs that are still scaled to one size."""


@dataclass(frozen=True)
class PixelFacts:
    """What is kept of a photograph's pixels: side of its largest defect, px, and whether colours tell more.

    The side is that of a square of the defect's area; None without a mask.
    """

    defect_px: float | None
    coloured: bool


@dataclass(frozen=True)
class ReadOptions:
    """How photographs and masks are read, as the user says.

    Attributes:
        skip_broken: Whether what cannot be used is left out.
        white_level: Value of a 16-bit photograph that becomes 255; None = as its file says.
        mask_threshold: A mask pixel shows a defect where its value is above this; None = as the layout says.
        max_pixels: Largest photograph, height × width.
    """

    skip_broken: bool = False
    white_level: int | None = None
    mask_threshold: int | None = None
    max_pixels: int = DEFAULT_MAX_PIXELS


@dataclass(frozen=True)
class DatasetProfile:
    """The facts.

    Attributes:
        layout: How the files lie.
        root: Where.
        classes: Names, `good` first.
        counts: Photographs of each class.
        masks, boxes, labels: Defective photographs by what their annotation tells.
        groups: Parts, as the layout tells them.
        height, width: The median size, px.
        largest: Height and width of the largest photograph, px.
        one_size: Whether all have the same size.
        one_shape: Whether all have about the same proportions.
        coloured: Whether colours tell anything.
        stored_in_colour: Whether any photograph has three channels.
        smallest_px: Side of the smallest defect, px; None where no mask or box tells.
        twins: Photographs that have near twins.
        mixed_twins: Clusters of near twins of which some are good and some defective.
        own_split: Whether the set says itself what trains, validates and tests.
        merged: Whether all classes of defects have become one.
        reading: How the files were read.
    """

    layout: str
    root: str
    classes: tuple[str, ...]
    counts: tuple[int, ...]
    masks: int
    boxes: int
    labels: int
    groups: int
    height: int
    width: int
    largest: tuple[int, int]
    one_size: bool
    one_shape: bool
    coloured: bool
    stored_in_colour: bool
    smallest_px: float | None
    twins: int
    mixed_twins: int
    own_split: bool
    merged: bool = False
    read_options: ReadOptions = ReadOptions()

    @property
    def good(self) -> int:
        """Good photographs."""
        return self.counts[0]

    @property
    def defective(self) -> int:
        """Photographs with a defect."""
        return sum(self.counts[1:])

    def with_annotations_of(self, records: Iterable[Record]) -> "DatasetProfile":
        """Returns the same facts with the annotations of these records, which are those that train."""
        masks, boxes, labels = _annotations(records)
        return replace(self, masks=masks, boxes=boxes, labels=labels)


@dataclass(frozen=True)
class ProfiledDataset:
    """A data set that was looked at.

    Attributes:
        survey: The facts.
        checked: The data set and what was found of each photograph.
        twins: Photographs that near twins connect; none where all parts look alike.
        notes: What is to be said beside the facts.
        states: Of each photograph's files, before they were read.
    """

    profile: DatasetProfile
    checked: CheckedDataset
    twins: Sequence[Sequence[CheckedPhotograph]]
    notes: tuple[str, ...]
    states: Mapping[str, FileState | None] = field(default_factory=dict)


def profile_dataset(dataset: Dataset, layout: str, root: Path, read_options: ReadOptions) -> ProfiledDataset:
    """Reads all photographs and masks once.

    Raises:
        DatasetError: If there is none, something cannot be used, or pictures contradict each other in class.
    """
    looks: dict[str, PixelFacts] = {}

    def examine(sample: Sample) -> None:
        looks[sample.name] = measure_sample(sample)

    stat = CheckCache(root, str(root), "")  # nothing is known of them yet
    states = {record.name: stat.state(record) for record in dataset.records}
    checked = check_dataset(
        dataset,
        white_level=read_options.white_level,
        max_pixels=read_options.max_pixels,
        progress=lambda records: progress_bar(records, desc="reading", unit="image", leave=False),
        examine=examine,
    )
    if not read_options.skip_broken:
        raise_if_problems(checked.dataset)
    if not checked.photographs:
        raise DatasetError(f"{root} holds no photograph that can be used. Expected good ones at least.")
    twins, notes = near_duplicates_for_split(checked.photographs)
    own = is_own_split(dataset, root)
    profile = describe_dataset(checked, looks, twins, layout=layout, root=str(root), own_split=own)
    profile = replace(profile, read_options=read_options)
    left_out = tuple(f"left out: {format_problem(problem)}" for problem in checked.dataset.problems)
    return ProfiledDataset(profile, checked, twins, (*left_out, *describe_risks(checked), *notes), states)


def store_checks(profiled: ProfiledDataset, known: CheckCache) -> None:
    """Lets the training that follows know what was read, so that it need not read it again."""
    for photograph in profiled.checked.photographs:
        state, record = profiled.states.get(photograph.record.name), photograph.record
        shape = photograph.height, photograph.width, photograph.channels
        if photograph.defect_px is None or photograph.thumbnail is None or record.digests is None:
            continue
        facts = CheckResult(
            shape,
            record.digests,
            photograph.defect_px,
            photograph.digest,
            photograph.webp,
            photograph.thumbnail,
        )
        known.store(state, facts)
    known.save(parents=True)


def rare_classes(profiled: ProfiledDataset) -> list[str]:
    """Returns the classes of defects that are shown by fewer parts than there are splits.

    Nothing tells how well such a class is told from the others.
    """
    classes = profiled.profile.classes
    if len(classes) == 2:
        return []
    parts = Counter(
        label for label, _ in {(f.record.label, f.record.group) for f in profiled.checked.photographs}
    )
    return [name for label, name in enumerate(classes) if label and parts[label] < len(SPLITS)]


def merge_defects(profiled: ProfiledDataset, why: str) -> ProfiledDataset:
    """Makes one class of all classes of defects, and says why."""
    profile, dataset = profiled.profile, profiled.checked.dataset
    classes = (profile.classes[0], DEFECT)
    note = f"{why}: all become one class (data.merge_defects)"
    photographs = tuple(replace(f, record=_merged(f.record)) for f in profiled.checked.photographs)
    records = tuple(map(_merged, dataset.records))
    return replace(
        profiled,
        profile=replace(profile, classes=classes, counts=(profile.good, profile.defective), merged=True),
        checked=CheckedDataset(replace(dataset, classes=classes, records=records), photographs),
        notes=(*profiled.notes, note),
    )


def _merged(record: Record) -> Record:
    return replace(record, label=min(record.label, 1))


def measure_sample(sample: Sample) -> PixelFacts:
    """Looks at the pixels of one photograph."""
    image = sample.image.astype(np.int16)
    spread = image.max(axis=-1) - image.min(axis=-1)
    coloured = bool(np.percentile(spread, 99) > COLOUR_LEVELS) if image.shape[-1] > 1 else False
    if sample.mask is None or not sample.mask.any():
        return PixelFacts(None, coloured)
    _, _, regions, _ = cv2.connectedComponentsWithStats(sample.mask, connectivity=8)
    return PixelFacts(math.sqrt(float(regions[1:, cv2.CC_STAT_AREA].max())), coloured)


def is_own_split(dataset: Dataset, root: Path) -> bool:
    """Returns whether the split is more than what every set gets that has none."""
    if not any(record.split for record in dataset.records):
        return False
    folder = root if root.is_dir() else root.parent
    if (folder / SPLITS_FILE).exists():
        return True
    return [record.split for record in default_split(dataset).records] != [r.split for r in dataset.records]


def describe_dataset(
    checked: CheckedDataset,
    looks: dict[str, PixelFacts],
    twins: Sequence[Sequence[CheckedPhotograph]],
    *,
    layout: str,
    root: str,
    own_split: bool,
) -> DatasetProfile:
    """Returns the facts of photographs that were looked at."""
    photographs, classes = checked.photographs, checked.dataset.classes
    records = [photograph.record for photograph in photographs]
    heights = np.array([photograph.height for photograph in photographs])
    widths = np.array([photograph.width for photograph in photographs])
    proportions = heights / widths
    masks, boxes, labels = _annotations(records)
    sides = sorted(one.defect_px for one in looks.values() if one.defect_px is not None)
    return DatasetProfile(
        layout=layout,
        root=root,
        classes=classes,
        counts=tuple(sum(record.label == label for record in records) for label in range(len(classes))),
        masks=masks,
        boxes=boxes,
        labels=labels,
        groups=len({record.group for record in records}),
        height=int(np.median(heights)),
        width=int(np.median(widths)),
        largest=(int(heights.max()), int(widths.max())),
        one_size=len({*zip(heights.tolist(), widths.tolist(), strict=True)}) == 1,
        one_shape=bool(proportions.max() <= MAX_PROPORTION_RATIO * proportions.min()),
        coloured=any(one.coloured for one in looks.values()),
        stored_in_colour=any(photograph.channels > 1 for photograph in photographs),
        smallest_px=sides[int(SMALLEST_SHARE * len(sides))] if sides else None,
        twins=sum(map(len, twins)),
        mixed_twins=sum(len({photograph.record.label > 0 for photograph in same}) > 1 for same in twins),
        own_split=own_split,
    )


def _annotations(records: Iterable[Record]) -> tuple[int, int, int]:
    """How many defective photographs have a mask, a box, or a label alone."""
    defective = [record for record in records if record.label]
    labels = sum(map(is_unlocalized, defective))
    boxes = sum(record.supervision == "box" and not is_unlocalized(record) for record in defective)
    return len(defective) - boxes - labels, boxes, labels
