"""Stratified splits and folds that keep groups and equal pictures together.

A cluster is a set of groups that must stay together: they share a picture or near duplicates. Its class is
its highest label. The clusters of each class are assigned in order of size, the largest first, each to the
part that is furthest below its share. Ties depend only on the seed and the names, so the result is the same
on every machine.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from datasets.checked_photograph import CheckedDataset, CheckedPhotograph, find_duplicates
from datasets.problems import list_names
from datasets.sample import Dataset, DataSetItem, Split
from datasets.splitting import SPLITS
from segdec.errors import DatasetError
from segdec.runtime.counts import count_of

Duplicates = Sequence[Sequence[CheckedPhotograph]]

MAX_DUPLICATES = 8
MAX_CLASS_SHARE = 1 / 3
"""A cluster of more than `MAX_DUPLICATES` photographs with a larger share of a class is a viewpoint."""

MIN_SHARE = 0.5
"""Near duplicates are kept together while each part gets this much of its share of each class."""


@dataclass(frozen=True)
class GroupCluster:
    """Groups that stay together: their names, their highest label, their number of photographs."""

    groups: tuple[str, ...]
    label: int
    size: int


def split_by_share(
    dataset: Dataset,
    photographs: Sequence[CheckedPhotograph],
    *,
    val: float,
    test: float,
    seed: int = 0,
    duplicates: Duplicates = (),
) -> Dataset:
    """Assigns a share `val` of the clusters of each class to val, `test` to test and the rest to train.

    Raises:
        DatasetError: If the shares leave nothing to train on, or a split would hold no good or no
            defective photograph.
    """
    _check_shares(val, test)
    shares = [1 - val - test, val, test]
    parts = stratified_group_split(find_clusters(photographs, duplicates), shares, seed)
    wanted = [split for split, share in zip(SPLITS, shares, strict=True) if share > 0]
    return _assigned(dataset, dict(zip(SPLITS, parts, strict=True)), wanted)


def split_into_folds(
    dataset: Dataset,
    photographs: Sequence[CheckedPhotograph],
    *,
    folds: int,
    val: float,
    seed: int = 0,
    duplicates: Duplicates = (),
) -> Iterator[Dataset]:
    """Yields one data set for each fold: the fold is test, a share `val` of the rest val, the others train.

    Raises:
        DatasetError: If the share leaves nothing to train on, there are fewer than two folds, or a split
            would hold no good or no defective photograph.
    """
    if folds < 2:
        raise DatasetError(f"--folds {folds} is too small. Expected at least 2.")
    _check_shares(val, 0)
    parts = stratified_group_split(find_clusters(photographs, duplicates), [1] * folds, seed)
    wanted = [split for split in SPLITS if split != "val" or val > 0]
    for tested, test in enumerate(parts):
        others = [cluster for fold, part in enumerate(parts) if fold != tested for cluster in part]
        train, held_out = stratified_group_split(others, [1 - val, val], seed)
        yield _assigned(dataset, {"train": train, "val": held_out, "test": test}, wanted)


def assign_folds(
    checked: CheckedDataset,
    folds: int,
    *,
    seed: int = 0,
    duplicates: Duplicates = (),
    good_only: bool = False,
) -> CheckedDataset:
    """Assigns all photographs of train and val to train, each to one of `folds` folds.

    Clusters in which a photograph has a fold keep it.

    Raises:
        DatasetError: If a fold would hold no good photograph, or no defective one unless `good_only`.
    """
    own = [one for one in checked.photographs if one.item.split in ("train", "val")]
    known = {one.item.group: one.item.fold for one in own if one.item.fold in range(1, folds + 1)}
    places: dict[str, int] = {}
    others = []
    for cluster in find_clusters(own, duplicates):
        kept = [fold for group in cluster.groups if (fold := known.get(group)) is not None]
        if kept:
            places |= dict.fromkeys(cluster.groups, min(kept))
        else:
            others.append(cluster)
    for fold, part in enumerate(stratified_group_split(others, [1] * folds, seed), start=1):
        places |= {group: fold for cluster in part for group in cluster.groups}
    for fold in range(1, folds + 1):
        labels = [one.item.label > 0 for one in own if places[one.item.group] == fold]
        if all(labels) or not (any(labels) or good_only):
            expected = "good ones" if good_only else "both kinds"
            raise DatasetError(
                f"Fold {fold} of {folds} would hold {labels.count(False)} good and "
                f"{count_of(labels.count(True), 'defective photograph')}; groups, equal pictures "
                f"and near duplicates stay together. Expected {expected}: add photographs of more "
                "parts, or use fewer folds."
            )

    def assign(item: DataSetItem) -> DataSetItem:
        return item.with_split("train", places[item.group]) if item.group in places else item

    items = tuple(map(assign, checked.dataset.items))
    photographs = tuple(replace(one, item=assign(one.item)) for one in checked.photographs)
    return CheckedDataset(replace(checked.dataset, items=items), photographs)


def find_clusters(
    photographs: Sequence[CheckedPhotograph], duplicates: Duplicates = ()
) -> list[GroupCluster]:
    """Returns the clusters of all photographs, sorted by name; those among `duplicates` stay together."""
    first = {photograph.item.group: photograph.item.group for photograph in photographs}

    def root(group: str) -> str:
        while first[group] != group:
            group = first[group]
        return group

    for same in (*find_duplicates(photographs), *duplicates):
        groups = [one.item.group for one in same if one.item.group in first]
        for group in groups:
            lower, upper = sorted((root(groups[0]), root(group)))
            first[upper] = lower
    members: dict[str, list[CheckedPhotograph]] = defaultdict(list)
    for photograph in photographs:
        members[root(photograph.item.group)].append(photograph)
    clusters = []
    for _, cluster in sorted(members.items()):
        items = [photograph.item for photograph in cluster]
        names = tuple(sorted({item.group for item in items}))
        clusters.append(GroupCluster(names, max(item.label for item in items), len(items)))
    return clusters


def keep_every_share(
    photographs: Sequence[CheckedPhotograph], duplicates: Duplicates, shares: Sequence[float], seed: int
) -> tuple[Duplicates, tuple[str, ...]]:
    """Gives up clusters of near duplicates that would spoil a split into parts with these shares.

    Given up are viewpoints, which are clusters of more than `MAX_DUPLICATES` photographs with more than
    `MAX_CLASS_SHARE` of a class, and then the largest clusters of a class of which a part would get less than
    `MIN_SHARE` of its share, unless the part gets no more without near duplicates.

    Returns:
        The duplicates to keep together, and notes about those that were given up.
    """
    totals = Counter(photograph.item.label for photograph in photographs)
    viewpoints = [same for same in duplicates if _is_viewpoint(same, totals)]
    kept = [same for same in duplicates if not any(same is viewpoint for viewpoint in viewpoints)]
    possible = _class_counts(photographs, (), shares, seed)
    needed = {
        (part, label): min(MIN_SHARE * share / sum(shares) * total, possible[part, label])
        for part, share in enumerate(shares)
        for label, total in totals.items()
    }
    split_up: list[Sequence[CheckedPhotograph]] = []
    while kept:
        counts = _class_counts(photographs, kept, shares, seed)
        lacking = {label for (part, label), number in needed.items() if counts[part, label] < number}
        spoiling = [same for same in kept if any(p.item.label in lacking for p in same)]
        if not spoiling:
            break
        largest = max(map(len, spoiling))
        given_up = [same for same in spoiling if len(same) == largest]
        kept = [same for same in kept if not any(same is other for other in given_up)]
        split_up += given_up
    notes = [
        _given_up(viewpoints, "a cluster with a large share of a class is a viewpoint"),
        _given_up(split_up, "otherwise a part of the split would lose its share of a class"),
    ]
    return kept, tuple(filter(None, notes))


def _is_viewpoint(same: Sequence[CheckedPhotograph], totals: Counter[int]) -> bool:
    numbers = Counter(photograph.item.label for photograph in same)
    large = any(number > MAX_CLASS_SHARE * totals[label] for label, number in numbers.items())
    return large and len(same) > MAX_DUPLICATES


def _class_counts(
    photographs: Sequence[CheckedPhotograph], duplicates: Duplicates, shares: Sequence[float], seed: int
) -> Counter[tuple[int, int]]:
    """The number of photographs for each part and label."""
    parts = stratified_group_split(find_clusters(photographs, duplicates), shares, seed)
    places = {
        group: part for part, clusters in enumerate(parts) for cluster in clusters for group in cluster.groups
    }
    return Counter((places[p.item.group], p.item.label) for p in photographs)


def _given_up(clusters: Duplicates, why: str) -> str:
    if not clusters:
        return ""
    names = list_names([photograph.item.name for same in clusters for photograph in same])
    number = count_of(len(clusters), "cluster")
    return f"Near duplicates in {number} are not kept together: {names}; {why}."


def stratified_group_split(
    clusters: Sequence[GroupCluster], shares: Sequence[float], seed: int
) -> list[list[GroupCluster]]:
    """Splits clusters into one part for each share, class by class.

    Shares are relative to their sum. If a class has at least as many clusters as there are parts, each part
    gets one. If two parts lack equally many clusters, the one that lacks more photographs is next.
    """
    parts: list[list[GroupCluster]] = [[] for _ in shares]
    shares = [share / sum(shares) for share in shares]
    total = sum(cluster.size for cluster in clusters)
    lacking = [share * total for share in shares]  # photographs
    numbers = Counter(cluster.label for cluster in clusters)
    # The rarest class first: the common ones even out the sizes that it leaves uneven.
    for label in sorted(numbers, key=lambda label: (numbers[label], label)):
        of_class = [cluster for cluster in clusters if cluster.label == label]
        of_class.sort(key=lambda cluster: (-cluster.size, _hash(cluster, seed)))
        _assign_class(of_class, shares, parts, lacking)
    return parts


def _assign_class(
    clusters: Sequence[GroupCluster],
    shares: Sequence[float],
    parts: list[list[GroupCluster]],
    lacking: list[float],
) -> None:
    """Adds the clusters of one class to `parts`; updates `lacking`, the photographs that each part lacks."""
    wanted = [share * len(clusters) for share in shares]
    used = [part for part, share in enumerate(shares) if share > 0]
    empty = set(used) if len(clusters) >= len(used) else set()
    for cluster in clusters:
        lacks = {part: (round(wanted[part], 9), lacking[part]) for part in empty or used}
        part = max(sorted(lacks), key=lacks.__getitem__)
        parts[part].append(cluster)
        wanted[part] -= 1
        lacking[part] -= cluster.size
        empty.discard(part)


def _hash(cluster: GroupCluster, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}:{cluster.groups[0]}".encode()).digest()


def _check_shares(val: float, test: float) -> None:
    if not (0 <= val < 1 and 0 <= test < 1 and val + test < 1):
        raise DatasetError(
            f"--val {val:g} and --test {test:g} leave nothing to train on. Expected values from 0 to below 1 "
            "with a sum below 1."
        )


def _assigned(dataset: Dataset, parts: dict[Split, list[GroupCluster]], wanted: Sequence[Split]) -> Dataset:
    splits = {group: split for split, part in parts.items() for cluster in part for group in cluster.groups}
    assigned = replace(dataset, items=tuple(r.with_split(splits[r.group]) for r in dataset.items))
    for split in wanted:
        labels = [item.label > 0 for item in assigned.of_split(split)]
        if all(labels) or not any(labels):
            raise DatasetError(
                f"The split '{split}' would hold {labels.count(False)} good and "
                f"{count_of(labels.count(True), 'defective photograph')}. Expected both kinds: add "
                "photographs of more groups, or choose fewer --folds or other shares --val and --test."
            )
    return assigned
