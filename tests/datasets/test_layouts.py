import subprocess
import sys

import pytest

from datasets.layouts import LAYOUTS, load_dataset
from segdec.errors import DatasetError


def test_layout_is_found_by_name(kolektor_root, folder_root):
    assert len(load_dataset("kolektor", kolektor_root).records) == 4
    assert load_dataset("folder", folder_root).classes == ("good", "dent", "scratch")


@pytest.mark.parametrize("layout", ["kolektor", "folder"])
def test_any_layout_takes_a_split_file(layout, kolektor_root, folder_root, tmp_path):
    root, name = (kolektor_root, "kos01/Part1") if layout == "kolektor" else (folder_root, "dent/c")
    splits = tmp_path / "mine.txt"
    splits.write_text(f"test {name}\n")
    dataset = load_dataset(layout, root, splits)
    assert [record.name for record in dataset.of_split("test")] == [name]
    assert dataset.of_split("train") == ()


def test_unknown_layout_names_the_nearest(tmp_path):
    with pytest.raises(DatasetError, match=r"'kolector'.*Did you mean 'kolektor'") as error:
        load_dataset("kolector", tmp_path)
    assert all(name in str(error.value) for name in LAYOUTS)


def test_import_loads_no_tensorflow():
    code = "import sys, datasets.layouts, datasets.__main__; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
