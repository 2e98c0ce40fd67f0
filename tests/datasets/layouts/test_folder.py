import re
from pathlib import Path

import pytest

from datasets.layouts.folder import index
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
    masks = {record.name: record.mask_file for record in dataset.records}
    assert masks["dent/c"] == folder_root / "masks/dent/c.png"
    assert masks["good/a"] is None


def test_flat_masks_belong_to_the_only_defect_of_their_stem(folder_root, write_picture):
    for name in ("dent/c", "scratch/d"):
        (folder_root / f"masks/{name}.png").unlink()
        write_picture(folder_root / f"masks/{name[-1]}.PNG", mask=True)
    write_picture(folder_root / "good/c.png")
    masks = {record.name: record.mask_file for record in index(folder_root).records}
    assert masks["dent/c"] == folder_root / "masks/c.PNG"
    assert masks["good/c"] is None


def test_other_files_are_not_looked_at(folder_root):
    before = index(folder_root)
    for name in ("good/notes.txt", "good/Thumbs.db", "good/.hidden.png", "masks/readme.md", "README.md"):
        (folder_root / name).write_text("x")
    assert index(folder_root) == before


def problem_of(root):
    """The only problem of a set."""
    (problem,) = index(root).problems
    return problem


def names(root):
    return [record.name for record in index(root).records]


def test_missing_mask_names_photograph_expected_paths_and_the_way_out(folder_root):
    (folder_root / "masks/dent/c.png").unlink()
    problem = problem_of(folder_root)
    assert (problem.place, problem.name) == (str(folder_root / "dent/c.png"), "dent/c")
    for path in ("dent/c.png", "masks/dent/c.png", "masks/c.png", "supervision.txt"):
        assert str(folder_root / path) in problem.text
    assert names(folder_root) == ["good/a", "good/b", "scratch/d"]


@pytest.mark.parametrize("name", ["dent/c", "dent"])
def test_a_supervision_file_says_that_the_class_is_all_there_is(folder_root, name):
    (folder_root / "masks/dent/c.png").unlink()
    (folder_root / "supervision.txt").write_text(f"label  {name}\n")
    dataset = index(folder_root)
    assert dataset.problems == ()
    assert [(r.name, r.mask_file, r.supervision) for r in dataset.records][:2] == [
        ("dent/c", None, "label"),
        ("good/a", None, "mask"),
    ]


def test_a_supervision_file_may_not_promise_a_mask_that_is_missing(folder_root):
    (folder_root / "masks/dent/c.png").unlink()
    (folder_root / "supervision.txt").write_text("# drawn by hand\nmask  dent\n")
    problem = problem_of(folder_root)
    assert problem.place == f"{folder_root / 'supervision.txt'}, line 2"
    assert problem.text.startswith("The photograph 'dent/c' has no mask, but the line says 'mask'")


@pytest.mark.parametrize("name", ["masks/dent/x.png", "masks/x.png", "masks/hole/c.png"])
def test_mask_without_photograph_is_a_problem(folder_root, write_picture, name):
    write_picture(folder_root / name, mask=True)
    problem = problem_of(folder_root)
    assert problem.place == str(folder_root / name)
    assert "has no photograph" in problem.text
    assert len(names(folder_root)) == 4


def test_flat_mask_of_two_defects_puts_both_in_doubt(folder_root, write_picture):
    write_picture(folder_root / "scratch/c.png")
    write_picture(folder_root / "masks/c.png", mask=True)
    problems = index(folder_root).problems
    assert [problem.name for problem in problems] == ["dent/c", "scratch/c"]
    for problem in problems:
        assert re.search(r"may belong to .*dent/c\.png or .*scratch/c\.png", problem.text)


@pytest.mark.parametrize("second", ["masks/c.png", "masks/dent/c.bmp"])
def test_two_masks_of_one_photograph_are_a_problem(folder_root, write_picture, second):
    write_picture(folder_root / second, mask=True)
    problem = problem_of(folder_root)
    assert problem.name == "dent/c"
    assert "has 2 masks" in problem.text


@pytest.mark.parametrize("mask", ["masks/dent/c_mask.png", "masks/dent/c_GT.bmp", "masks/c_label.png"])
def test_masks_may_have_an_ending(folder_root, write_picture, mask):
    (folder_root / "masks/dent/c.png").unlink()
    path = write_picture(folder_root / mask, mask=True)
    dataset = index(folder_root)
    assert dataset.problems == ()
    assert dataset.records[0].mask_file == path
    write_picture(folder_root / f"dent/{path.stem}.png")  # it is the mask of this one then
    assert [problem.name for problem in index(folder_root).problems] == ["dent/c"]


def test_lossy_mask_is_a_problem(folder_root, write_picture):
    (folder_root / "masks/dent/c.png").unlink()
    write_picture(folder_root / "masks/dent/c.jpg", mask=True)
    problem = problem_of(folder_root)
    assert problem.name == "dent/c"
    assert "save it as PNG" in problem.text


def test_a_good_photograph_may_have_a_mask(folder_root, write_picture):
    path = write_picture(folder_root / "masks/good/a.png", mask=True, value=0)
    assert path in [record.mask_file for record in index(folder_root).records]


def test_two_photographs_of_one_stem_are_a_problem(folder_root, write_picture):
    write_picture(folder_root / "good/a.jpg")
    problem = problem_of(folder_root)
    assert problem.name == "good/a"
    assert re.search(r"a\.jpg and .*a\.png", problem.text)
    assert "good/a" not in names(folder_root)


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


def test_a_photograph_of_a_type_that_cannot_be_read_is_a_problem(folder_root):
    for name in ("good/a.HEIC", "good/e.HEIC", "good/notes.txt"):  # the first one was converted: good/a.png
        (folder_root / name).write_bytes(b"")
    problem = problem_of(folder_root)
    assert (problem.place, problem.name) == (str(folder_root / "good/e.HEIC"), "good/e")
    assert len(names(folder_root)) == 4


def test_nested_folder_is_a_problem(folder_root, write_picture):
    write_picture(folder_root / "good/monday/e.png")
    assert "monday is a folder in a class folder" in problem_of(folder_root).text


def test_a_folder_that_cannot_be_listed_is_a_problem(folder_root, monkeypatch):
    iterdir = Path.iterdir

    def refuse(path):
        if path in (folder_root / "dent", folder_root / "masks/scratch"):
            raise PermissionError(13, "Permission denied")
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", refuse)  # permissions do not bind every user who runs the tests
    problems = index(folder_root).problems
    assert [problem.place for problem in problems] == [
        str(folder_root / "dent"),
        str(folder_root / "masks/dent/c.png"),
        str(folder_root / "masks/scratch"),
        str(folder_root / "scratch/d.png"),
    ]
    assert "cannot be listed (Permission denied)" in problems[0].text


def test_empty_class_folder_is_a_problem(folder_root):
    (folder_root / "stain").mkdir()
    assert "stain holds no photograph" in problem_of(folder_root).text


@pytest.mark.parametrize("name", ["good", "OK"])
def test_good_photographs_alone_are_a_data_set(tmp_path, write_picture, name):
    for stem in "abcde":
        write_picture(tmp_path / name / f"{stem}.png")
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
