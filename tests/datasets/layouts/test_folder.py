from pathlib import Path

import pytest

from datasets.layouts.folder import index
from segdec.errors import DatasetError
from tests.datasets.layouts.contents import check_problems


def names(root):
    return [record.name for record in index(root).records]


def test_classes_are_good_and_the_sorted_rest(folder_root):
    for name in ("good/notes.txt", "good/Thumbs.db", "good/.hidden.png", "masks/readme.md", "README.md"):
        (folder_root / name).write_text("x")  # ignored
    dataset = index(folder_root)
    assert dataset.problems == ()
    assert dataset.classes == ("good", "dent", "scratch")
    assert [(r.name, r.label, r.group, r.mask_file) for r in dataset.records] == [
        ("dent/c", 1, "dent/c", folder_root / "masks/dent/c.png"),
        ("good/a", 0, "good/a", None),
        ("good/b", 0, "good/b", None),
        ("scratch/d", 2, "scratch/d", folder_root / "masks/scratch/d.png"),
    ]


def test_flat_masks_belong_to_the_only_defect_of_their_stem(folder_root, write_picture):
    for name in ("dent/c", "scratch/d"):
        (folder_root / f"masks/{name}.png").unlink()
        write_picture(folder_root / f"masks/{name[-1]}.PNG", mask=True)
    write_picture(folder_root / "good/c.png")
    masks = {record.name: record.mask_file for record in index(folder_root).records}
    assert masks["dent/c"] == folder_root / "masks/c.PNG"
    assert masks["good/c"] is None


@pytest.mark.parametrize("mask", ["masks/dent/c_mask.png", "masks/dent/c_GT.bmp", "masks/c_label.png"])
def test_masks_may_have_an_ending(folder_root, write_picture, mask):
    (folder_root / "masks/dent/c.png").unlink()
    path = write_picture(folder_root / mask, mask=True)
    dataset = index(folder_root)
    assert dataset.problems == ()
    assert dataset.records[0].mask_file == path
    write_picture(folder_root / f"dent/{path.stem}.png")  # it is the mask of this one then
    assert [problem.name for problem in index(folder_root).problems] == ["dent/c"]


def test_missing_mask_names_photograph_expected_paths_and_the_way_out(folder_root):
    (folder_root / "masks/dent/c.png").unlink()
    check_problems(index(folder_root), [("dent/c.png", "dent/c", "is defective but has no mask")])
    for path in ("dent/c.png", "masks/dent/c.png", "masks/c.png", "supervision.txt"):
        assert str(folder_root / path) in index(folder_root).problems[0].text
    assert names(folder_root) == ["good/a", "good/b", "scratch/d"]


@pytest.mark.parametrize("name", ["dent/c", "dent"])
def test_a_supervision_file_says_that_the_class_is_all_there_is(folder_root, name):
    (folder_root / "masks/dent/c.png").unlink()
    (folder_root / "supervision.txt").write_text(f"label  {name}\n")
    dataset = index(folder_root)
    assert dataset.problems == ()
    assert (dataset.records[0].mask_file, dataset.records[0].supervision) == (None, "label")
    (folder_root / "supervision.txt").write_text(f"# drawn by hand\nmask  {name}\n")
    words = "The photograph 'dent/c' has no mask, but the line says 'mask'"
    check_problems(index(folder_root), [("supervision.txt, line 2", "dent/c", words)])


@pytest.mark.parametrize(
    ("written", "place", "name", "words"),
    [
        ("masks/dent/x.png", "masks/dent/x.png", "", "has no photograph"),
        ("masks/x.png", "masks/x.png", "", "has no photograph"),
        ("masks/hole/c.png", "masks/hole/c.png", "", "has no photograph"),
        ("masks/c.png", "dent/c.png", "dent/c", "has 2 masks"),
        ("masks/dent/c.bmp", "dent/c.png", "dent/c", "has 2 masks"),
        ("good/a.jpg", "good/a.jpg", "good/a", "2 photographs have the name 'good/a'"),
        ("good/monday/e.png", "good/monday", "", "monday is a folder in a class folder"),
    ],
)
def test_file_that_fits_nowhere_is_a_problem(folder_root, write_picture, written, place, name, words):
    write_picture(folder_root / written, mask=True)
    check_problems(index(folder_root), [(place, name, words)])
    assert names(folder_root) == sorted({"dent/c", "good/a", "good/b", "scratch/d"} - {name})


