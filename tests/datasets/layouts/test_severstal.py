import cv2
import numpy as np
import pytest

from datasets.layouts.severstal import index
from segdec.errors import DatasetError
from tests.datasets.layouts.contents import check_problems, described, marked

HEADER = "ImageId,ClassId,EncodedPixels\n"


@pytest.fixture
def write_set(tmp_path):
    """Writes grey strips of the published size and a table with `rows`; returns the root."""

    def write(rows, *, names=("a1.jpg", "b2.jpg", "c3.jpg"), header=HEADER):
        (tmp_path / "train_images").mkdir()
        for name in names:
            cv2.imwrite(str(tmp_path / "train_images" / name), np.full((256, 1600), 90, np.uint8))
        (tmp_path / "train.csv").write_text(header + rows, encoding="utf-8")
        return tmp_path

    return write


def test_all_rows_of_a_photograph_are_drawn_down_the_columns(write_set):
    # pixel 1 is the upper left one, 257 the first of the second column, 409600 the last of all
    dataset = index(write_set("a1.jpg,3,1 2 257 1\na1.jpg,1,409600 1\na1.jpg,3,255 1\n"))
    assert marked(dataset.items[0]) == [(0, 0), (0, 1), (1, 0), (254, 0), (255, 1599)]
    assert dataset.classes == ("good", "defect_1", "defect_2", "defect_3", "defect_4")
    assert [(item.name, item.label) for item in dataset.items] == [("a1", 3), ("b2", 0), ("c3", 0)]
    assert dataset.problems == ()


def test_label_is_the_class_of_most_pixels_and_the_lowest_of_equal_ones(write_set):
    dataset = index(write_set("a1.jpg,1,1 9\na1.jpg,2,20 5\na1.jpg,2,30 5\nb2.jpg,4,1 3\nb2.jpg,3,9 3\n"))
    assert [item.label for item in dataset.items] == [2, 3, 0]


def test_table_of_the_competition_is_read(write_set):
    rows = "".join(f"a1.jpg_{k},{'7 3' if k == 2 else ''}\n" for k in (1, 2, 3, 4)) + "b2.jpg_1,\n"
    dataset = index(write_set(rows, header="ImageId_ClassId,EncodedPixels\n"))
    assert [item.label for item in dataset.items] == [2, 0, 0]


def test_all_problems_are_reported_at_once_and_other_photographs_stay(write_set):
    dataset = index(
        write_set(
            "a1.jpg,1,409600 2\n"  # line 2
            "a1.jpg,2,1 5\n"
            "gone.jpg,1,1 5\n"
            "b2.jpg,5,1 5\n"
            "b2.jpg,1,1 5 3\n"
            "b2.jpg,1,1 5 3 4\n"
        )
    )
    assert described(dataset) == [("c3", "good", "mask", False)]
    expected = [
        ("line 2, a1.jpg", "a1", "the run of 2 pixels from pixel 409600 exceeds the picture of 1600×256"),
        ("line 4, gone.jpg", "gone", "the photograph is not in train_images"),
        ("line 5, b2.jpg", "b2", "the class '5' is not one of"),
        ("line 6, b2.jpg", "b2", "3 numbers arrived; expected pairs"),
        ("line 7, b2.jpg", "b2", "from pixel 1 and from pixel 3 overlap"),
    ]
    check_problems(dataset, expected)


def test_root_that_is_no_such_set_is_refused(write_set, tmp_path):
    with pytest.raises(DatasetError, match="train_images does not exist"):
        index(tmp_path)
    root = write_set("", header="Image,Mask\n")
    with pytest.raises(DatasetError, match=r"has the columns Image, Mask\. Expected ImageId"):
        index(root)
    (root / "train.csv").unlink()
    with pytest.raises(DatasetError, match=r"train\.csv does not exist"):
        index(root)
    for path in (root / "train_images").iterdir():
        path.unlink()
    with pytest.raises(DatasetError, match="holds no photograph"):
        index(root)
