import cv2
import numpy as np
import pytest

from datasets.checking import check_dataset
from datasets.layouts.folder import index
from datasets.loading import load_dataset
from datasets.reading import read
from datasets.reading_options import ReadingOptions
from datasets.supervision import apply_supervision
from segdec.errors import DatasetError


@pytest.fixture
def limited(folder_root, tmp_path):
    """The set of plain folders, all of it to train on, limited by the lines of a supervision file."""

    def limit(text, splits="train good\ntrain dent\ntrain scratch\n", **options):
        path, split_file = tmp_path / "supervision.txt", tmp_path / "mine.txt"
        path.write_text(text)
        split_file.write_text(splits)
        return load_dataset("folder", folder_root, split_file, ReadingOptions(**options), supervision=path)

    return limit


def annotations(dataset):
    return {item.name: (item.supervision, item.mask_file is not None) for item in dataset.items}


def test_lines_limit_defects_and_leave_good_photographs_alone(limited):
    dataset = limited("# N = 0\nlabel  dent/c\nbox scratch\nlabel good/a\n")
    assert annotations(dataset) == {
        "dent/c": ("label", False),
        "good/a": ("mask", False),
        "good/b": ("mask", False),
        "scratch/d": ("box", True),
    }
    checked = check_dataset(dataset)
    assert checked.dataset.problems == ()
    assert len(checked.dataset.items[0].digests) == 1  # nothing of the mask is left


def test_the_test_split_keeps_its_masks(limited):
    dataset = limited("label dent\nlabel scratch\n", "train dent\ntest scratch\nval good/a\n")
    assert annotations(dataset)["dent/c"] == ("label", False)
    assert annotations(dataset)["scratch/d"] == ("mask", True)


def test_boxes_bound_each_connected_part_of_what_the_threshold_leaves(limited, folder_root):
    mask = np.zeros((12, 20), np.uint8)
    mask[0, 0] = mask[1, 1] = mask[2, 0] = 200  # joined at their corners
    mask[4:6, 5] = mask[5, 5:8] = 128
    mask[8, 8] = 90
    cv2.imwrite(str(folder_root / "masks/dent/c.png"), mask)
    sample = read(limited("box dent\n", mask_threshold=127).items[0])
    expected = np.zeros_like(mask)
    expected[0:3, 0:2] = expected[4:6, 5:8] = 255
    assert sample.supervision == "box"
    np.testing.assert_array_equal(sample.mask, expected)


def test_a_mask_that_is_not_there_is_a_problem_for_each_photograph(folder_root, write_picture, tmp_path):
    write_picture(folder_root / "dent/e.png")
    (folder_root / "masks/dent/c.png").unlink()
    (folder_root / "supervision.txt").write_text("label dent\n")
    path = tmp_path / "more.txt"
    path.write_text("label scratch\nbox dent\n")
    dataset = apply_supervision(index(folder_root), path)
    assert [(p.place, p.name) for p in dataset.problems] == [
        (f"{path}, line 2", "dent/c"),
        (f"{path}, line 2", "dent/e"),
    ]
    assert sorted(annotations(dataset)) == ["good/a", "good/b", "scratch/d"]


def test_lines_that_contradict_each_other_are_refused(limited):
    words = "line 2: the photograph 'dent/c' has 'box' here and 'label' in line 1"
    with pytest.raises(DatasetError, match=words):
        limited("label dent\nbox dent/c\n")


def test_names_of_broken_photographs_are_known(folder_root, tmp_path):
    (folder_root / "masks/dent/c.png").unlink()
    dataset, path = index(folder_root), tmp_path / "supervision.txt"
    path.write_text("label dent/c\nbox dent\nbox scratch\n")
    limited = apply_supervision(dataset, path)
    assert limited.problems == dataset.problems != ()
    assert annotations(limited)["scratch/d"] == ("box", True)
