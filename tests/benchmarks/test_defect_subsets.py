"""Subsets of the defective training photographs."""

from pathlib import Path

import pytest

from benchmarks.defect_subsets import keep_defects
from datasets.sample import DataSetItem
from segdec.errors import ConfigError


def items():
    splits = ["train"] * 10 + ["val"] * 3 + ["test"] * 3
    return [
        DataSetItem(
            f"{number:02}", Path(f"{number}.png"), None, label=number % 2, group=str(number), split=split
        )
        for number, split in enumerate(splits)
    ]


@pytest.mark.parametrize("defects", [0, 3])
def test_a_number_of_defective_training_photographs_is_kept(defects):
    kept = list(keep_defects(items(), defects, seed=0))
    assert sum(item.label for item in kept if item.split == "train") == defects
    others = [item for item in items() if not (item.split == "train" and item.label)]
    if not defects:
        others = [item for item in others if not (item.split == "val" and item.label)]
    assert [item for item in kept if item in others] == others
    with pytest.raises(ConfigError, match="--defects 6: the training split has only 5"):
        keep_defects(items(), 6, seed=0)
