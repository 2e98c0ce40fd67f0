import json

import numpy as np
import pytest

from datasets.annotations.class_values import box_classes, read_classes, spread_classes
from datasets.layouts import coco
from datasets.loading import load_dataset
from datasets.reading import read
from datasets.sample import VALUES_ARE_CLASSES
from datasets.sharding.packing import pack
from segdec.errors import DatasetError
from segdec.images import write_png


def values(*rows):
    return np.array(rows, np.uint8)


def test_each_value_is_a_class():
    mask, classes = read_classes(values([0, 7, 9], [0, 0, 9]), [(7, 2), (9, 1)], "mask.png")
    assert mask.tolist() == [[0, 255, 255], [0, 0, 255]]
    assert classes[mask > 0].tolist() == [2, 1, 1]


def test_background_has_the_class_of_the_nearest_defect():
    assert spread_classes(values([1, 0, 0, 0, 0, 2])).tolist() == [[1, 1, 1, 2, 2, 2]]
    assert spread_classes(values([0, 0, 3])).tolist() == [[3, 3, 3]]
    assert spread_classes(values([0, 0, 0])) is None


def test_boxes_keep_classes_and_the_smaller_one_lies_on_top():
    drawn = np.zeros((6, 6), np.uint8)
    drawn[0, 0] = drawn[5, 5] = drawn[0, 5] = 1
    drawn[0, :], drawn[:, 0] = 1, 1
    drawn[3, 3] = 2
    boxes = box_classes(drawn)
    assert boxes[3, 3] == 2
    assert boxes[2, 2] == 1
    assert np.count_nonzero(boxes == 2) == 1


# === Annotation tools ===


@pytest.fixture
def two_kinds(tmp_path):
    """A photograph of 20 × 10 px with a large stain and a scratch across it, and a good one."""
    (tmp_path / "images").mkdir()
    for level, name in enumerate(("both", "good")):
        write_png(tmp_path / "images" / f"{name}.png", np.full((10, 20), level, np.uint8))
    content = {
        "images": [
            {"id": number, "file_name": f"{name}.png", "height": 10, "width": 20}
            for number, name in enumerate(("both", "good"))
        ],
        "annotations": [
            {"image_id": 0, "category_id": category, "segmentation": [corners]}
            for category, corners in ((1, [2, 2, 8, 2, 8, 3, 2, 3]), (2, [0, 0, 10, 0, 10, 10, 0, 10]))
        ],
        "categories": [{"id": 1, "name": "scratch"}, {"id": 2, "name": "stain"}],
    }
    (tmp_path / "annotations.json").write_text(json.dumps(content))
    return tmp_path


def test_regions_keep_the_class_that_a_tool_gave_them(two_kinds):
    dataset = coco.index(two_kinds)
    both, good = dataset.records
    assert dataset.classes == ("good", "scratch", "stain")
    assert (both.mask_values, good.mask_values) == (VALUES_ARE_CLASSES, None)
    assert both.label == 2  # the largest area
    sample = read(both)
    found = np.where(sample.mask > 0, sample.classes, 0)
    expected = np.zeros((10, 20), np.uint8)
    expected[:, :10] = 2
    expected[2, 2:8] = 1
    np.testing.assert_array_equal(found, expected)


def test_boxes_of_several_kinds_keep_them(two_kinds):
    (two_kinds / "boxes.txt").write_text("box  images/both\n")
    dataset = load_dataset("coco", two_kinds, supervision=two_kinds / "boxes.txt")
    both = next(record for record in dataset.records if record.label)
    if both.split != "test":
        assert both.supervision == "box"
    sample = read(both)
    assert np.unique(sample.classes[sample.mask > 0]).tolist() == [1, 2]


def test_merged_defects_have_one_mask(two_kinds):
    both = next(one for one in load_dataset("coco", two_kinds, merge_defects=True).records if one.label)
    sample = read(both)
    assert (both.label, sample.classes) == (1, None)
    assert (sample.mask > 0).sum() == 100


def test_shards_keep_the_class_of_each_pixel(two_kinds):
    dataset = load_dataset("coco", two_kinds)
    pack(dataset, str(two_kinds / "shards"))
    packed = load_dataset("shards", two_kinds / "shards").records
    stored, own = (next(one for one in records if one.label) for records in (packed, dataset.records))
    assert stored.mask_values == VALUES_ARE_CLASSES
    np.testing.assert_array_equal(read(stored).classes, read(own).classes)
    assert json.loads((two_kinds / "shards" / "index.json").read_text())["version"] == 4


# === Mask files whose values are classes ===


@pytest.fixture
def valued(tmp_path):
    for name in ("good/1", "spot/2", "scratch/3", "masks/spot/2", "masks/scratch/3"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write_png(tmp_path / f"{name}.png", np.zeros((4, 6), np.uint8))
    write_png(tmp_path / "masks/spot/2.png", values([0, 10, 20, 0, 0, 0]))
    write_png(tmp_path / "spot/2.png", np.zeros((1, 6), np.uint8))
    return tmp_path


def test_mask_files_may_name_the_class_of_each_pixel(valued):
    dataset = load_dataset("folder", valued, mask_values={"scratch": 10, "spot": 20})
    record = next(one for one in dataset.records if one.name == "spot/2")
    sample = read(record)
    assert dataset.classes == ("good", "scratch", "spot")
    assert np.where(sample.mask > 0, sample.classes, 0).tolist() == [[0, 1, 2, 0, 0, 0]]


def test_an_unknown_value_of_a_mask_file_is_named(valued):
    records = load_dataset("folder", valued, mask_values={"spot": 20}).records
    record = next(one for one in records if one.name == "spot/2")
    with pytest.raises(DatasetError, match=r"holds the values 10, which are not classes\. Expected 0 and 20"):
        read(record)


def test_a_value_of_an_unknown_class_is_refused(valued):
    with pytest.raises(DatasetError, match=r"names the unknown class 'sport'.*Did you mean 'spot'"):
        load_dataset("folder", valued, mask_values={"sport": 20})
