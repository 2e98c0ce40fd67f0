"""Splitting of reviewed images: test and validation data of the parent run never enter training."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from datasets.checked_photograph import CheckedPhotograph
from datasets.folds import GroupCluster, find_clusters, stratified_group_split
from datasets.leaks import near_duplicates_for_split
from datasets.sample import Split, is_unlocalized
from datasets.splitting import SPLITS

SHARES = (0.6, 0.2, 0.2)
"""Shares of the new parts: to train, to validate, and held back to test both networks."""

TRAIN_SHARES = (1.0, 0.0, 0.0)
"""Shares if each photograph is scored by a network built without its fold."""


@dataclass(frozen=True)
class ReviewedSplit:
    """The split of the new images.

    Attributes:
        splits: Split of each image that is used, by name.
        replaced: Former training images that are replaced by a review of the same picture.
        duplicates: Skipped: the parent is validated or tested on the same picture.
        label_conflicts: Those duplicates whose review contradicts the label in the data set.
        conflicting: Skipped: the part is in one split and a near duplicate in another.
        unlocalized: Skipped in training, which needs masks or boxes.
        related: Number of images that are in validation or test because a related image is there.
    """

    splits: Mapping[str, Split]
    replaced: frozenset[str]
    duplicates: tuple[str, ...]
    label_conflicts: tuple[str, ...]
    conflicting: tuple[str, ...]
    unlocalized: tuple[str, ...]
    related: int
    notes: tuple[str, ...]


def split_reviewed(
    old: Sequence[CheckedPhotograph],
    reviewed: Sequence[CheckedPhotograph],
    *,
    shares: Sequence[float] = SHARES,
    seed: int = 0,
    needs_masks: bool = False,
) -> ReviewedSplit:
    """Splits reviewed images, which the parent run did not have; its old images keep their splits.

    `shares` are those of the new parts in train, val and test. Groups, equal pictures and near duplicates
    stay in one split. `needs_masks` says whether training needs masks or boxes.
    """
    same = defaultdict(list)
    for photograph in old:
        same[photograph.digest].append(photograph.item)
    known = {p.item.name: p for p in reviewed if any(item.split in SPLITS[1:] for item in same[p.digest])}
    fresh = [photograph for photograph in reviewed if photograph.item.name not in known]
    conflicts = [
        name for name, p in known.items() if any(old.label != p.item.label for old in same[p.digest])
    ]
    near_duplicates, notes = near_duplicates_for_split((*old, *fresh))
    splits, related, conflicting = _assign_splits(
        old, fresh, find_clusters((*old, *fresh), near_duplicates), shares, seed
    )
    unplaced = _find_unlocalized(fresh, splits) if needs_masks else ()
    return ReviewedSplit(
        splits={name: split for name, split in splits.items() if name not in unplaced},
        replaced=frozenset(item.name for p in fresh for item in same[p.digest]),
        duplicates=tuple(sorted(known)),
        label_conflicts=tuple(sorted(conflicts)),
        conflicting=conflicting,
        unlocalized=unplaced,
        related=related,
        notes=notes,
    )


def _assign_splits(
    old: Sequence[CheckedPhotograph],
    fresh: Sequence[CheckedPhotograph],
    clusters: Sequence[GroupCluster],
    shares: Sequence[float],
    seed: int,
) -> tuple[dict[str, Split], int, tuple[str, ...]]:
    """The split of each image, the number that follow a related one, and the names that fit no split."""
    own = {p.item.group: p.item.split for p in old if p.item.split is not None}
    by_cluster = {
        cluster: _common_split([own[group] for group in cluster.groups if group in own])
        for cluster in clusters
    }
    new = stratified_group_split(
        [cluster for cluster, split in by_cluster.items() if split is None], shares, seed
    )
    by_cluster |= {cluster: split for split, part in zip(SPLITS, new, strict=True) for cluster in part}
    by_group = {group: split for cluster, split in by_cluster.items() for group in cluster.groups}
    new_groups = {group for part in new for cluster in part for group in cluster.groups}
    splits: dict[str, Split] = {}
    related, conflicting = 0, []
    for item in (photograph.item for photograph in fresh):
        split = by_group[item.group]
        if split is None or own.get(item.group, split) != split:
            conflicting.append(item.name)
            continue
        splits[item.name] = split
        related += split != "train" and item.group not in new_groups
    return splits, related, tuple(conflicting)


def _common_split(splits: Sequence[Split]) -> Split | None:
    """The split of images that are related to images in these splits: test before val before train."""
    return next((split for split in reversed(SPLITS) if split in splits), None)


def _find_unlocalized(fresh: Sequence[CheckedPhotograph], splits: Mapping[str, Split]) -> tuple[str, ...]:
    items = (photograph.item for photograph in fresh)
    return tuple(r.name for r in items if splits.get(r.name) == "train" and is_unlocalized(r))
