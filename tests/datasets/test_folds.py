from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from datasets.checked_photograph import CheckedDataset, CheckedPhotograph
from datasets.folds import (
    assign_folds,
    find_clusters,
    keep_every_share,
    split_by_share,
    split_into_folds,
    stratified_group_split,
)
from datasets.sample import Dataset, DataSetItem
from segdec.errors import DatasetError


def photograph(name, label, picture=None):
    item = DataSetItem(name, Path(name), None, label, name.split("/")[0])
    return CheckedPhotograph(item, 4, 6, 1, 0, picture or name)


def as_dataset(photographs):
    classes = ("good", "dent", "scratch")
    return Dataset(classes, tuple(f.item for f in photographs))


@pytest.fixture
def photographs():
    """25 items of 8 photographs, one with a defect in items 0 to 9; items 3 and 20 share a picture."""
    made = [
        photograph(f"item{item:02d}/{part}", int(part == 0 and item < 10))
        for item in range(25)
        for part in range(8)
    ]
    made[20 * 8 + 5] = photograph("item20/5", 0, "item03/5")
    return made


def groups(dataset):
    found = defaultdict(set)
    for item in dataset.items:
        found[item.split].add(item.group)
    return found


def test_groups_that_share_a_picture_are_joined_in_a_chain():
    pictures = [("a/0", 0, "P"), ("b/0", 0, "P"), ("b/1", 2, "Q"), ("c/0", 1, "Q"), ("d/0", 0), ("e/0", 0)]
    made = [photograph(*picture) for picture in pictures]
    clusters = find_clusters(made, [(made[4], made[5])])  # the last two are near duplicates
    assert [(c.groups, c.label, c.size) for c in clusters] == [(("a", "b", "c"), 2, 4), (("d", "e"), 0, 2)]


def test_each_group_is_tested_once_and_folds_are_even(photographs):
    folds = list(split_into_folds(as_dataset(photographs), photographs, folds=5, val=0.25))
    tested = Counter(group for fold in folds for group in groups(fold)["test"])
    assert tested == {f"item{item:02d}": 1 for item in range(25)}
    for fold in folds:
        test = fold.of_split("test")
        assert sum(item.label for item in test) == 2
        assert 32 <= len(test) <= 48
        assert sum(item.label for item in fold.of_split("val")) == 2  # a quarter of eight
        assert not groups(fold)["train"] & groups(fold)["val"]
        assert len([split for split, names in groups(fold).items() if names & {"item03", "item20"}]) == 1


def test_shares_hold_for_each_class(photographs):
    dataset = split_by_share(as_dataset(photographs), photographs, val=0.2, test=0.3)
    defects = {split: sum(r.label for r in dataset.of_split(split)) for split in ("train", "val", "test")}
    assert defects == {"train": 5, "val": 2, "test": 3}
    sizes = {split: len(dataset.of_split(split)) for split in ("train", "val", "test")}
    assert sum(sizes.values()) == 200
    assert abs(sizes["val"] - 40) <= 8
    assert abs(sizes["test"] - 60) <= 8


def test_a_seed_determines_the_split_and_the_order_does_not(photographs):
    def split(seed, order):
        dataset = split_by_share(as_dataset(order), order, val=0.2, test=0.2, seed=seed)
        return {item.name: item.split for item in dataset.items}

    assert split(0, photographs) == split(0, photographs[::-1])
    assert split(0, photographs) != split(1, photographs)


def test_a_part_without_a_share_gets_nothing_and_small_classes_reach_every_part(photographs):
    dataset = split_by_share(as_dataset(photographs), photographs, val=0.25, test=0)
    assert dataset.of_split("test") == ()
    clusters = find_clusters([photograph(f"{name}/0", 1) for name in "abc"])
    assert [len(part) for part in stratified_group_split(clusters, [0.8, 0.1, 0.1], 0)] == [1, 1, 1]


def test_larger_groups_do_not_unbalance_the_folds():
    sizes = [10, 1, 1] * 3
    made = [photograph(f"g{group}/{part}", 0) for group, size in enumerate(sizes) for part in range(size)]
    parts = stratified_group_split(find_clusters(made), [1] * 3, 0)
    assert [sum(cluster.size for cluster in part) for part in parts] == [12, 12, 12]


@pytest.mark.parametrize(("val", "words"), [(0.5, "leave nothing to train on"), (float("nan"), "--val nan")])
def test_shares_that_cannot_be(photographs, val, words):
    with pytest.raises(DatasetError, match=words):
        split_by_share(as_dataset(photographs), photographs, val=val, test=0.5)


