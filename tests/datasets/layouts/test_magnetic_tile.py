import cv2
import numpy as np
import pytest

from datasets.layouts.magnetic_tile import index
from datasets.reading import read
from segdec.errors import DatasetError

FREE, BLOWHOLE, UNEVEN = "MT_Free/Imgs/", "MT_Blowhole/Imgs/", "MT_Uneven/Imgs/"


@pytest.fixture
def root(tmp_path, write_picture):
    """Tile 7 at two exposures, one good and one with a blowhole; tile 8, good; tile 9, uneven."""
    for name, value in (
        (f"{FREE}exp1_num_7", 0),
        (f"{BLOWHOLE}exp3_num_7", 128),
        (f"{FREE}exp1_num_8", 127),
        (f"{UNEVEN}exp6_num_9", 255),
    ):
        write_picture(tmp_path / f"{name}.jpg")
        write_picture(tmp_path / f"{name}.png", mask=True, value=value)
    return tmp_path


def test_classes_are_the_folders_and_exposures_of_a_tile_one_group(root):
    dataset = index(root)
    assert dataset.classes == ("good", "blowhole", "uneven")
    assert dataset.problems == ()
    assert [(r.name, r.label, r.group, r.supervision) for r in dataset.records] == [
        (f"{BLOWHOLE}exp3_num_7", 1, "num_7", "mask"),
        (f"{FREE}exp1_num_7", 0, "num_7", "mask"),
        (f"{FREE}exp1_num_8", 0, "num_8", "mask"),
        (f"{UNEVEN}exp6_num_9", 2, "num_9", "mask"),
    ]


def test_smoothed_edge_of_a_mask_is_no_defect(root):
    mask = np.zeros((12, 20), np.uint8)
    mask[4] = 127
    mask[5] = 128
    cv2.imwrite(str(root / f"{BLOWHOLE}exp3_num_7.png"), mask)
    record = index(root).records[0]
    assert np.flatnonzero(read(record).mask.any(axis=1)).tolist() == [5]


def test_uneven_tile_with_an_empty_mask_has_its_class_alone(root, write_picture):
    write_picture(root / f"{UNEVEN}exp6_num_9.png", mask=True, value=127)
    record = index(root).records[3]
    assert (record.supervision, record.mask_file, record.label) == ("label", None, 2)


def test_good_tile_needs_no_mask(root):
    (root / f"{FREE}exp1_num_8.png").unlink()
    record = index(root).records[2]
    assert (record.supervision, record.mask_file, record.label) == ("mask", None, 0)


def test_exposures_of_a_tile_share_a_split(tmp_path, write_picture):
    for exposure in range(1, 7):
        for tile in range(10):
            write_picture(tmp_path / f"{FREE}exp{exposure}_num_{tile}.jpg")
    write_picture(tmp_path / f"{UNEVEN}exp1_num_3.jpg")
    write_picture(tmp_path / f"{UNEVEN}exp1_num_3.png", mask=True)
    dataset = index(tmp_path)
    splits = {record.group: set() for record in dataset.records}
    for record in dataset.records:
        splits[record.group].add(record.split)
    assert len(splits) == 10
    assert all(len(found) == 1 for found in splits.values())
    assert set.union(*splits.values()) == {"train", "val", "test"}


def test_every_problem_is_told_at_once(root, write_picture):
    write_picture(root / f"{BLOWHOLE}exp3_num_7.png", mask=True, value=127)
    write_picture(root / f"{BLOWHOLE}exp1_num_1.jpg")
    write_picture(root / f"{BLOWHOLE}exp1_num_2.png", mask=True)
    write_picture(root / f"{FREE}exp1_num_7.png", mask=True)
    write_picture(root / f"{FREE}tile.jpg")
    (root / f"{UNEVEN}exp6_num_9.png").write_bytes(b"\x89PNG")
    (root / "MT_Crack").mkdir()
    dataset = index(root)
    assert [record.name for record in dataset.records] == [f"{FREE}exp1_num_8"]
    assert [(p.name, p.place.removeprefix(f"{root}/")) for p in dataset.problems] == [
        (f"{BLOWHOLE}exp1_num_1", f"{BLOWHOLE}exp1_num_1.jpg"),
        (f"{BLOWHOLE}exp1_num_2", f"{BLOWHOLE}exp1_num_2.png"),
        (f"{BLOWHOLE}exp3_num_7", f"{BLOWHOLE}exp3_num_7.png"),
        ("", "MT_Crack"),
        (f"{FREE}exp1_num_7", f"{FREE}exp1_num_7.png"),
        (f"{FREE}tile", f"{FREE}tile.jpg"),
        (f"{UNEVEN}exp6_num_9", f"{UNEVEN}exp6_num_9.png"),
    ]
    expected = [
        "no mask",
        "no photograph",
        "marks no defect",
        "MT_Crack/Imgs",
        "marks a defect",
        "no tile",
        "",
    ]
    assert all(part in problem.text for part, problem in zip(expected, dataset.problems, strict=True))


@pytest.mark.parametrize("kept", ["MT_Free", "MT_Blowhole"])
def test_root_without_good_or_defective_tiles_is_refused(tmp_path, kept):
    (tmp_path / kept / "Imgs").mkdir(parents=True)
    with pytest.raises(DatasetError, match=rf"it has {kept}. Expected photographs in .*MT_Free/Imgs"):
        index(tmp_path)
