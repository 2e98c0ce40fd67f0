"""What trains, validates and tests: groups and near twins whole, and what becomes of a handful of defects."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from datasets.folds import Cluster, find_clusters, stratified_group_split
from datasets.sample import Dataset, Split
from datasets.splitting import SPLITS
from segdec.errors import DatasetError
from training.fit.dataset_profile import ProfiledDataset
from training.formatting import count_of, format_percent

SHARES = (0.6, 0.2, 0.2)
"""Of the parts: train, val and test."""

FEW_PARTS = 10
FEW_SHARES = (0.5, 0.25, 0.25)
"""Of fewer defective parts than `FEW_PARTS`: a fifth of them would be one."""

TWO_SHARES, ONE_SHARES = (0.5, 0.5, 0.0), (1.0, 0.0, 0.0)
"""Of two defective parts, and of one."""

VAL_SHARE = 0.25
"""Of what the data set gives to train and to validate, where these are divided anew."""

MIN_GOOD = 3


@dataclass(frozen=True)
class DatasetSplit:
    """A data set whose photographs have a place.

    Attributes:
        dataset: With its splits.
        good, defective: Photographs in train, val and test.
        judged: The split that the finished model is measured on.
        reasons: Why it is divided so, and what a figure on it is worth.
    """

    dataset: Dataset
    good: tuple[int, ...]
    defective: tuple[int, ...]
    evaluated: Split
    reasons: tuple[str, ...]


def split_dataset(profiled: ProfiledDataset, seed: int = 0) -> DatasetSplit:
    """Divides a data set, unless it says itself how.

    Raises:
        DatasetError: If the good photographs do not suffice to train and to validate.
    """
    profile, dataset = profiled.profile, profiled.checked.dataset
    if profile.good < MIN_GOOD:
        raise DatasetError(
            f"{profile.root} holds {profile.good} good and {profile.defective} defective photographs. Expected "
            f"at least {MIN_GOOD} good ones, to learn from, to validate and to test: add photographs of "
            "good parts."
        )
    clusters = find_clusters(profiled.checked.photographs, profiled.twins)
    divided, how = _own(dataset, clusters, seed) if profile.own_split else _new(dataset, clusters, seed)
    good, defective = _counts(divided)
    for split, number in zip(SPLITS[:2], good[:2], strict=True):
        if not number:
            raise DatasetError(
                f"The split '{split}' would hold no good photograph: the {profile.good} good ones lie in "
                f"{count_of(len(clusters), 'group')} that stay whole. Expected some of more parts."
            )
    evaluated, worth = _judge(good, defective)
    return DatasetSplit(divided, good, defective, evaluated, (*how, *worth))


def _new(dataset: Dataset, clusters: Sequence[Cluster], seed: int) -> tuple[Dataset, tuple[str, ...]]:
    good = [cluster for cluster in clusters if not cluster.label]
    defective = [cluster for cluster in clusters if cluster.label]
    how = f"{_percents(SHARES)} of the parts"
    together = "groups, equal pictures and near twins stay together"
    if len(defective) >= FEW_PARTS or not defective:
        return _placed(dataset, stratified_group_split(clusters, SHARES, seed)), (how, together)
    shares = {2: TWO_SHARES, 1: ONE_SHARES}.get(len(defective), FEW_SHARES)
    if shares is FEW_SHARES:
        how = f"{_percents(SHARES)} of the good parts, {_percents(FEW_SHARES)} of the few defective ones"
    parts = (
        [*one, *other]
        for one, other in zip(
            stratified_group_split(good, SHARES, seed),
            stratified_group_split(defective, shares, seed),
            strict=True,
        )
    )
    return _placed(dataset, parts), (how, together, *({2: (TWO,), 1: (ONE,)}.get(len(defective), ())))


def _percents(shares: Sequence[float]) -> str:
    *first, last = (f"{100 * share:.0f}" for share in shares)
    return f"{', '.join(first)} and {last}\N{NO-BREAK SPACE}%"


TWO = "of two defective parts one trains and the other validates: none is left to test"
ONE = "the one defective part trains: none is left to validate or to test"


def _own(dataset: Dataset, clusters: Sequence[Cluster], seed: int) -> tuple[Dataset, tuple[str, ...]]:
    """As the data set says; train and val are divided anew where one lacks what the other has to give."""
    good, defective = _counts(dataset)
    if good[0] and good[1] and (sum(defective[:2]) < 2 or (defective[0] and defective[1])):
        return dataset, ("as the data set says",)
    learning = {record.group for record in dataset.records if record.split in SPLITS[:2]}
    shares = (1 - VAL_SHARE, VAL_SHARE)
    own = [cluster for cluster in clusters if learning.issuperset(cluster.groups)]
    places = {
        group: split
        for split, part in zip(SPLITS, stratified_group_split(own, shares, seed), strict=False)
        for group in _groups(part)
    }
    records = tuple(
        record.with_split(places.get(record.group, record.split)) if record.split in SPLITS[:2] else record
        for record in dataset.records
    )
    return replace(dataset, records=records), (
        "test as the data set says",
        f"it trains on {good[0]} good and {defective[0]} defective photographs and validates on {good[1]} "
        f"and {defective[1]}: too few, so both are divided anew",
    )


def _placed(dataset: Dataset, parts: Iterable[Sequence[Cluster]]) -> Dataset:
    places = {group: split for split, part in zip(SPLITS, parts, strict=True) for group in _groups(part)}
    return replace(dataset, records=tuple(r.with_split(places[r.group]) for r in dataset.records))


def _groups(part: Iterable[Cluster]) -> Iterable[str]:
    return (group for cluster in part for group in cluster.groups)


def _counts(dataset: Dataset) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Good and defective photographs of train, val and test."""
    numbers = Counter((record.split, record.label > 0) for record in dataset.records)
    good, defective = (tuple(numbers[split, kind] for split in SPLITS) for kind in (False, True))
    return good, defective


def _judge(good: Sequence[int], defective: Sequence[int]) -> tuple[Split, tuple[str, ...]]:
    """What is measured on, and what that is worth."""
    if defective[2]:
        missed = format_percent(1 - 0.025 ** (1 / defective[2]))  # exact binomial interval, as in the report
        tested = count_of(defective[2], "defective photograph")
        sure = format_percent(0.95)
        return "test", (f"if none of {tested} in test is missed, up to {missed} may be ({sure} sure)",)
    if defective[1]:
        return "val", (
            f"measured on validation, by whose {count_of(defective[1], 'defective photograph')} weights and "
            "limits are chosen: its figures flatter",
        )
    evaluated: Split = "test" if good[2] else "val"
    return evaluated, (
        "no defect is left to measure on: false alarms are counted, what is missed stays unknown",
    )
