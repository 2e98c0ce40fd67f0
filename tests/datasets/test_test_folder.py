"""A separate folder of test photographs."""

from dataclasses import replace

import pytest

from datasets.loading import load_dataset
from datasets.sample import Dataset, DataSetItem
from datasets.splitting import write_splits
from datasets.test_folder import add_test_folder
from segdec.errors import DatasetError


def test_the_photographs_of_a_test_folder_are_tested_whatever_the_splits_say(folder_root, tmp_path):
    dataset = load_dataset("folder", folder_root, test_root=folder_root)
    own = load_dataset("folder", folder_root)
    added = [item for item in dataset.items if item.name.startswith("test folder/")]
    assert [item.name.removeprefix("test folder/") for item in added] == [r.name for r in own.items]
    assert {item.split for item in added} == {"test"}
    assert {(r.name, r.split) for r in dataset.items} > {(r.name, r.split) for r in own.items}
    splits = tmp_path / "splits.txt"
    write_splits(splits, (item.with_split("train") for item in own.items))
    again = load_dataset("folder", folder_root, splits, test_root=folder_root)
    assert len(again.of_split("test")) == len(again.of_split("train")) == len(own.items)


def item(label, values=None):
    return DataSetItem(f"part {label}", "part.png", "mask.png", label, f"part {label}", mask_values=values)


def test_classes_are_those_of_the_data_set():
    dataset = Dataset(("good", "dent", "scratch"), (item(1),))
    tested = Dataset(("good", "scratch", "dent"), (item(0), item(1, ((7, 1), (9, 2))), item(2, ())))
    found = {each.name: each for each in add_test_folder(dataset, tested, "more").items}
    assert found["test folder/part 1"].label == 2
    assert found["test folder/part 1"].mask_values == ((7, 2), (9, 1))
    assert found["test folder/part 2"].mask_values == ((1, 2), (2, 1), (255, 255))
    assert found["test folder/part 0"].mask_values is None
    unknown = replace(tested, classes=("good", "hole", "dent"))
    with pytest.raises(DatasetError, match=r"more has photographs of the classes hole, but .*merge_defects"):
        add_test_folder(dataset, unknown, "more")
    assert add_test_folder(dataset, unknown, "more", merge_defects=True).classes[3] == "hole"


def test_a_class_in_masks_that_the_data_set_does_not_have_is_no_other_class():
    dataset = Dataset(("good", "dent"), ())
    tested = Dataset(("good", "hole", "dent"), (item(0, ((7, 1),)), item(2, ((7, 1), (9, 2)))))
    added = add_test_folder(dataset, tested, "more").items
    assert [each.mask_values for each in added] == [((255, 255),), ((9, 1),)]
