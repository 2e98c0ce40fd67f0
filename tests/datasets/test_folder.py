import pytest

from datasets.folder import index
from segdec.errors import DatasetError


def test_classes_are_good_and_the_sorted_rest(folder_root):
    dataset = index(folder_root)
    assert dataset.classes == ("good", "dent", "scratch")
    assert [(r.name, r.label, r.group) for r in dataset.records] == [
        ("dent/c", 1, "dent/c"),
        ("good/a", 0, "good/a"),
        ("good/b", 0, "good/b"),
        ("scratch/d", 2, "scratch/d"),
    ]
    masks = {record.name: record.mask_path for record in dataset.records}
    assert masks["dent/c"] == folder_root / "masks/dent/c.png"
    assert masks["good/a"] is None


def test_flat_masks_belong_to_the_only_defect_of_their_stem(folder_root, write_picture):
    for name in ("dent/c", "scratch/d"):
        (folder_root / f"masks/{name}.png").unlink()
        write_picture(folder_root / f"masks/{name[-1]}.PNG", mask=True)
    write_picture(folder_root / "good/c.png")
    masks = {record.name: record.mask_path for record in index(folder_root).records}
    assert masks["dent/c"] == folder_root / "masks/c.PNG"
    assert masks["good/c"] is None


@pytest.mark.parametrize("suffix", [".PNG", ".jpg", ".JPEG", ".bmp", ".Tif", ".webp"])
def test_photographs_of_every_type_and_case_are_listed(folder_root, write_picture, suffix):
    write_picture(folder_root / f"good/more{suffix}")
    assert "good/more" in [record.name for record in index(folder_root).records]


def test_other_files_are_not_looked_at(folder_root):
    before = index(folder_root)
    for name in ("good/notes.txt", "good/Thumbs.db", "good/.hidden.png", "masks/readme.md", "README.md"):
        (folder_root / name).write_text("x")
    assert index(folder_root) == before


def test_missing_mask_names_photograph_and_expected_paths(folder_root):
    (folder_root / "masks/dent/c.png").unlink()
    with pytest.raises(DatasetError) as error:
        index(folder_root)
    for path in ("dent/c.png", "masks/dent/c.png", "masks/c.png"):
        assert str(folder_root / path) in str(error.value)


@pytest.mark.parametrize("name", ["masks/dent/x.png", "masks/x.png", "masks/hole/c.png"])
def test_mask_without_photograph_is_refused(folder_root, write_picture, name):
    write_picture(folder_root / name, mask=True)
    with pytest.raises(DatasetError, match="belongs to no photograph") as error:
        index(folder_root)
    assert str(folder_root / name) in str(error.value)


def test_flat_mask_of_two_defects_is_refused(folder_root, write_picture):
    write_picture(folder_root / "scratch/c.png")
    write_picture(folder_root / "masks/c.png", mask=True)
    with pytest.raises(DatasetError, match=r"may belong to .*dent/c\.png or .*scratch/c\.png"):
        index(folder_root)


@pytest.mark.parametrize("second", ["masks/c.png", "masks/dent/c.bmp"])
def test_two_masks_of_one_photograph_are_refused(folder_root, write_picture, second):
    write_picture(folder_root / second, mask=True)
    with pytest.raises(DatasetError, match="has two masks"):
        index(folder_root)


def test_lossy_mask_is_refused(folder_root, write_picture):
    write_picture(folder_root / "masks/dent/c.jpg", mask=True)
    with pytest.raises(DatasetError, match="save it as PNG"):
        index(folder_root)


def test_empty_mask_of_a_defect_is_refused(folder_root, write_picture):
    write_picture(folder_root / "masks/dent/c.png", mask=True, value=0)
    with pytest.raises(DatasetError, match=r"c\.png marks no defect.*lies in 'dent'"):
        index(folder_root)


def test_mask_of_a_good_photograph_must_be_empty(folder_root, write_picture):
    path = write_picture(folder_root / "masks/good/a.png", mask=True, value=0)
    assert path in [record.mask_path for record in index(folder_root).records]
    write_picture(path, mask=True)
    with pytest.raises(DatasetError, match=r"a\.png marks a defect.*lies in 'good'"):
        index(folder_root)


def test_two_photographs_of_one_stem_are_refused(folder_root, write_picture):
    write_picture(folder_root / "good/a.jpg")
    with pytest.raises(DatasetError, match=r"a\.jpg and .*a\.png"):
        index(folder_root)


def test_nested_folder_is_refused(folder_root, write_picture):
    write_picture(folder_root / "good/monday/e.png")
    with pytest.raises(DatasetError, match="monday is a folder among photographs"):
        index(folder_root)


@pytest.mark.parametrize("gone", ["good", "defects"])
def test_missing_classes_are_refused_with_what_is_there(tmp_path, write_picture, gone):
    write_picture(tmp_path / ("scratch" if gone == "good" else "good") / "a.png")
    with pytest.raises(DatasetError, match="Expected 'good' and at least one folder of defects"):
        index(tmp_path)


def test_empty_class_folder_is_refused(folder_root):
    (folder_root / "stain").mkdir()
    with pytest.raises(DatasetError, match="stain holds no photograph"):
        index(folder_root)


def test_own_split_file_is_used(folder_root):
    (folder_root / "splits.txt").write_text("train good/a\nval dent/c\n")
    splits = {record.name: record.split for record in index(folder_root).records}
    assert splits == {"good/a": "train", "dent/c": "val", "good/b": None, "scratch/d": None}


def test_without_split_file_every_photograph_has_a_split(folder_root):
    assert None not in {record.split for record in index(folder_root).records}
