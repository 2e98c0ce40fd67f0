"""Splitting of a data set into folds or splits: groups and near duplicates stay together, even with very few
defects.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from datasets.checked_photograph import CheckedDataset
from datasets.folds import GroupCluster, assign_folds, find_clusters, stratified_group_split
from datasets.sample import Dataset, Split
from datasets.splitting import SPLITS
from segdec.config import MEMORY_FOLDS
from segdec.errors import DatasetError
from segdec.runtime.counts import count_of
from training.fit.dataset_profile import ProfiledDataset
from training.formatting import format_percent

SHARES = (0.6, 0.2, 0.2)
"""Shares of the parts in train, val and test."""

FEW_PARTS = 10
FEW_SHARES = (0.5, 0.25, 0.25)
"""Shares of fewer than `FEW_PARTS` defective parts."""

TWO_SHARES, ONE_SHARES = (0.5, 0.5, 0.0), (1.0, 0.0, 0.0)
"""Shares of two defective parts, and of one."""

VAL_SHARE = 0.25
"""Share of val if train and val of a given split are split again."""

MIN_GOOD = 3
SEED = 0

FOLDS = MEMORY_FOLDS
"""Number of folds; the duration of a training step is proportional to it."""

TWO_PARTS_NOTE = "of two defective parts one is in train and the other in val: none is left to test"
NO_DEFECT_NOTE = "no defect is left to test: false alarms are counted, the miss rate stays unknown"
ONE_PART_NOTE = "the one defective part is in train: none is left to validate or to test"


@dataclass(frozen=True)
class DatasetSplit:
    """A data set whose images are assigned to splits.

    Attributes:
        good, defective: Images in train, val and test.
        evaluated: The split that the finished model is evaluated on.
        reasons: Reasons for the split, and the reliability of metrics on it.
        folds, heads: Numbers of the network: 1 fold without folds, no head for a memory of good surface.
    """

    dataset: Dataset
    good: tuple[int, ...]
    defective: tuple[int, ...]
    evaluated: Split
    reasons: tuple[str, ...]
    folds: int = 1
    heads: int = 1


def split_dataset(profiled: ProfiledDataset, *, with_folds: bool = False) -> DatasetSplit:
    """Splits a data set, or keeps its own split.

    `with_folds` asks for folds instead of train and val, which needs enough good and defective parts. Raises
    a `DatasetError` if there are too few good images to train and to validate.
    """
    profile, dataset = profiled.profile, profiled.checked.dataset
    if profile.good < MIN_GOOD:
        raise DatasetError(
            f"{profile.root} holds {profile.good} good and "
            f"{count_of(profile.defective, 'defective photograph')}. Expected at least {MIN_GOOD} good "
            "ones to train, to validate and to test: add photographs of good parts."
        )
    clusters = find_clusters(profiled.checked.photographs, profiled.duplicates)
    if with_folds and (in_folds := _split_into_folds(profiled, clusters)):
        return in_folds
    split_items = _keep_own_split if profile.own_split else _new_split
    assigned, reasons = split_items(dataset, clusters)
    good, defective = _counts(assigned)
    for split, number in zip(SPLITS[:2], good[:2], strict=True):
        if not number:
            raise DatasetError(
                f"The split '{split}' would hold no good photograph: the {profile.good} good ones are in "
                f"{count_of(len(clusters), 'group')}, and equal pictures are one group. Expected photographs "
                "of more parts."
            )
    evaluated, reliability = _choose_evaluated(good, defective)
    return DatasetSplit(assigned, good, defective, evaluated, (*reasons, *reliability))


def _split_into_folds(profiled: ProfiledDataset, clusters: Sequence[GroupCluster]) -> DatasetSplit | None:
    """The split into folds, besides the data set's own test split; None if there are too few parts."""
    checked, own_split = profiled.checked, profiled.profile.own_split
    places = {one.item.group: one.item.split for one in checked.photographs}
    used = [one for one in clusters if not own_split or any(places[g] in SPLITS[:2] for g in one.groups)]
    trained = [one for one in used if not own_split or any(places[g] == "train" for g in one.groups)]
    defective = sum(cluster.label > 0 for cluster in used)
    good_only = defective < FOLDS and not any(cluster.label for cluster in trained)
    if defective < FOLDS and not good_only:
        return None
    if not own_split:
        checked = _all_in_train(checked)
    common: Any = {"seed": SEED, "duplicates": profiled.duplicates, "good_only": good_only}
    try:
        dataset = assign_folds(checked, FOLDS, **common).dataset
    except DatasetError:  # a fold would lack good or defective photographs
        return None
    good, defects = _counts(dataset)
    built = "a memory of good surface" if good_only else "a head"
    reasons = [
        f"{FOLDS} folds, each with {built} of the others: all photographs are used, and each is scored "
        "without its fold",
        "groups, equal pictures and near duplicates stay together",
        *(["test is that of the data set"] if good[2] + defects[2] else []),
    ]
    evaluated: Split = "test" if good[2] and defects[2] else "train"
    place = "test" if evaluated == "test" else "the folds"
    tested = defects[SPLITS.index(evaluated)]
    reasons.append(_describe_reliability(tested, place) if tested else NO_DEFECT_NOTE)
    heads = 0 if good_only else FOLDS
    return DatasetSplit(dataset, good, defects, evaluated, tuple(reasons), FOLDS, heads)


