from dataclasses import replace
from pathlib import Path

import pytest

from datasets.checking import CheckedDataset, CheckedPhotograph
from datasets.leaks import find_leaks, refuse_unusable
from datasets.sample import Dataset, Problem, Record
from segdec.errors import DatasetError


def photograph(name, split, picture):
    record = Record(name, Path(name), None, 0, name.split("/")[0], split)
    return CheckedPhotograph(record, 4, 6, 1, 0, picture)


@pytest.fixture
def photographs():
    """kos26 is kos01 again, over the border; other twins stay within a split or have none."""
    return [
        photograph("kos01/Part0", "train", "A"),
        photograph("kos01/Part1", "train", "B"),
        photograph("kos26/Part0", "test", "A"),
        photograph("kos26/Part1", "test", "B"),
        photograph("kos03/Part0", "val", "C"),
        photograph("kos04/Part0", "val", "C"),
        photograph("kos05/Part0", None, "C"),
        photograph("kos06/Part0", "val", "D"),
    ]


def refuse(photographs, **options):
    records = tuple(photograph.record for photograph in photographs)
    broken = Problem("p", "broken", "kos09/Part0")
    dataset = Dataset(("good",), records, (broken,))
    refuse_unusable(dataset, CheckedDataset(dataset, tuple(photographs)), **options)


def test_a_picture_in_two_splits_is_a_leak(photographs):
    named = [[f.record.name for f in leak] for leak in find_leaks(photographs)]
    assert named == [["kos01/Part0", "kos26/Part0"], ["kos01/Part1", "kos26/Part1"]]


def test_all_problems_and_leaks_are_named_at_once(photographs):
    with pytest.raises(DatasetError, match=r"(?s)1 problem:\n  p: broken\n.*2 pictures lie") as error:
        refuse(photographs)
    lines = str(error.value).splitlines()
    assert lines[-4:-1] == [
        "2 pictures lie in different splits:",
        "  kos01/Part0 (train) = kos26/Part0 (test)",
        "  kos01/Part1 (train) = kos26/Part1 (test)",
    ]
    assert "data.allowed_leaks" in lines[-1]


def test_problems_alone_may_be_skipped(photographs):
    with pytest.raises(DatasetError, match=r"^2 pictures lie in different splits:"):
        refuse(photographs, skip_broken=True)
    within = [replace(f, record=f.record.assigned("train")) for f in photographs]
    refuse(within, skip_broken=True)
    with pytest.raises(DatasetError, match=r"1 problem:"):
        refuse(within)


def test_a_leak_passes_when_each_of_its_photographs_is_named(photographs):
    both = ["kos01", "kos26/Part0", "kos26/Part1", "kos09/Part0"]
    refuse(photographs, allowed_leaks=both, skip_broken=True)
    with pytest.raises(DatasetError, match=r"(?s)^1 picture lies .*  kos01/Part1 \(train\) = kos26/Part1"):
        refuse(photographs, allowed_leaks=["kos01", "kos26/Part0"], skip_broken=True)


def test_an_unknown_name_tells_the_nearest(photographs):
    with pytest.raises(DatasetError, match=r"'kos62' .*allowed_leaks.*Nearest known name: 'kos26'"):
        refuse(photographs, allowed_leaks=["kos01", "kos62"])
