"""The split files that come with the project, against the published list of items."""

from pathlib import Path

import pytest

import datasets
from datasets.sample import Dataset, DataSetItem
from datasets.splitting import apply_splits

FOLDER = Path(datasets.__file__).parent / "splits"
ITEMS = {f"kos{number:02d}" for number in range(1, 51)}
DUPLICATES = {"kos26": "kos01", "kos27": "kos34"}
OFFICIAL_TEST = {
    0: "02 08 09 10 15 19 21 25 27 28 30 37 38 41 43 46 47",
    1: "01 03 04 06 11 17 22 24 29 31 32 36 39 40 42 44 48",
    2: "05 07 12 13 14 16 18 20 23 26 33 34 35 45 49 50",
}


def items_by_split(name):
    items = tuple(DataSetItem(item, Path(item), None, label=0, group=item) for item in sorted(ITEMS))
    dataset = apply_splits(Dataset(("good", "defect"), items), FOLDER / name)
    return {split: {r.group for r in dataset.of_split(split)} for split in ("train", "val", "test")}


@pytest.mark.parametrize("fold", OFFICIAL_TEST)
def test_folds_hold_the_published_test_items_and_every_item_once(fold):
    for kind, items in (("official", ITEMS), ("grouped", ITEMS - set(DUPLICATES))):
        splits = items_by_split(f"kolektor_{kind}_fold{fold}.txt")
        assert set.union(*splits.values()) == items
        assert splits["val"] == set(sorted(splits["train"] | splits["val"])[4::5])
        if kind == "official":
            assert splits["test"] == {f"kos{number}" for number in OFFICIAL_TEST[fold].split()}
            assert not any({one, other} <= splits["test"] for one, other in DUPLICATES.items())
