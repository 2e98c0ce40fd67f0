"""Splits of own data: groups stay whole, equal pictures stay together, each class is spread evenly.

What is kept together is a cluster: groups that share a picture are joined, and groups that share near twins
where these are given. A cluster counts for its highest label. The clusters of one class are dealt out, the
larger ones first, each to the part that lacks most. The order of equals depends on the seed and the names
alone, so the result is the same on every machine.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from datasets.checking import CheckedPhotograph, find_duplicates
from datasets.sample import Dataset, Split
from datasets.splitting import SPLITS
from segdec.errors import DatasetError

Duplicates = Sequence[Sequence[CheckedPhotograph]]


@dataclass(frozen=True)
class Cluster:
    """Groups that stay together: their names, their highest label, the number of their photographs."""

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
    """Puts of the clusters of each class a share `val` into val, `test` into test, the rest into train.

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
    """Yields a data set a fold: it is tested, a share `val` of the others validates, the rest of them trains.

    Raises:
        DatasetError: If the share leaves nothing to train on, there are fewer than two folds, or a split
            would hold no good or no defective photograph.
    """
    if folds < 2:
        raise DatasetError(f"{folds} folds cannot be tested in turn. Expected --folds of at least 2.")
    _check_shares(val, 0)
    parts = stratified_group_split(find_clusters(photographs, duplicates), [1] * folds, seed)
    wanted = [split for split in SPLITS if split != "val" or val > 0]
    for tested, test in enumerate(parts):
        others = [cluster for place, part in enumerate(parts) if place != tested for cluster in part]
        train, held_out = stratified_group_split(others, [1 - val, val], seed)
        yield _assigned(dataset, {"train": train, "val": held_out, "test": test}, wanted)


def find_clusters(photographs: Sequence[CheckedPhotograph], duplicates: Duplicates = ()) -> list[Cluster]:
    """Finds the clusters of all photographs, in the order of their names; `duplicates` stay together, too."""
    first = {photograph.record.group: photograph.record.group for photograph in photographs}

    def root(group: str) -> str:
        while first[group] != group:
            group = first[group]
        return group

    for same in (*find_duplicates(photographs), *duplicates):
        for photograph in same:
            one, other = sorted((root(same[0].record.group), root(photograph.record.group)))
            first[other] = one
    members: dict[str, list[CheckedPhotograph]] = defaultdict(list)
    for photograph in photographs:
        members[root(photograph.record.group)].append(photograph)
    return [
        Cluster(
            tuple(sorted({photograph.record.group for photograph in found})),
            max(photograph.record.label for photograph in found),
            len(found),
        )
        for _, found in sorted(members.items())
    ]


def stratified_group_split(
    clusters: Sequence[Cluster], shares: Sequence[float], seed: int
) -> list[list[Cluster]]:
    """Returns as many parts as there are shares; each class gives each part its share of clusters.

    The shares are of their sum, whatever that is. Where a class has as many clusters as there are parts, no
    part goes without. Parts that lack equally many clusters are told apart by the photographs they lack.
    """
    parts: list[list[Cluster]] = [[] for _ in shares]
    shares = [share / sum(shares) for share in shares]
    total = sum(cluster.size for cluster in clusters)
    lacking = [share * total for share in shares]  # photographs
    numbers = Counter(cluster.label for cluster in clusters)
    # The rarest class first: the common ones even out the sizes that it leaves uneven.
    for label in sorted(numbers, key=lambda label: (numbers[label], label)):
        of_class = [cluster for cluster in clusters if cluster.label == label]
        of_class.sort(key=lambda cluster: (-cluster.size, _hash(cluster, seed)))
        _deal_class(of_class, shares, parts, lacking)
    return parts


def _deal_class(
    clusters: Sequence[Cluster], shares: Sequence[float], parts: list[list[Cluster]], lacking: list[float]
) -> None:
    """Adds the clusters of one class to `parts`, and keeps up how many photographs each is `lacking`."""
    wanted = [share * len(clusters) for share in shares]
    taking = [place for place, share in enumerate(shares) if share > 0]
    empty = set(taking) if len(clusters) >= len(taking) else set()
    for cluster in clusters:
        lacks = {place: (round(wanted[place], 9), lacking[place]) for place in empty or taking}
        place = max(sorted(lacks), key=lacks.__getitem__)
        parts[place].append(cluster)
        wanted[place] -= 1
        lacking[place] -= cluster.size
        empty.discard(place)


def _hash(cluster: Cluster, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}:{cluster.groups[0]}".encode()).digest()


def _check_shares(val: float, test: float) -> None:
    if not (0 <= val < 1 and 0 <= test < 1 and val + test < 1):
        raise DatasetError(
            f"Shares of {val:g} to validate and {test:g} to test leave nothing to train on. Expected --val "
            "and --test from 0 to below 1, together below 1."
        )


def _assigned(dataset: Dataset, parts: dict[Split, list[Cluster]], wanted: Sequence[Split]) -> Dataset:
    splits = {group: split for split, part in parts.items() for cluster in part for group in cluster.groups}
    assigned = replace(dataset, records=tuple(r.with_split(splits[r.group]) for r in dataset.records))
    for split in wanted:
        labels = [record.label > 0 for record in assigned.of_split(split)]
        if all(labels) or not any(labels):
            raise DatasetError(
                f"The split '{split}' would hold {labels.count(False)} good and {labels.count(True)} "
                "defective photographs: nothing could be measured on it. Expected some of both: add "
                "photographs of more groups, or ask for fewer --folds or other shares --val and --test."
            )
    return assigned
