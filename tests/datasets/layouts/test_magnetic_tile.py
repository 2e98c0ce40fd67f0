import shutil

import cv2
import numpy as np
import pytest

from datasets.layouts.magnetic_tile import index
from datasets.reading import read
from segdec.errors import DatasetError
from tests.datasets.layouts.contents import check_problems

FREE, BLOWHOLE, UNEVEN = "MT_Free/Imgs/", "MT_Blowhole/Imgs/", "MT_Uneven/Imgs/"


@pytest.fixture
def root(tmp_path, write_picture):
    """A tile at two exposures, at one of which its blowhole shows; a good tile, an uneven tile."""
    for name, value in (
        (f"{FREE}exp1_num_54246", 0),
        (f"{BLOWHOLE}exp3_num_54291", 128),
        (f"{FREE}exp1_num_61000", 127),
        (f"{UNEVEN}exp6_num_72000", 255),
    ):
        write_picture(tmp_path / f"{name}.jpg")
        write_picture(tmp_path / f"{name}.png", mask=True, value=value)
    return tmp_path


def test_classes_are_the_folders_and_exposures_of_a_tile_one_group(root):
    dataset = index(root)
    assert dataset.classes == ("good", "blowhole", "uneven")
    assert dataset.problems == ()
    assert [(r.name, r.label, r.group, r.supervision) for r in dataset.items] == [
        (f"{BLOWHOLE}exp3_num_54291", 1, "num_54246", "mask"),
        (f"{FREE}exp1_num_54246", 0, "num_54246", "mask"),
        (f"{FREE}exp1_num_61000", 0, "num_61000", "mask"),
        (f"{UNEVEN}exp6_num_72000", 2, "num_72000", "mask"),
    ]


def test_smoothed_edge_of_a_mask_is_no_defect(root):
    mask = np.zeros((12, 20), np.uint8)
    mask[4] = 127
    mask[5] = 128
    cv2.imwrite(str(root / f"{BLOWHOLE}exp3_num_54291.png"), mask)
    item = index(root).items[0]
    assert np.flatnonzero(read(item).mask.any(axis=1)).tolist() == [5]


def test_uneven_tile_with_an_empty_mask_has_its_class_alone(root, write_picture):
    write_picture(root / f"{UNEVEN}exp6_num_72000.png", mask=True, value=127)
    item = index(root).items[3]
    assert (item.supervision, item.mask_file, item.label) == ("label", None, 2)


def test_good_tile_needs_no_mask(root):
    (root / f"{FREE}exp1_num_61000.png").unlink()
    item = index(root).items[2]
    assert (item.supervision, item.mask_file, item.label) == ("mask", None, 0)


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        # an exposure is missing; the next tile begins with any exposure
        ([f"{FREE}exp1_num_10448", f"{FREE}exp4_num_10642", f"{FREE}exp3_num_11276"], [10448, 10448, 11276]),
        ([f"{FREE}exp1_num_1000", f"{FREE}exp2_num_1200", f"{FREE}exp3_num_1401"], [1000, 1000, 1401]),
        # two tiles in turn, and a tile right behind another: no tile has an exposure twice
        (
            [f"{FREE}exp{e}_num_{n}" for e, n in ((2, 6528), (1, 6539), (3, 6541), (4, 6552), (2, 6558))],
            [6528] * 4 + [6558],
        ),
        # the class of a tile differs with its exposure
        (
            [f"{BLOWHOLE}exp1_num_346311", f"{FREE}exp2_num_346332", f"{BLOWHOLE}exp3_num_346347"],
            [346311] * 3,
        ),
        # numbers are no words: 9473 comes before 10280
        ([f"{FREE}exp1_num_9473", f"{FREE}exp2_num_9496", f"{FREE}exp6_num_10280"], [9473, 9473, 10280]),
    ],
)
def test_photographs_of_near_numbers_are_one_group(root, write_picture, names, groups):
    for folder in root.iterdir():
        shutil.rmtree(folder)
    for name in (*names, f"{FREE}exp1_num_900000", f"{BLOWHOLE}exp1_num_950000"):
        write_picture(root / f"{name}.jpg")
        write_picture(root / f"{name}.png", mask=True, value=0 if name.startswith(FREE) else 255)
    found = {item.name: item.group for item in index(root).items}
    assert [found[name] for name in names] == [f"num_{group}" for group in groups]


def test_every_problem_is_reported_at_once(root, write_picture):
    write_picture(root / f"{BLOWHOLE}exp3_num_54291.png", mask=True, value=127)
    write_picture(root / f"{BLOWHOLE}exp1_num_1.jpg")
    write_picture(root / f"{BLOWHOLE}exp1_num_2.png", mask=True)
    write_picture(root / f"{FREE}exp1_num_54246.png", mask=True)
    write_picture(root / f"{FREE}tile.jpg")
    (root / f"{UNEVEN}exp6_num_72000.png").write_bytes(b"\x89PNG")
    (root / "MT_Crack").mkdir()
    dataset = index(root)
    assert [item.name for item in dataset.items] == [f"{FREE}exp1_num_61000"]
    expected = [
        (f"{BLOWHOLE}exp1_num_1.jpg", f"{BLOWHOLE}exp1_num_1", "no mask"),
        (f"{BLOWHOLE}exp1_num_2.png", f"{BLOWHOLE}exp1_num_2", "no photograph"),
        (f"{BLOWHOLE}exp3_num_54291.png", f"{BLOWHOLE}exp3_num_54291", "marks no defect"),
        ("MT_Crack", "", "MT_Crack/Imgs"),
        (f"{FREE}exp1_num_54246.png", f"{FREE}exp1_num_54246", "marks a defect"),
        (f"{FREE}tile.jpg", f"{FREE}tile", "no number"),
        (f"{UNEVEN}exp6_num_72000.png", f"{UNEVEN}exp6_num_72000", ""),
    ]
    check_problems(dataset, expected)


@pytest.mark.parametrize("kept", ["MT_Free", "MT_Blowhole"])
def test_root_without_good_or_defective_tiles_is_refused(tmp_path, kept):
    (tmp_path / kept / "Imgs").mkdir(parents=True)
    with pytest.raises(DatasetError, match=rf"folders MT_… are {kept}. Expected .* in .*MT_Free/Imgs"):
        index(tmp_path)