def test_splits_that_could_measure_nothing_are_refused():
    made = [photograph(f"good{n}/0", 0) for n in range(9)] + [photograph(f"bad{n}/0", 1) for n in range(2)]
    with pytest.raises(DatasetError, match=r"'test' would hold \d good and 0 defective.*fewer --folds"):
        list(split_into_folds(as_dataset(made), made, folds=3, val=0))
    with pytest.raises(DatasetError, match=r"--folds 1 is too small. Expected at least 2"):
        list(split_into_folds(as_dataset(made), made, folds=1, val=0))


def test_near_duplicates_are_separated_where_a_part_would_lose_its_share():
    """The seven dents form two clusters: one of three folds would have none."""
    made = [photograph(f"good{n:02d}/0", 0) for n in range(30)] + [
        photograph(f"dent{n}/0", 1) for n in range(7)
    ]
    dents, pair = [made[30:34], made[34:]], made[:2]
    kept, notes = keep_every_share(made, [pair, *dents], [1, 1, 1], 0)
    assert kept == [pair, dents[1]]
    assert len(notes) == 1
    assert notes[0].startswith("Near duplicates in 1 cluster are not kept together: 4 (dent0/0")
    assert "lose its share of a class" in notes[0]
    assert keep_every_share(made, [pair, *dents], [1, 1], 0) == ([pair, *dents], ())


def test_a_class_of_two_photographs_keeps_its_near_duplicates_only_if_both_parts_get_one():
    made = [photograph(f"good{n:02d}/0", 0) for n in range(20)] + [
        photograph(f"dent{n}/0", 1) for n in range(2)
    ]
    for shares in ([1, 1], [0.6, 0.2, 0.2]):
        kept, notes = keep_every_share(made, [made[20:]], shares, 0)
        assert kept == []
        assert "2 (dent0/0, dent1/0)" in notes[0]
    assert keep_every_share(made, [made[:2]], [0.6, 0.2, 0.2], 0) == ([made[:2]], ())


def test_photographs_that_are_all_near_duplicates_are_split_as_if_they_were_not():
    made = [photograph(f"good{n:02d}/0", 0) for n in range(20)]
    kept, notes = keep_every_share(made, [made], [0.6, 0.2, 0.2], 0)
    assert kept == []
    assert "viewpoint" in notes[0]


def in_split(photographs, split, fold=None):
    moved = [replace(one, item=one.item.with_split(split, fold)) for one in photographs]
    return CheckedDataset(as_dataset(moved), moved)


def folds_of(checked):
    return {item.name: item.fold for item in checked.dataset.items}


def test_photographs_of_train_and_val_get_folds_and_keep_them(photographs):
    checked = assign_folds(in_split(photographs, "val"), 3)
    items = checked.dataset.items
    assert {item.split for item in items} == {"train"}
    assert {(item.fold, item.label) for item in items} == {(f, d) for f in (1, 2, 3) for d in (0, 1)}
    by_group = {item.group: item.fold for item in items}
    assert all(item.fold == by_group[item.group] for item in items)
    assert by_group["item03"] == by_group["item20"]
    assert [one.item for one in checked.photographs] == list(items)

    added = [photograph("item99/0", 0), photograph("item03/new", 0)]
    more = CheckedDataset(checked.dataset, (*checked.photographs, *in_split(added, "train").photographs))
    more = replace(more, dataset=as_dataset(more.photographs))
    found = folds_of(assign_folds(more, 3))
    assert {name: found[name] for name in folds_of(checked)} == folds_of(checked)
    assert found["item03/new"] == by_group["item03"]
    assert found["item99/0"] in (1, 2, 3)


def test_test_photographs_get_no_fold(photographs):
    checked = in_split(photographs, "train")
    held = [replace(one, item=one.item.with_split("test")) for one in checked.photographs[:8]]
    mixed = (*held, *checked.photographs[8:])
    items = assign_folds(CheckedDataset(as_dataset(mixed), mixed), 3).dataset.items
    assert [(item.split, item.fold) for item in items[:8]] == [("test", None)] * 8
    assert all(item.fold for item in items[8:])


def test_a_fold_without_defects_is_refused():
    made = [photograph(f"good{number}/0", 0) for number in range(6)] + [photograph("bad/0", 1)]
    with pytest.raises(DatasetError, match=r"Fold 2 of 2 would hold 3 good and 0 defective.*fewer folds"):
        assign_folds(in_split(made, "train"), 2)
    assert set(folds_of(assign_folds(in_split(made, "train"), 2, good_only=True)).values()) == {1, 2}
    with pytest.raises(DatasetError, match=r"Fold \d of 8 would hold 0 good.*Expected good ones"):
        assign_folds(in_split(made, "train"), 8, good_only=True)
