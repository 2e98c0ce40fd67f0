"""The profile of a data set: the facts from which the settings are chosen."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

import cv2
import numpy as np

from datasets.annotations.labels import DEFECT
from datasets.check_cache import CheckCache, CheckResult, FileState
from datasets.checked_photograph import CheckedDataset, CheckedPhotograph
from datasets.checking import check_dataset, describe_risks
from datasets.leaks import near_duplicates_for_split
from datasets.mask_cover import check_mask_cover
from datasets.problems import format_problem, raise_if_problems
from datasets.reading_options import ReadingOptions
from datasets.sample import Dataset, DataSetItem, Sample, is_unlocalized
from datasets.splitting import SPLITS, has_own_split
from segdec.errors import DatasetError
from segdec.runtime.cli import progress_bar

COLOUR_LEVELS = 8
"""Difference of the channels (0…255) up to which an image counts as grey, at the 99th percentile of pixels:
lossy files differ slightly."""

SMALLEST_SHARE = 0.05
"""Quantile of the defect sizes that counts as the smallest defect."""

MAX_PROPORTION_RATIO = 1.1
"""Maximum ratio of two aspect ratios of images that are resized to one size."""


@dataclass(frozen=True)
class PixelFacts:
    """Whether an image has colours; square root of its largest defect's area, px, None without a defect."""

    defect_px: float | None
    coloured: bool


class Orientation(Enum):
    """How good photographs relate to copies of others, rotated by right angles."""

    FIXED = "differ from rotated copies of others"
    ISOTROPIC = "look alike even when rotated"
    ARBITRARY = "resemble rotated copies of others"


@dataclass(frozen=True)
class ProfileOptions(ReadingOptions):
    """Options of reading and checking the files; see `python -m training fit --help`."""

    skip_broken: bool = False
    white_level: int | None = None


