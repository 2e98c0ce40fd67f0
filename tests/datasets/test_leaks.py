from dataclasses import replace
from pathlib import Path

import pytest

from datasets.checking import Checked, Finding
from datasets.leaks import find_leaks, refuse_unusable
from datasets.sample import Dataset, Problem, Record
from segdec.errors import DatasetError


def finding(name, split, picture):
    record = Record(name, Path(name), None, 0, name.split("/")[0], split)
    return Finding(record, 4, 6, 1, 0, picture)


@pytest.fixture
def findings():
    """kos26 is kos01 again, over the border; other twins stay within a split or have none."""
    return [
        finding("kos01/Part0", "train", "A"),
        finding("kos01/Part1", "train", "B"),
        finding("kos26/Part0", "test", "A"),
        finding("kos26/Part1", "test", "B"),
        finding("kos03/Part0", "val", "C"),
        finding("kos04/Part0", "val", "C"),
        finding("kos05/Part0", None, "C"),
        finding("kos06/Part0", "val", "D"),
    ]


def refuse(findings, **options):
    records = tuple(finding.record for finding in findings)
    broken = Problem("p", "broken", "kos09/Part0")
    dataset = Dataset(("good",), records, (broken,))
    refuse_unusable(dataset, Checked(dataset, tuple(findings)), **options)


def test_a_picture_in_two_splits_is_a_leak(findings):
    named = [[f.record.name for f in leak] for leak in find_leaks(findings)]
    assert named == [["kos01/Part0", "kos26/Part0"], ["kos01/Part1", "kos26/Part1"]]


def test_all_problems_and_leaks_are_named_at_once(findings):
    with pytest.raises(DatasetError, match=r"(?s)1 problem:\n  p: broken\n.*2 pictures lie") as error:
        refuse(findings)
    lines = str(error.value).splitlines()
    assert lines[-4:-1] == [
        "2 pictures lie in different splits:",
        "  kos01/Part0 (train) = kos26/Part0 (test)",
        "  kos01/Part1 (train) = kos26/Part1 (test)",
    ]
    assert "data.allowed_leaks" in lines[-1]


def test_problems_alone_may_be_skipped(findings):
    with pytest.raises(DatasetError, match=r"^2 pictures lie in different splits:"):
        refuse(findings, skip_broken=True)
    within = [replace(f, record=f.record.assigned("train")) for f in findings]
    refuse(within, skip_broken=True)
    with pytest.raises(DatasetError, match=r"1 problem:"):
        refuse(within)


def test_a_leak_passes_when_each_of_its_photographs_is_named(findings):
    both = ["kos01", "kos26/Part0", "kos26/Part1", "kos09/Part0"]
    refuse(findings, allowed_leaks=both, skip_broken=True)
    with pytest.raises(DatasetError, match=r"(?s)^1 picture lies .*  kos01/Part1 \(train\) = kos26/Part1"):
        refuse(findings, allowed_leaks=["kos01", "kos26/Part0"], skip_broken=True)


def test_an_unknown_name_tells_the_nearest(findings):
    with pytest.raises(DatasetError, match=r"'kos62' .*allowed_leaks.*Nearest known name: 'kos26'"):
        refuse(findings, allowed_leaks=["kos01", "kos62"])
