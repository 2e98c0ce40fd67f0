import os
from pathlib import Path

import pytest

from datasets.loading import LAYOUTS, load_dataset
from datasets.problems import describe_problems
from datasets.splitting import write_splits
from segdec.errors import DatasetError


def test_split_file_replaces_the_split_of_the_layout(folder_root, tmp_path):
    splits = tmp_path / "mine.txt"
    splits.write_text("test dent/c\n")
    dataset = load_dataset("folder", folder_root, splits)
    assert {item.name: item.split for item in dataset.items if item.split} == {"dent/c": "test"}


def test_names_that_no_split_file_holds_are_problems(folder_root, write_picture, tmp_path):
    picture = write_picture(tmp_path / "any.png").read_bytes()
    odd = [b" a", b"a ", b"a\nb", b"a\x85b".decode("latin-1").encode(), b"gr\xfcn"]
    for name in (*odd, b"# 1", "grün 2".encode(), b"tab\tb", b"two  blanks"):
        Path(os.fsdecode(bytes(folder_root / "good") + b"/" + name + b".png")).write_bytes(picture)
    dataset = load_dataset("folder", folder_root)
    assert {problem.name for problem in dataset.problems} == {f"good/{os.fsdecode(name)}" for name in odd[1:]}
    describe_problems(dataset.problems).encode()
    splits = tmp_path / "splits.txt"
    write_splits(splits, dataset.items)
    assert load_dataset("folder", folder_root, splits).items == dataset.items
    assert "good/tab\tb" in {item.name for item in dataset.items}


def test_unknown_layout_names_the_nearest(tmp_path):
    with pytest.raises(DatasetError, match=r"'kolector'.*Did you mean 'kolektor'") as error:
        load_dataset("kolector", tmp_path)
    assert all(name in str(error.value) for name in LAYOUTS)


@pytest.mark.parametrize("name", ["unsure", "Review", "not_inspected"])
@pytest.mark.parametrize("merge_defects", [False, True])
def test_labels_that_are_not_classes_are_refused_as_classes(folder_root, write_picture, name, merge_defects):
    write_picture(folder_root / name / "x.png")
    with pytest.raises(DatasetError, match=f"has the class '{name}'.*`ignore`"):
        load_dataset("folder", folder_root, merge_defects=merge_defects)
    (folder_root / name).rename(folder_root / "ignore")
    assert "ignore/x" not in {r.name for r in load_dataset("folder", folder_root).items}