def _all_in_train(checked: CheckedDataset) -> CheckedDataset:
    items = tuple(item.with_split("train") for item in checked.dataset.items)
    photographs = [replace(one, item=one.item.with_split("train")) for one in checked.photographs]
    return CheckedDataset(replace(checked.dataset, items=items), photographs)


def _new_split(dataset: Dataset, clusters: Sequence[GroupCluster]) -> tuple[Dataset, tuple[str, ...]]:
    good = [cluster for cluster in clusters if not cluster.label]
    defective = [cluster for cluster in clusters if cluster.label]
    how = f"{_percents(SHARES)} of the parts"
    together = "groups, equal pictures and near duplicates stay together"
    if len(defective) >= FEW_PARTS or not defective:
        return _assign(dataset, stratified_group_split(clusters, SHARES, SEED)), (how, together)
    shares = {2: TWO_SHARES, 1: ONE_SHARES}.get(len(defective), FEW_SHARES)
    if shares is FEW_SHARES:
        how = f"{_percents(SHARES)} of the good parts, {_percents(FEW_SHARES)} of the few defective ones"
    good_parts = stratified_group_split(good, SHARES, SEED)
    parts = zip(good_parts, stratified_group_split(defective, shares, SEED), strict=True)
    assigned = _assign(dataset, [[*one, *other] for one, other in parts])
    return assigned, (how, together, *({2: (TWO_PARTS_NOTE,), 1: (ONE_PART_NOTE,)}.get(len(defective), ())))


def _percents(shares: Sequence[float]) -> str:
    *first, last = (f"{100 * share:.0f}" for share in shares)
    return f"{', '.join(first)} and {last}\N{NO-BREAK SPACE}%"


def _keep_own_split(dataset: Dataset, clusters: Sequence[GroupCluster]) -> tuple[Dataset, tuple[str, ...]]:
    """The split of the data set; train and val are split again if one has no good or no defective images."""
    good, defective = _counts(dataset)
    if good[0] and good[1] and (sum(defective[:2]) < 2 or (defective[0] and defective[1])):
        return dataset, ("the split of the data set",)
    groups = {item.group for item in dataset.items if item.split in SPLITS[:2]}
    own = [cluster for cluster in clusters if groups.issuperset(cluster.groups)]
    parts = stratified_group_split(own, (1 - VAL_SHARE, VAL_SHARE), SEED)
    places = {group: split for split, part in zip(SPLITS, parts, strict=False) for group in _groups(part)}
    items = tuple(
        item.with_split(places.get(item.group, item.split)) if item.split in SPLITS[:2] else item
        for item in dataset.items
    )
    return replace(dataset, items=items), (
        "test is that of the data set",
        f"its train split has {good[0]} good and {count_of(defective[0], 'defective photograph')}, val has "
        f"{good[1]} and {defective[1]}: too few, so both are split again",
    )


def _assign(dataset: Dataset, parts: Iterable[Sequence[GroupCluster]]) -> Dataset:
    places = {group: split for split, part in zip(SPLITS, parts, strict=True) for group in _groups(part)}
    return replace(dataset, items=tuple(r.with_split(places[r.group]) for r in dataset.items))


def _groups(part: Iterable[GroupCluster]) -> Iterable[str]:
    return (group for cluster in part for group in cluster.groups)


def _counts(dataset: Dataset) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Good and defective images of train, val and test."""
    numbers = Counter((item.split, item.label > 0) for item in dataset.items)
    good, defective = (tuple(numbers[split, kind] for split in SPLITS) for kind in (False, True))
    return good, defective


def _choose_evaluated(good: Sequence[int], defective: Sequence[int]) -> tuple[Split, tuple[str, ...]]:
    """The split to evaluate on, and the reliability of metrics on it."""
    if defective[2]:
        return "test", (_describe_reliability(defective[2], "test"),)
    if defective[1]:
        return "val", (
            f"evaluated on val, whose {count_of(defective[1], 'defective photograph')} also select weights "
            "and thresholds: the metrics are too good",
        )
    evaluated: Split = "test" if good[2] else "val"
    return evaluated, (NO_DEFECT_NOTE,)


def _describe_reliability(defective: int, place: str) -> str:
    missed = format_percent(1 - 0.025 ** (1 / defective))  # exact binomial interval, as in the report
    tested = count_of(defective, "defective photograph")
    confidence = format_percent(0.95)
    return (
        f"if the model misses none of {tested} in {place}, its miss rate may be up to {missed} "
        f"({confidence} confidence)"
    )
