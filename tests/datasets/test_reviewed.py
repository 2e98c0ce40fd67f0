import json

import cv2
import numpy as np
import pytest

from datasets.loading import load_dataset
from datasets.reading import read
from datasets.reading_options import ReadingOptions
from segdec.errors import DatasetError


@pytest.fixture
def make_reviewed(tmp_path, write_picture):
    """Writes a folder as an export leaves it, from pairs of name and label; a mask of value 1 for some."""

    def make(folder, *judged, classes=("dent", "scratch"), masked=()):
        root, lines = tmp_path / folder, []
        for name, label in judged:
            write_picture(root / f"pictures/{name}.png")
            line = {"image": f"pictures/{name}.png", "label": label, "group": "A7"}
            if name in masked:
                write_picture(root / f"masks/{name}.png", mask=True, value=1)
                line["mask"] = f"masks/{name}.png"
            lines.append(json.dumps({"name": f"reviewed/{name}", **line}))
        (root / "manifest.jsonl").write_text("\n".join(lines))
        (root / "classes.txt").write_text("\n".join(classes))
        return root

    return make


def described(dataset):
    return {r.name: (dataset.classes[r.label], r.supervision) for r in dataset.items if "reviewed" in r.name}


def test_photographs_that_people_judged_are_added(folder_root, make_reviewed):
    first = make_reviewed("one", ("a", "scratch"), ("b", "dent"), masked="a")
    dataset = load_dataset("folder", folder_root, reviewed=[first])
    assert len(dataset.items) == 6 and dataset.classes == ("good", "dent", "scratch")
    assert described(dataset) == {"reviewed/a": ("scratch", "mask"), "reviewed/b": ("dent", "label")}
    assert [r.group for r in dataset.items if r.name.startswith("reviewed")] == ["A7", "A7"]
    assert [item.name for item in dataset.items] == sorted(item.name for item in dataset.items)


@pytest.mark.parametrize(("answer", "label"), [("defect_labels", "no burr"), ("good_labels", "good")])
def test_answers_about_labels_are_those_of_the_data_set(
    folder_root, make_reviewed, write_picture, answer, label
):
    write_picture(folder_root / "no burr/e.png")
    (folder_root / "supervision.txt").write_text("label  no burr\n")
    folder = make_reviewed("one", ("a", "no burr"), classes=("no burr",))
    reading = ReadingOptions(**{answer: ["no burr"]})
    dataset = load_dataset("folder", folder_root, reading=reading, reviewed=[folder])
    assert dataset.problems == ()
    assert described(dataset)["reviewed/a"][0] == label


def test_the_folder_named_last_says_what_a_photograph_shows(folder_root, make_reviewed):
    one, two = make_reviewed("one", ("a", "scratch")), make_reviewed("two", ("a", "good"), ("b", "good"))
    dataset = load_dataset("folder", folder_root, reviewed=[one, two])
    assert described(dataset) == {"reviewed/a": ("good", "mask"), "reviewed/b": ("good", "mask")}


def test_masks_keep_their_classes_where_the_data_set_numbers_them_otherwise(folder_root, make_reviewed):
    folder = make_reviewed("one", ("a", "scratch"), classes=("scratch", "dent"), masked="a")
    pixels = np.zeros((12, 20), np.uint8)
    pixels[4, 5:8], pixels[5, 5:8] = 1, 2
    assert cv2.imwrite(str(folder / "masks/a.png"), pixels)
    dataset = load_dataset(
        "folder", folder_root, reading=ReadingOptions(mask_threshold=200), reviewed=[folder]
    )
    sample = read(next(item for item in dataset.items if item.name == "reviewed/a"))
    assert (sample.classes[4, 5:8] == 2).all() and (sample.classes[5, 5:8] == 1).all()
    assert np.count_nonzero(sample.mask) == 6


def test_areas_that_are_ignored_stay_so(folder_root, make_reviewed):
    folder = make_reviewed("one", ("a", "scratch"), classes=("scratch", "dent"), masked="a")
    pixels = np.zeros((12, 20), np.uint8)
    pixels[4, 5:8], pixels[0] = 1, 255
    assert cv2.imwrite(str(folder / "masks/a.png"), pixels)
    manifest = folder / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace('"mask"', '"class_mask"'))
    dataset = load_dataset("folder", folder_root, reviewed=[folder])
    sample = read(next(item for item in dataset.items if item.name == "reviewed/a"))
    assert sample.label == 2 and sample.classes is None  # all defect pixels have the class of the label
    assert np.count_nonzero(sample.mask) == 3 and sample.ignored[0].all()


def test_values_in_masks_keep_their_classes_beside_a_listed_class_that_means_good(folder_root, make_reviewed):
    classes = ("dent", "undamaged", "scratch")
    folder = make_reviewed("one", ("a", "scratch"), classes=classes, masked="a")
    pixels = np.zeros((12, 20), np.uint8)
    pixels[4, 5:8], pixels[5, 5:8] = 1, 3
    assert cv2.imwrite(str(folder / "masks/a.png"), pixels)
    manifest = folder / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace('"mask"', '"class_mask"'))
    dataset = load_dataset("folder", folder_root, reviewed=[folder])
    item = next(item for item in dataset.items if item.name == "reviewed/a")
    assert read(item).classes[4:6, 5].tolist() == [1, 2]
    assert cv2.imwrite(str(folder / "masks/a.png"), pixels - (pixels == 3))
    with pytest.raises(DatasetError, match="holds the values 2, which are not classes"):
        read(item)


def test_a_class_that_the_data_set_does_not_have_is_refused(folder_root, make_reviewed):
    folder = make_reviewed("one", ("a", "hole"), ("b", "good"), classes=("dent", "hole"))
    words = r"the label of 1 photograph is 'hole'.*good, dent, scratch.*Train a new"
    with pytest.raises(DatasetError, match=words):
        load_dataset("folder", folder_root, reviewed=[folder])
    dataset = load_dataset("folder", folder_root, merge_defects=True, reviewed=[folder])
    assert dataset.classes == ("good", "defect")
    assert described(dataset) == {"reviewed/a": ("defect", "label"), "reviewed/b": ("good", "mask")}
