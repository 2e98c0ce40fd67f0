import json

import numpy as np
import pytest

from datasets.annotations.class_values import box_classes, spread_classes
from datasets.layouts import folder
from datasets.loading import load_dataset
from datasets.reading import read
from datasets.reading_options import ReadingOptions
from datasets.sample import VALUES_ARE_CLASSES
from datasets.sharding.packing import pack
from segdec.errors import DatasetError
from segdec.images import write_png


def test_background_has_the_class_of_the_nearest_defect():
    for values, classes in (([1, 0, 0, 0, 0, 2], [[1, 1, 1, 2, 2, 2]]), ([0, 0, 3], [[3, 3, 3]])):
        assert spread_classes(np.array([values], np.uint8)).tolist() == classes
    assert spread_classes(np.zeros((1, 3), np.uint8)) is None


def test_boxes_keep_classes_and_the_smaller_one_is_on_top():
    drawn = np.zeros((6, 6), np.uint8)
    drawn[0, :], drawn[:, 0], drawn[5, 5], drawn[3, 3] = 1, 1, 1, 2
    expected = np.ones((6, 6), np.uint8)
    expected[3, 3] = 2
    np.testing.assert_array_equal(box_classes(drawn), expected)


@pytest.fixture
def two_kinds(tmp_path, write_picture):
    """A photograph of 20×12 px with a large stain and a scratch across it, and a good one."""
    size, names = {"height": 12, "width": 20}, ("both", "good")
    corners = {1: [2, 2, 8, 2, 8, 3, 2, 3], 2: [0, 0, 10, 0, 10, 10, 0, 10]}
    for name in names:
        write_picture(tmp_path / f"images/{name}.png")
    content = {
        "images": [{"id": key, "file_name": f"{name}.png", **size} for key, name in enumerate(names)],
        "annotations": [{"image_id": 0, "category_id": k, "segmentation": [c]} for k, c in corners.items()],
        "categories": [{"id": 1, "name": "scratch"}, {"id": 2, "name": "stain"}],
    }
    (tmp_path / "annotations.json").write_text(json.dumps(content))
    return tmp_path


def test_regions_keep_the_class_that_a_tool_gave_them(two_kinds):
    dataset = folder.index(two_kinds)
    both, good = dataset.items
    assert dataset.classes == ("good", "scratch", "stain")
    assert (both.mask_values, good.mask_values) == (VALUES_ARE_CLASSES, None)
    assert both.label == 2  # the largest area
    sample = read(both)
    expected = np.zeros((12, 20), np.uint8)
    expected[:10, :10] = 2
    expected[2, 2:8] = 1
    np.testing.assert_array_equal(np.where(sample.mask > 0, sample.classes, 0), expected)


def test_boxes_of_several_kinds_keep_them_and_merged_defects_have_one_mask(two_kinds):
    (two_kinds / "boxes.txt").write_text("box  images/both\n")
    (two_kinds / "splits.txt").write_text("train images\n")
    both, _ = load_dataset("coco", two_kinds, supervision=two_kinds / "boxes.txt").items
    sample = read(both)
    assert both.supervision == "box"
    assert np.unique(sample.classes[sample.mask > 0]).tolist() == [1, 2]
    both, _ = load_dataset("coco", two_kinds, merge_defects=True).items
    sample = read(both)
    assert (both.label, sample.classes) == (1, None)
    assert (sample.mask > 0).sum() == 100


def test_shards_keep_the_class_of_each_pixel(two_kinds):
    dataset = load_dataset("coco", two_kinds)
    pack(dataset, str(two_kinds / "shards"))
    packed = load_dataset("shards", two_kinds / "shards").items
    stored, own = (next(one for one in items if one.label) for items in (packed, dataset.items))
    assert stored.mask_values == VALUES_ARE_CLASSES
    np.testing.assert_array_equal(read(stored).classes, read(own).classes)
    assert json.loads((two_kinds / "shards" / "index.json").read_text())["version"] == 4


def test_mask_files_may_name_the_class_of_each_pixel(folder_root):
    mask = np.zeros((12, 20), np.uint8)
    mask[0, 1], mask[0, 2] = 10, 20
    write_png(folder_root / "masks/dent/c.png", mask)
    dataset = load_dataset(
        "folder", folder_root, reading=ReadingOptions(mask_values={"scratch": 10, "dent": 20})
    )
    sample = read(dataset.items[0])
    assert dataset.classes == ("good", "dent", "scratch")
    assert (sample.mask > 0).sum() == 2 and sample.classes[0, 1:3].tolist() == [2, 1]
    dent = load_dataset("folder", folder_root, reading=ReadingOptions(mask_values={"dent": 20})).items[0]
    with pytest.raises(DatasetError, match=r"holds the values 10, which are not classes\. Expected 0 and 20"):
        read(dent)
    with pytest.raises(DatasetError, match=r"names the unknown class 'dend'.*Did you mean 'dent'"):
        load_dataset("folder", folder_root, reading=ReadingOptions(mask_values={"dend": 20}))
