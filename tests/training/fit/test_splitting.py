"""What trains, validates and tests, down to a single defect."""

from dataclasses import replace

import pytest

from segdec.errors import DatasetError
from training.fit.splitting import split_dataset

GOOD, BAD = [(0,)], [(1,)]


def test_parts_are_divided_60_20_20(profiled_of):
    division = split_dataset(profiled_of([GOOD] * 40 + [BAD] * 10))
    assert (division.good, division.defective) == ((24, 8, 8), (6, 2, 2))
    assert division.evaluated == "test"
    assert division.reasons[0] == "60, 20 and 20\N{NO-BREAK SPACE}% of the parts"
    assert "up to 84\N{NO-BREAK SPACE}%" in division.reasons[-1]


def test_groups_and_near_duplicates_are_not_divided(profiled_of):
    groups = [[(0,), (0,), (1,)] for _ in range(20)] + [GOOD] * 20
    profiled = profiled_of(groups, duplicates=[(60, 61, 62, 63)])
    items = split_dataset(profiled).dataset.items
    splits = {}
    for item in items:
        splits.setdefault(item.group, set()).add(item.split)
    assert all(len(own) == 1 for own in splits.values())
    assert len({item.split for item in items[60:64]}) == 1


@pytest.mark.parametrize(
    ("defects", "expected", "evaluated", "worth"),
    [
        (9, (5, 2, 2), "test", "may be"),
        (3, (1, 1, 1), "test", "up to 98\N{NO-BREAK SPACE}%"),
        (2, (1, 1, 0), "val", "the metrics are too good"),
        (1, (1, 0, 0), "test", "the miss rate stays unknown"),
        (0, (0, 0, 0), "test", "the miss rate stays unknown"),
    ],
)
def test_few_defects_go_where_they_count_most(profiled_of, defects, expected, evaluated, worth):
    division = split_dataset(profiled_of([GOOD] * 20 + [BAD] * defects))
    assert sum(division.defective) == defects
    if defects != 9:
        assert division.defective == expected
    assert min(division.good) >= 3
    assert division.evaluated == evaluated
    assert worth in division.reasons[-1]


def test_the_split_of_the_data_set_is_kept(profiled_of):
    groups = [[(0, "train")], [(1, "train")], [(0, "val")], [(1, "val")], [(0, "test")], [(1, "test")]]
    division = split_dataset(profiled_of(groups, own_split=True))
    assert [item.split for item in division.dataset.items] == [labels[0][1] for labels in groups]
    assert division.reasons[0] == "the split of the data set"


def test_a_validation_without_defects_is_made_anew_and_the_test_stays(profiled_of):
    groups = [[(0, "train")]] * 8 + [[(1, "train")]] * 4 + [[(0, "val")]] * 2 + [[(1, "test")], [(0, "test")]]
    division = split_dataset(profiled_of(groups, own_split=True))
    assert division.defective == (3, 1, 1)
    assert [item.split for item in division.dataset.items][-2:] == ["test", "test"]
    assert "val has 2 and 0: too few" in division.reasons[1]


@pytest.mark.parametrize("with_folds", [False, True])
def test_good_photographs_of_one_part_cannot_be_divided(profiled_of, with_folds):
    with pytest.raises(
        DatasetError, match=r"'val' would hold no good photograph: the 5 good ones are in 1 g"
    ):
        split_dataset(profiled_of([[(0,)] * 5]), with_folds=with_folds)


@pytest.mark.parametrize("defects", [0, 10])
def test_fewer_good_photographs_than_folds_are_refused(profiled_of, defects):
    text = f"holds 2 good and {defects} defective photographs. Expected at least 3 good ones"
    with pytest.raises(DatasetError, match=text):
        split_dataset(profiled_of([GOOD] * 2 + [BAD] * defects), with_folds=True)


def test_identical_photographs_are_one_part(profiled_of):
    profiled = profiled_of([GOOD] * 5)
    same = tuple(replace(one, digest="same") for one in profiled.checked.photographs)
    profiled = replace(profiled, checked=replace(profiled.checked, photographs=same))
    with pytest.raises(DatasetError, match=r"in 1 group.*equal pictures are one group"):
        split_dataset(profiled, with_folds=True)


# === Folds ===


def test_all_photographs_train_in_folds_of_good_and_defective_parts(profiled_of):
    groups = [[(0,), (0,), (1,)] for _ in range(20)] + [GOOD] * 20
    division = split_dataset(profiled_of(groups, duplicates=[(60, 61, 62)]), with_folds=True)
    items = division.dataset.items
    assert division.folds == 3
    assert (division.good, division.defective) == ((60, 0, 0), (20, 0, 0))
    assert {(item.split, item.fold) for item in items} == {("train", fold) for fold in (1, 2, 3)}
    by_group = {item.group: item.fold for item in items}
    assert all(item.fold == by_group[item.group] for item in items)
    assert len({item.fold for item in items[60:63]}) == 1
    assert division.evaluated == "train"
    assert "20 defective photographs in the folds" in division.reasons[-1]


def test_parts_with_good_and_defective_photographs_are_enough(profiled_of):
    division = split_dataset(profiled_of([[(0,), (0,), (1,)] for _ in range(5)]), with_folds=True)
    assert (division.folds, division.good[0], division.defective[0]) == (3, 10, 5)


def test_the_test_of_the_data_set_stays_apart_from_the_folds(profiled_of):
    groups = [[(label, split)] for label in (0, 1) for split in ("train", "val", "test") for _ in range(4)]
    division = split_dataset(profiled_of(groups, own_split=True), with_folds=True)
    assert (division.good, division.defective) == ((8, 0, 4), (8, 0, 4))
    assert division.evaluated == "test"
    assert "test is that of the data set" in division.reasons


@pytest.mark.parametrize("with_folds", [False, True])
def test_near_duplicates_in_the_test_of_the_data_set_stay_there(profiled_of, with_folds):
    groups = [[(label, split)] for label in (0, 1) for split in ("train", "val", "test") for _ in range(4)]
    profiled = profiled_of(groups, own_split=True, duplicates=[(0, 1, 8)])
    items = split_dataset(profiled, with_folds=with_folds).dataset.items
    assert items[8].split == "test"
    assert items[0].fold == items[1].fold


@pytest.mark.parametrize(
    ("groups", "good", "defective"),
    [
        ([GOOD] * 20, (20, 0, 0), (0, 0, 0)),
        ([[(0, "train")]] * 8 + [[(1, "val")]] * 2 + [[(0, "test")], [(1, "test")]], (8, 0, 1), (2, 0, 1)),
    ],
)
def test_without_defects_in_train_the_folds_are_those_of_a_memory(profiled_of, groups, good, defective):
    division = split_dataset(profiled_of(groups, own_split=len(groups[0][0]) > 1), with_folds=True)
    assert (division.heads, division.folds) == (0, 3)
    assert (division.good, division.defective) == (good, defective)


@pytest.mark.parametrize(
    "groups", [[GOOD] * 20 + [BAD], [GOOD] * 20 + [BAD] * 2, [[(0,)] * 9, GOOD, *[BAD] * 9]]
)
def test_fewer_good_or_defective_parts_than_folds_are_split_without_folds(profiled_of, groups):
    assert split_dataset(profiled_of(groups), with_folds=True).folds == 1
