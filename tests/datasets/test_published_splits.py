"""The split files that come with the project, against the published list of items."""

from pathlib import Path

import pytest

import datasets
from datasets.sample import Dataset, Record
from datasets.splitting import apply_splits

FOLDER = Path(datasets.__file__).parent / "splits"
ITEMS = {f"kos{number:02d}" for number in range(1, 51)}
DUPLICATES = {"kos26": "kos01", "kos27": "kos34"}
OFFICIAL_TEST = {
    0: "02 08 09 10 15 19 21 25 27 28 30 37 38 41 43 46 47",
    1: "01 03 04 06 11 17 22 24 29 31 32 36 39 40 42 44 48",
    2: "05 07 12 13 14 16 18 20 23 26 33 34 35 45 49 50",
}
FOLDS = [(kind, fold) for kind in ("official", "grouped") for fold in OFFICIAL_TEST]


def items_by_split(name):
    records = tuple(Record(item, Path(item), None, label=0, group=item) for item in sorted(ITEMS))
    dataset = apply_splits(Dataset(("good", "defect"), records), FOLDER / name)
    return {split: {r.group for r in dataset.of_split(split)} for split in ("train", "val", "test")}


@pytest.mark.parametrize("fold", OFFICIAL_TEST)
def test_official_test_items_are_the_published_ones(fold):
    expected = {f"kos{number}" for number in OFFICIAL_TEST[fold].split()}
    assert items_by_split(f"kolektor_official_fold{fold}.txt")["test"] == expected


@pytest.mark.parametrize(("kind", "fold"), FOLDS)
def test_every_fold_uses_every_item_once(kind, fold):
    splits = items_by_split(f"kolektor_{kind}_fold{fold}.txt")
    assert set.union(*splits.values()) == (ITEMS if kind == "official" else ITEMS - set(DUPLICATES))
    rest = sorted(splits["train"] | splits["val"])
    assert splits["val"] == set(rest[4::5])


def test_official_folds_separate_the_duplicates_and_say_so():
    for fold in OFFICIAL_TEST:
        assert "kos26 = kos01 and kos27 = kos34" in (FOLDER / f"kolektor_official_fold{fold}.txt").read_text()
    for twin, other in DUPLICATES.items():
        tested = [items_by_split(f"kolektor_official_fold{fold}.txt")["test"] for fold in OFFICIAL_TEST]
        assert not any({twin, other} <= found for found in tested)
