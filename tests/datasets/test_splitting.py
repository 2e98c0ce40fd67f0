from pathlib import Path

import pytest

from datasets.sample import Dataset, DataSetItem
from datasets.splitting import apply_splits, default_split, write_splits
from segdec.errors import DatasetError


@pytest.fixture
def split_file(tmp_path):
    def write(text):
        path = tmp_path / "splits.txt"
        path.write_bytes(text.encode())
        return path

    return write


def splits_of(dataset):
    return {item.name: item.split for item in dataset.items}


def test_names_of_groups_and_items_are_assigned(ten_parts, split_file):
    path = split_file("# note\n\ntrain  kos01\nval\tkos02/Part1\r\n  test kos03\n")
    found = {name: split for name, split in splits_of(apply_splits(ten_parts, path)).items() if split}
    train, test = dict.fromkeys(("kos01/Part0", "kos01/Part1"), "train"), ("kos03/Part0", "kos03/Part1")
    assert found == {**train, "kos02/Part1": "val", **dict.fromkeys(test, "test")}


def test_folds_are_parts_of_train_and_are_written_again(ten_parts, split_file, tmp_path):
    assigned = apply_splits(ten_parts, split_file("fold_1  kos01\nfold_10 kos02\ntest kos03\n"))
    found = {item.group: (item.split, item.fold) for item in assigned.items if item.split}
    assert found == {"kos01": ("train", 1), "kos02": ("train", 10), "kos03": ("test", None)}
    written = tmp_path / "written.txt"
    write_splits(written, assigned.items)
    assert apply_splits(ten_parts, written) == assigned
    item = assigned.items[0]
    assert item.identity() != item.with_split("train", 2).identity()


def test_names_may_hold_blanks_and_the_file_a_byte_order_mark(split_file):
    dataset = Dataset(
        ("good", "defect"), (DataSetItem("good/a b", Path("i"), None, label=0, group="good/a b"),)
    )
    assert splits_of(apply_splits(dataset, split_file("\ufefftrain  good/a b\n"))) == {"good/a b": "train"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train kos01\ntrain kos99\n", r"splits\.txt, line 2: .* named 'kos99'"),
        ("train Kos01/Part0\n", "Nearest known name: 'kos01/Part0'"),
        ("# note\ntrain\n", r"splits\.txt, line 2: invalid line 'train'"),
        ("trian kos01\n", r"line 1: invalid line 'trian kos01'\. Expected one of train, val, test"),
        ("train kos01\n\ntest kos01\n", "line 3: the photograph 'kos01/Part0' .* in line 1 to 'train'"),
        ("train kos01\nval kos01/Part1\n", "line 2: the photograph 'kos01/Part1' is assigned to 'val'"),
        ("train kos01/Part0\ntest kos01/Part1\n", "line 2: the group 'kos01' is assigned to 'test'"),
        ("# nothing\n", "has no line with a name"),
    ],
)
def test_bad_lines_are_refused_with_their_number(ten_parts, split_file, text, message):
    with pytest.raises(DatasetError, match=message):
        apply_splits(ten_parts, split_file(text))


def test_default_split_is_stratified_grouped_and_complete(ten_parts):
    dataset = default_split(ten_parts)
    defective = {item.group for item in ten_parts.items if item.label}  # five groups of ten
    for split, count in (("train", 6), ("val", 2), ("test", 2)):
        groups = {item.group for item in dataset.of_split(split)}
        assert (len(groups), len(groups & defective)) == (count, count // 2)
    assert len({(r.group, r.split) for r in dataset.items}) == 10


def test_default_split_depends_on_the_seed_alone(ten_parts):
    assert default_split(ten_parts, seed=1) == default_split(ten_parts, seed=1)
    assert default_split(ten_parts, seed=1) != default_split(ten_parts, seed=2)
    turned = Dataset(ten_parts.classes, ten_parts.items[::-1])
    assert splits_of(default_split(turned)) == splits_of(default_split(ten_parts))
