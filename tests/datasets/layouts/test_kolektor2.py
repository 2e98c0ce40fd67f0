import pytest

from datasets.layouts.kolektor2 import index
from segdec.errors import DatasetError

GOOD = [f"train/{10000 + number}" for number in range(10)]
DEFECTS = [f"train/{10010 + number}" for number in range(5)]
TEST = ["test/20000", "test/20001"]


@pytest.fixture
def root(tmp_path, write_picture):
    """Ten good and five defective photographs to train, one of each to test."""
    for name in (*GOOD, *DEFECTS, *TEST):
        write_picture(tmp_path / f"{name}.png")
        value = 255 if name in (*DEFECTS, TEST[1]) else 0
        write_picture(tmp_path / f"{name}_GT.png", mask=True, value=value)
    return tmp_path


def test_photographs_are_split_by_folder_and_labelled_by_mask(root):
    dataset = index(root)
    assert dataset.classes == ("good", "defect")
    assert dataset.problems == ()
    assert [r.name for r in dataset.items if r.label] == ["test/20001", *DEFECTS]
    assert [r.name for r in dataset.of_split("test")] == TEST
    assert all(r.group == r.name and r.mask_file == root / f"{r.name}_GT.png" for r in dataset.items)


@pytest.mark.parametrize("folder", ["train", "test"])
def test_missing_folder_says_what_was_expected(root, folder):
    (root / folder).rename(root / "other")
    with pytest.raises(DatasetError, match=rf"no KolektorSDD2 photographs for '{folder}'. Expected .*_GT"):
        index(root)
