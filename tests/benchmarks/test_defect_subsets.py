"""Subsets of the defective training photographs."""

from pathlib import Path

import pytest

from benchmarks.defect_subsets import keep_defects
from datasets.sample import Record
from segdec.errors import ConfigError


def records():
    splits = ["train"] * 10 + ["val"] * 3 + ["test"] * 3
    return [
        Record(f"{number:02}", Path(f"{number}.png"), None, label=number % 2, group=str(number), split=split)
        for number, split in enumerate(splits)
    ]


@pytest.mark.parametrize("defects", [0, 3])
def test_a_number_of_defective_training_photographs_is_kept(defects):
    kept = list(keep_defects(records(), defects, seed=0))
    assert sum(record.label for record in kept if record.split == "train") == defects
    others = [record for record in records() if not (record.split == "train" and record.label)]
    if not defects:
        others = [record for record in others if not (record.split == "val" and record.label)]
    assert [record for record in kept if record in others] == others
    with pytest.raises(ConfigError, match="--defects 6: the training split has only 5"):
        keep_defects(records(), 6, seed=0)