def test_flat_mask_of_two_defects_puts_both_in_doubt(folder_root, write_picture):
    write_picture(folder_root / "scratch/c.png")
    write_picture(folder_root / "masks/c.png", mask=True)
    words = f"may belong to {folder_root / 'dent/c.png'} or {folder_root / 'scratch/c.png'}"
    check_problems(index(folder_root), [("", name, words) for name in ("dent/c", "scratch/c")])


def test_lossy_mask_is_a_problem(folder_root, write_picture):
    (folder_root / "masks/dent/c.png").unlink()
    write_picture(folder_root / "masks/dent/c.jpg", mask=True)
    check_problems(index(folder_root), [("masks/dent/c.jpg", "dent/c", "save it as PNG")])


def test_a_good_photograph_may_have_a_mask(folder_root, write_picture):
    path = write_picture(folder_root / "masks/good/a.png", mask=True, value=0)
    assert path in [record.mask_file for record in index(folder_root).records]


def test_folders_may_be_named_in_any_case_and_ok(folder_root):
    for name, other in (("good", "OK"), ("dent", "Dent"), ("masks", "Masks"), ("Masks/dent", "Masks/Dent")):
        (folder_root / name).rename(folder_root / other)
    dataset = index(folder_root)
    assert dataset.problems == ()
    assert dataset.classes == ("good", "Dent", "scratch")
    labels = {"Dent/c": 1, "OK/a": 0, "OK/b": 0, "scratch/d": 2}
    assert {record.name: record.label for record in dataset.records} == labels
    (folder_root / "good").mkdir()
    with pytest.raises(DatasetError, match=r"Expected one named 'good' \(or 'ok'\)"):
        index(folder_root)


def test_unsupported_types_and_empty_folders_are_problems(folder_root):
    for name in ("good/a.HEIC", "good/e.HEIC", "good/notes.txt"):  # the first one was converted: good/a.png
        (folder_root / name).write_bytes(b"")
    (folder_root / "stain").mkdir()
    expected = [("good/e.HEIC", "good/e", "unsupported type"), ("stain", "", "stain holds no photograph")]
    check_problems(index(folder_root), expected)
    assert len(names(folder_root)) == 4


def test_a_folder_that_cannot_be_listed_is_a_problem(folder_root, monkeypatch):
    iterdir = Path.iterdir

    def refuse(path):
        if path in (folder_root / "dent", folder_root / "masks/scratch"):
            raise PermissionError(13, "Permission denied")
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", refuse)  # permissions do not bind every user who runs the tests
    expected = [
        ("dent", "", "cannot be listed (Permission denied)"),
        ("masks/dent/c.png", "", "has no photograph"),
        ("masks/scratch", "", "cannot be listed"),
        ("scratch/d.png", "scratch/d", "has no mask"),
    ]
    check_problems(index(folder_root), expected)


def test_good_photographs_alone_are_a_data_set(tmp_path, write_picture):
    for stem in "abcde":
        write_picture(tmp_path / f"good/{stem}.png")
    dataset = index(tmp_path)
    assert dataset.classes == ("good", "defect")
    assert not dataset.problems
    assert [record.label for record in dataset.records] == [0] * 5
    assert sorted(record.split for record in dataset.records) == ["test", "train", "train", "train", "val"]


def test_folders_without_any_photograph_are_refused(tmp_path):
    for name in ("good", "dent"):
        (tmp_path / name).mkdir()
    with pytest.raises(DatasetError, match=r"holds no photograph in good, dent\. Expected files"):
        index(tmp_path)
