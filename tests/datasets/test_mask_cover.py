from dataclasses import replace

import cv2
import numpy as np
import pytest

from datasets.annotations.combined_mask import CombinedMask
from datasets.annotations.drawn_mask import DrawnMask
from datasets.annotations.rotated_mask import RotatedMask
from datasets.annotations.shapes import Box
from datasets.checking import check_dataset
from datasets.loading import load_dataset
from datasets.mask_cover import check_mask_cover
from datasets.reading import read
from datasets.reading_options import ReadingOptions
from datasets.sample import Dataset, DataSetItem
from datasets.supervision import apply_inverted_masks
from segdec.errors import DatasetError
from segdec.images import ImageHeader


@pytest.fixture
def inverted_root(folder_root):
    """A data set whose masks are white where the part is good; one has only 0 and 1."""
    for name, white in (("dent/c", 255), ("scratch/d", 1)):
        path = str(folder_root / f"masks/{name}.png")
        mask = cv2.imread(path, cv2.IMREAD_GRAYSCALE)
        cv2.imwrite(path, np.where(mask > 0, 0, white).astype(np.uint8))
    return folder_root


def test_inverted_masks_are_refused_once_and_the_message_names_the_option(inverted_root):
    checked = check_dataset(load_dataset("folder", inverted_root))
    with pytest.raises(DatasetError, match=r"2 of 2 masks mark more than 50% .*dent/c, 98%.*--invert-masks"):
        check_mask_cover(checked, decided=False)


def test_inverted_masks_are_refused_if_their_boxes_are_used(inverted_root):
    (inverted_root / "supervision.txt").write_text("box dent\nbox scratch\n")
    with pytest.raises(DatasetError, match=r"2 of 2 masks mark more than 50% .*dent/c, 100%"):
        check_mask_cover(check_dataset(load_dataset("folder", inverted_root)), decided=False)


def test_inverted_masks_mark_the_defects(inverted_root):
    dataset = load_dataset("folder", inverted_root, reading=ReadingOptions(invert_masks=True))
    checked = check_dataset(dataset)
    assert check_mask_cover(checked, decided=True) == []
    assert [photograph.defect_px for photograph in checked.photographs] == [6, 0, 0, 6]
    expected = np.zeros((12, 20), np.uint8)
    expected[4:6, 5:8] = 255
    for item in (dataset.items[0], dataset.items[-1]):
        np.testing.assert_array_equal(read(item).mask, expected)


def test_one_large_defect_is_a_warning(folder_root):
    cv2.imwrite(str(folder_root / "masks/dent/c.png"), np.full((12, 20), 255, np.uint8))
    (warning,) = check_mask_cover(check_dataset(load_dataset("folder", folder_root)), decided=False)
    assert "more than 50% of their photograph: 1 (dent/c)" in warning


def test_a_large_drawn_mask_is_not_taken_for_an_inverted_one(folder_root):
    dataset = load_dataset("folder", folder_root)
    drawn = DrawnMask("line 1", 12, 20, (Box(0, 0, 20, 12),))
    items = [replace(item, mask_file=drawn) if item.label else item for item in dataset.items]
    assert check_mask_cover(check_dataset(dataset.with_items(items)), decided=False) == []


def test_an_empty_inverted_mask_marks_everything(inverted_root):
    cv2.imwrite(str(inverted_root / "masks/dent/c.png"), np.zeros((12, 20), np.uint8))
    (dent, *_) = load_dataset("folder", inverted_root, reading=ReadingOptions(invert_masks=True)).items
    assert read(dent).mask.all()


def test_inverted_class_values_are_refused(inverted_root):
    with pytest.raises(DatasetError, match=r"data\.invert_masks and data\.mask_values exclude"):
        load_dataset(
            "folder", inverted_root, reading=ReadingOptions(mask_values={"dent": 1}, invert_masks=True)
        )


def test_a_drawn_mask_stays_one_if_it_is_rotated(folder_root):
    """The share of the photograph says nothing."""
    dent = load_dataset("folder", folder_root).items[0]
    drawn = DrawnMask("a", 12, 20, (Box(0, 0, 20, 12),))
    rotated = replace(dent, mask_file=RotatedMask(drawn, ImageHeader(12, 20, 3, False)))
    checked = check_dataset(Dataset(("good", "dent"), (rotated,)))
    assert [photograph.defect_px for photograph in checked.photographs] == [240]
    assert check_mask_cover(checked, decided=False) == []


def test_each_of_several_inverted_masks_of_a_photograph_is_inverted(inverted_root):
    parts = tuple(inverted_root / f"masks/{name}.png" for name in ("dent/c", "scratch/d"))
    dent = DataSetItem("dent/c", inverted_root / "dent/c.png", CombinedMask(parts), 1, "dent/c")
    (item,) = apply_inverted_masks(Dataset(("good", "dent"), (dent,))).items
    assert np.count_nonzero(read(item).mask) == 6