@dataclass(frozen=True)
class DatasetProfile:
    """Facts about a data set.

    Attributes:
        masks, boxes, labels: Defective images by kind of annotation.
        groups: Number of parts.
        height, width: Median size, px.
        one_shape: Whether all images have about the same aspect ratio.
        stored_in_colour: Whether any image has three channels.
        smallest_px: 5 % quantile of the defects' sizes (square root of area), px; None if unknown.
        near_duplicates: Number of images with near duplicates.
        mixed_duplicates: Number of clusters of near duplicates with good and defective images.
        merged: Whether all defect classes were merged into one.
        orientation: That of good photographs, as far as known.
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
    one_size: bool
    one_shape: bool
    coloured: bool
    stored_in_colour: bool
    smallest_px: float | None
    near_duplicates: int
    mixed_duplicates: int
    own_split: bool
    merged: bool = False
    options: ProfileOptions = ProfileOptions()
    orientation: Orientation = Orientation.FIXED

    @property
    def good(self) -> int:
        """Number of good images."""
        return self.counts[0]

    @property
    def defective(self) -> int:
        """Number of defective images."""
        return sum(self.counts[1:])

    def with_annotations_of(self, items: Iterable[DataSetItem]) -> "DatasetProfile":
        """Returns the profile with the annotation counts of these items."""
        masks, boxes, labels = _annotations(items)
        return replace(self, masks=masks, boxes=boxes, labels=labels)


@dataclass(frozen=True)
class ProfiledDataset:
    """A data set with its profile, checks, clusters of near duplicates, and notes for the user.

    `states` are those of the files of each image before they were read.
    """

    profile: DatasetProfile
    checked: CheckedDataset
    duplicates: Sequence[Sequence[CheckedPhotograph]]
    notes: tuple[str, ...]
    states: Mapping[str, FileState | None] = field(default_factory=dict)


def profile_dataset(dataset: Dataset, layout: str, root: Path, options: ProfileOptions) -> ProfiledDataset:
    """Reads and checks all images and masks.
    Raises a `DatasetError` if there are no images, unusable ones, or equal images with different classes.
    """
    facts: dict[str, PixelFacts] = {}
    cache = CheckCache(root, str(root), "")  # used for the file states only
    states = {item.name: cache.state(item) for item in dataset.items}
    values = {item.name: item.mask_values for item in dataset.items}
    checked = check_dataset(
        dataset,
        white_level=options.white_level,
        max_pixels=options.max_pixels,
        strict=options.strict,
        progress=lambda items: progress_bar(items, desc="reading", unit="image", leave=False),
        examine=lambda sample: facts.update({sample.name: measure_sample(sample)}),
    )
    for item in checked.dataset.items:
        if item.mask_values != values[item.name]:  # another item, whose state is unknown
            states[item.name] = None
    cover = check_mask_cover(checked, decided=options.invert_masks is not None)
    if not options.skip_broken:
        raise_if_problems(checked.dataset)
    if not checked.photographs:
        raise DatasetError(f"{root} holds no usable photograph. Expected at least good ones.")
    duplicates, notes = near_duplicates_for_split(checked.photographs)
    own = has_own_split(dataset, root)
    profile = build_profile(checked, facts, duplicates, layout=layout, root=str(root), own_split=own)
    profile = replace(profile, options=options)
    skipped = tuple(f"skipped: {format_problem(problem)}" for problem in checked.dataset.problems)
    notes = (*skipped, *checked.dataset.notes, *cover, *describe_risks(checked), *notes)
    return ProfiledDataset(profile, checked, duplicates, notes, states)


def store_checks(profiled: ProfiledDataset, known: CheckCache) -> None:
    """Stores the checks for the training, which then skips them."""
    for photograph in profiled.checked.photographs:
        state, item = profiled.states.get(photograph.item.name), photograph.item
        shape = photograph.height, photograph.width, photograph.channels
        depth, small = photograph.bit_depth, photograph.thumbnail
        if photograph.defect_px is None or small is None or depth is None or item.digests is None:
            continue
        measured = photograph.defect_px, photograph.digest, photograph.webp, small, depth, photograph.blank
        found = photograph.several_pictures, photograph.rotation
        known.store(state, CheckResult(shape, item.digests, *measured, *found))
    known.save(parents=True)


def rare_classes(profiled: ProfiledDataset) -> list[str]:
    """Returns the defect classes with fewer parts than splits, which cannot be evaluated."""
    classes = profiled.profile.classes
    if len(classes) == 2:
        return []
    labelled = {(one.item.label, one.item.group) for one in profiled.checked.photographs}
    parts = Counter(label for label, _ in labelled)
    return [name for label, name in enumerate(classes) if label and parts[label] < len(SPLITS)]


def merge_defects(profiled: ProfiledDataset, why: str) -> ProfiledDataset:
    """Merges all defect classes into one; the reason becomes a note."""
    profile, dataset = profiled.profile, profiled.checked.dataset
    classes = (profile.classes[0], DEFECT)
    note = f"{why}: all defects become one class (data.merge_defects)"

    def merged(item: DataSetItem) -> DataSetItem:
        return replace(item, label=min(item.label, 1))

    photographs = tuple(replace(f, item=merged(f.item)) for f in profiled.checked.photographs)
    items = tuple(map(merged, dataset.items))
    return replace(
        profiled,
        profile=replace(profile, classes=classes, counts=(profile.good, profile.defective), merged=True),
        checked=CheckedDataset(replace(dataset, classes=classes, items=items), photographs),
        notes=(*profiled.notes, note),
    )


def measure_sample(sample: Sample) -> PixelFacts:
    """Measures defect size and colours of one image."""
    image = sample.image.astype(np.int16)
    spread = image.max(axis=-1) - image.min(axis=-1)
    coloured = bool(np.percentile(spread, 99) > COLOUR_LEVELS) if image.shape[-1] > 1 else False
    if sample.mask is None or not sample.mask.any():
        return PixelFacts(None, coloured)
    _, _, regions, _ = cv2.connectedComponentsWithStats(sample.mask, connectivity=8)
    return PixelFacts(math.sqrt(float(regions[1:, cv2.CC_STAT_AREA].max())), coloured)


def build_profile(
    checked: CheckedDataset,
    facts: dict[str, PixelFacts],
    duplicates: Sequence[Sequence[CheckedPhotograph]],
    *,
    layout: str,
    root: str,
    own_split: bool,
) -> DatasetProfile:
    """Returns the profile of checked images."""
    photographs, classes = checked.photographs, checked.dataset.classes
    items = [photograph.item for photograph in photographs]
    sizes = [(photograph.height, photograph.width) for photograph in photographs]
    heights, widths = np.array(sizes).T
    proportions = heights / widths
    masks, boxes, labels = _annotations(items)
    sides = sorted(one.defect_px for one in facts.values() if one.defect_px is not None)
    return DatasetProfile(
        layout=layout,
        root=root,
        classes=classes,
        counts=tuple(sum(item.label == label for item in items) for label in range(len(classes))),
        masks=masks,
        boxes=boxes,
        labels=labels,
        groups=len({item.group for item in items}),
        height=int(np.median(heights)),
        width=int(np.median(widths)),
        one_size=len(set(sizes)) == 1,
        one_shape=bool(proportions.max() <= MAX_PROPORTION_RATIO * proportions.min()),
        coloured=any(one.coloured for one in facts.values()),
        stored_in_colour=any(photograph.channels > 1 for photograph in photographs),
        smallest_px=sides[int(SMALLEST_SHARE * len(sides))] if sides else None,
        near_duplicates=sum(map(len, duplicates)),
        mixed_duplicates=sum(len({one.item.label > 0 for one in same}) > 1 for same in duplicates),
        own_split=own_split,
    )


def _annotations(items: Iterable[DataSetItem]) -> tuple[int, int, int]:
    """Number of defective images with a mask, with a box, and with a label only."""
    defective = [item for item in items if item.label]
    labels = sum(map(is_unlocalized, defective))
    boxes = sum(item.supervision == "box" and not is_unlocalized(item) for item in defective)
    return len(defective) - boxes - labels, boxes, labels
