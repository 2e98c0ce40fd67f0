import shutil

import numpy as np

from datasets.checking import check_dataset
from datasets.contact_sheet import contact_sheet
from datasets.layouts.folder import index
from datasets.overview import describe
from datasets.splitting import apply_splits


def table_row(text, head):
    return next(line for line in text.splitlines() if line.startswith(head))[len(head) :].split()


def test_table_counts_splits_sizes_and_areas(folder_root, write_picture):
    write_picture(folder_root / "good/big.png", size=(40, 12))
    (folder_root / "splits.txt").write_text("train good/a\ntrain dent/c\nval good/b\n")
    dataset = index(folder_root)
    text = describe(dataset, check_dataset(dataset).photographs)
    assert table_row(text, "photographs") == ["train", "val", "test", "left", "out", "all"]
    assert table_row(text, "good ") == ["1", "1", "0", "1", "3"]
    assert table_row(text, "dent ") == ["1", "0", "0", "0", "1"]
    assert table_row(text, "all ") == ["2", "1", "0", "2", "5"]
    assert table_row(text, "width, px") == ["20", "20", "40"]
    assert table_row(text, "dent, px") == ["6"] * 5
    assert table_row(text, "dent, %") == ["2.500"] * 5


def test_table_says_that_no_photograph_shows_a_defect(tmp_path, write_picture):
    write_picture(tmp_path / "good/a.png")
    dataset = index(tmp_path)
    text = describe(dataset, check_dataset(dataset).photographs)
    assert "No photograph shows a defect." in text
    assert table_row(text, "defect ") == ["0", "0", "0", "0", "0"]
    assert "defect area" not in text


def test_table_names_duplicates_across_splits_and_others(folder_root, tmp_path):
    for name in ("across", "left"):
        shutil.copy(folder_root / "good/a.png", folder_root / f"good/{name}.png")
    shutil.copy(folder_root / "good/b.png", folder_root / "good/within.png")
    splits = tmp_path / "splits.txt"
    splits.write_text("train good/a\ntest good/across\nval good/b\nval good/within\n")
    dataset = apply_splits(index(folder_root), splits)
    text = describe(dataset, check_dataset(dataset).photographs)
    assert "different splits: 1\n  good/a (train) = good/across (test) = good/left (left out)\n" in text
    assert text.endswith("other equal photographs: 1\n  good/b (val) = good/within (val)")


def test_contact_sheet_shows_defects_first_and_fits(folder_root):
    sheet = contact_sheet(index(folder_root))
    assert sheet.dtype == np.uint8
    assert sheet.shape[1] <= 2000
    outlined = (sheet[:, :, 2].astype(int) - sheet[:, :, 0] > 120).any(axis=0)  # the blue outline of a mask
    tile = sheet.shape[1] // 4
    assert [outlined[start : start + tile].any() for start in range(0, 4 * tile, tile)] == [1, 1, 0, 0]
