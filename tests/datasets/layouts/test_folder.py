import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from datasets.layouts.folder import index
from datasets.loading import load_dataset
from datasets.problems import describe_causes
from datasets.reading import read
from segdec.errors import DatasetError
from tests.datasets.layouts.contents import check_problems, described


@pytest.fixture
def annotate(tmp_path, write_picture):
    """Writes a photograph below `own`, with a LabelMe file that draws a box for each label."""

    def write(name, *labels):
        path = write_picture(tmp_path / f"own/{name}.png")
        boxes = [
            {"label": label, "points": [[2, 2], [7 - n, 5]], "shape_type": "rectangle"}
            for n, label in enumerate(labels)
        ]
        content = {"shapes": boxes, "imagePath": path.name, "imageHeight": 12, "imageWidth": 20}
        path.with_suffix(".json").write_text(json.dumps(content))

    return write


def names(root):
    return [item.name for item in index(root).items]


def test_classes_are_good_and_the_sorted_rest(folder_root):
    for name in ("good/notes.txt", "good/Thumbs.db", "good/.hidden.png", "masks/readme.md", "README.md"):
        (folder_root / name).write_text("x")  # ignored
    dataset = index(folder_root)
    assert dataset.problems == ()
    assert dataset.classes == ("good", "dent", "scratch")
    assert [(r.name, r.label, r.group, r.mask_file) for r in dataset.items] == [
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
    masks = {item.name: item.mask_file for item in index(folder_root).items}
    assert masks["dent/c"] == folder_root / "masks/c.PNG"
    assert masks["good/c"] is None


@pytest.mark.parametrize("mask", ["masks/dent/c_mask.png", "masks/dent/c_GT.bmp", "masks/c_label.png"])
def test_masks_may_have_an_ending(folder_root, write_picture, mask):
    (folder_root / "masks/dent/c.png").unlink()
    path = write_picture(folder_root / mask, mask=True)
    dataset = index(folder_root)
    assert dataset.problems == ()
    assert dataset.items[0].mask_file == path


def test_missing_mask_names_photograph_expected_paths_and_the_way_out(folder_root):
    (folder_root / "masks/dent/c.png").unlink()
    check_problems(index(folder_root), [("dent/c.png", "dent/c", "is defective but has no mask")])
    for path in ("dent/c.png", "masks/dent/c.png", "supervision.txt"):
        assert str(folder_root / path) in index(folder_root).problems[0].text
    assert names(folder_root) == ["good/a", "good/b", "scratch/d"]


@pytest.mark.parametrize("name", ["dent/c", "dent"])
def test_a_supervision_file_says_that_the_class_is_all_there_is(folder_root, name):
    (folder_root / "masks/dent/c.png").unlink()
    (folder_root / "supervision.txt").write_text(f"label  {name}\n")
    dataset = index(folder_root)
    assert dataset.problems == ()
    assert (dataset.items[0].mask_file, dataset.items[0].supervision) == (None, "label")
    (folder_root / "supervision.txt").write_text(f"# drawn by hand\nmask  {name}\n")
    words = "The photograph 'dent/c' has no mask, but the line says 'mask'"
    check_problems(index(folder_root), [("supervision.txt, line 2", "dent/c", words)])


@pytest.mark.parametrize(
    ("written", "place", "name", "words"),
    [
        ("masks/dent/x.png", "masks/dent/x.png", "", "has no photograph"),
        ("masks/x.png", "masks/x.png", "", "has no photograph"),
        ("masks/hole/c.png", "masks/hole/c.png", "", "has no photograph"),
        ("good/a.jpg", "good/a.png", "good/a", "Two photographs have the name 'good/a'"),
        ("e.png", "e.png", "e", "has no class"),
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
    assert path in [item.mask_file for item in index(folder_root).items]


def test_folders_may_be_named_in_any_case_and_ok(folder_root):
    for name, other in (("good", "OK"), ("dent", "Dent"), ("masks", "Masks"), ("Masks/dent", "Masks/Dent")):
        (folder_root / name).rename(folder_root / other)
    dataset = index(folder_root)
    assert dataset.problems == ()
    assert dataset.classes == ("good", "Dent", "scratch")
    labels = {"Dent/c": 1, "OK/a": 0, "OK/b": 0, "scratch/d": 2}
    assert {item.name: item.label for item in dataset.items} == labels
    assert dataset.notes == ("The folder 'OK' was read as good.",)


def test_unsupported_types_are_problems(folder_root):
    for name in ("good/a.HEIC", "good/e.HEIC", "good/notes.txt"):  # the first one was converted: good/a.png
        (folder_root / name).write_bytes(b"")
    check_problems(index(folder_root), [("good/e.HEIC", "good/e", "unsupported type")])
    assert len(names(folder_root)) == 4


def test_a_folder_that_cannot_be_listed_is_an_error(folder_root, monkeypatch):
    iterdir = Path.iterdir

    def refuse(path):
        if path == folder_root / "dent":
            raise PermissionError(13, "Permission denied")
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", refuse)  # permissions do not bind every user who runs the tests
    with pytest.raises(DatasetError, match=r"dent cannot be listed \(Permission denied\)"):
        index(folder_root)


def test_folders_without_any_photograph_are_refused(tmp_path):
    for name in ("good", "dent"):
        (tmp_path / name).mkdir()
    with pytest.raises(DatasetError, match=r"holds no photograph\. Expected files"):
        index(tmp_path)


def test_folders_of_several_days_and_several_words(tmp_path, write_picture):
    for name in ("good/monday/a", "i.O./a", "NIO/b", "NIO/monday/c"):
        write_picture(tmp_path / f"{name}.png")
    write_picture(tmp_path / "masks/NIO/b.png", mask=True)
    write_picture(tmp_path / "masks/NIO/monday/c/1.png", mask=True)  # a folder for the masks of c
    write_picture(tmp_path / "masks/NIO/monday/c/2.png", mask=True, value=7)
    dataset = index(tmp_path)
    assert dataset.problems == ()
    assert dataset.classes == ("good", "NIO")
    labels = {"NIO/b": 1, "NIO/monday/c": 1, "good/monday/a": 0, "i.O./a": 0}
    assert {item.name: item.label for item in dataset.items} == labels
    assert dataset.notes == (
        "The folder 'NIO' was read as a class of defects.",
        "The folder 'i.O.' was read as good.",
        "Photographs with several mask files: 1 (NIO/monday/c); they are combined.",
    )


def test_notes_name_only_the_folders_that_state_a_class(tmp_path, write_picture):
    """As in Real-IAD, where the folders in `NG` are the classes."""
    for name in ("OK/S1/a", "NG/AK/S2/b"):
        write_picture(tmp_path / f"{name}.png")
    write_picture(tmp_path / "masks/NG/AK/S2/b.png", mask=True)
    dataset = index(tmp_path)
    assert dataset.classes == ("good", "AK")
    assert dataset.notes == ("The folder 'OK' was read as good.",)
    write_picture(tmp_path / "NG/d.png")
    assert "The folder 'NG' was read as a class of defects." in index(tmp_path).notes


def test_unmasked_photographs_of_a_folder_need_one_line(tmp_path, write_picture):
    for name in ("good/a", "NIO/b", "NIO/c", "NIO/d", "NIO/e"):
        write_picture(tmp_path / f"{name}.png")
    problems = index(tmp_path).problems
    (text,) = describe_causes(problems)
    assert "supervision.txt: 'label NIO'." in text
    assert text.endswith("And 3 more with this problem: NIO/c, NIO/d …")


def test_annotations_of_a_class_folder_complement_it(folder_root, annotate):
    """Class from the folder, mask from the annotation; a mask file beside its photograph is none itself."""
    annotate("dent/e", "defect")
    annotate("scratch/f", "scratch", "stain")
    annotate("dent/c", "dent")  # it has a mask file too
    (folder_root / "masks/scratch/d.png").rename(folder_root / "scratch/d_mask.png")
    dataset = index(folder_root)
    assert dataset.problems == ()
    assert dataset.classes == ("good", "dent", "scratch", "stain")
    assert described(dataset) == [
        ("dent/c", "dent", "mask", True),
        ("dent/e", "dent", "box", True),
        ("good/a", "good", "mask", False),
        ("good/b", "good", "mask", False),
        ("scratch/d", "scratch", "mask", True),
        ("scratch/f", "scratch", "box", True),
    ]
    assert dataset.notes == ("Photographs with a mask file and shapes: 1 (dent/c); the masks are used.",)


def test_contradictions_of_folder_and_annotation_are_problems(folder_root, annotate):
    annotate("good/e", "dent")
    annotate("dent/f", "scratch")
    annotate("dent/g")
    expected = [
        ("e.json", "good/e", "is in a folder of good ones, but is marked as dent"),
        ("f.json", "dent/f", "is in the folder 'dent', but is marked as scratch"),
        ("g.json", "dent/g", "is in the folder 'dent', but its annotation marks no defect"),
    ]
    check_problems(index(folder_root), expected)


def test_photograph_in_a_folder_of_defects_is_not_good_for_lack_of_an_annotation(tmp_path, annotate):
    for name in ("Kratzer/a", "Kratzer/b", "good/c"):
        annotate(name)
        (tmp_path / f"own/{name}.json").unlink()
    annotate("Kratzer/d", "Kratzer")
    dataset = load_dataset("labelme", tmp_path / "own")
    check_problems(dataset, [("a.png", "Kratzer/a", "has no mask"), ("b.png", "Kratzer/b", "has no mask")])
    assert [item.name for item in dataset.items] == ["Kratzer/d", "good/c"]


def test_images_beside_masks_are_labelled_by_them(tmp_path, write_picture):
    for name in "abc":
        write_picture(tmp_path / f"images/{name}.png")
    write_picture(tmp_path / "masks/a.png", mask=True, value=0)
    write_picture(tmp_path / "masks/b_1.png", mask=True)
    write_picture(tmp_path / "masks/b_2.png", mask=True)
    dataset = index(tmp_path)
    check_problems(dataset, [("c.png", "images/c", "has no class")])
    assert described(dataset) == [("images/a", "good", "mask", True), ("images/b", "defect", "mask", True)]


def test_masks_in_class_folders_state_the_classes_of_pixels(tmp_path, write_picture):
    write_picture(tmp_path / "good/a.png")
    write_picture(tmp_path / "defect/b.png")
    write_picture(tmp_path / "masks/scratch/b.png", mask=True)
    path = write_picture(tmp_path / "masks/stain/b.png", mask=True)
    pixels = np.zeros((12, 20), np.uint8)
    pixels[8:10, 1:3] = 255
    cv2.imwrite(str(path), pixels)
    dataset = index(tmp_path)
    assert dataset.classes == ("good", "scratch", "stain")
    item = dataset.items[0]
    sample = read(item)
    assert sample.classes is not None
    assert (sample.classes[4, 5], sample.classes[8, 1], np.count_nonzero(sample.mask)) == (1, 2, 6 + 4)


@pytest.mark.parametrize("defects_in_train", [False, True])
def test_split_of_folders_is_kept_if_train_has_defects(tmp_path, write_picture, defects_in_train):
    defective = ["train/bad/c"] * defects_in_train + ["test/bad/d", "test/bad/e"]
    for name in ("train/ok/a", "train/ok/b", "test/ok/a", *defective):
        write_picture(tmp_path / f"{name}.png")
    for name in defective:
        write_picture(tmp_path / f"ground_truth/{name}_mask.png", mask=True)
    dataset = index(tmp_path)
    assert dataset.problems == ()
    kept = all((item.split == "test") == item.name.startswith("test") for item in dataset.items)
    assert kept == defects_in_train
    assert any("split anew" in note for note in dataset.notes) != defects_in_train


def test_split_of_a_few_photographs_is_not_kept(folder_root, write_picture):
    """As of an export of another tool in a folder of its own."""
    for name in ("export/train/good/e", "export/train/dent/f", "export/test/good/g", "export/test/dent/h"):
        write_picture(folder_root / f"{name}.png")
        if "dent" in name:
            write_picture(folder_root / f"masks/{name}.png", mask=True)
    for number in range(5):
        write_picture(folder_root / f"good/{number}.png")
    dataset = index(folder_root)
    assert all(item.split for item in dataset.items)
    assert any("assign 4 of 13 photographs to splits. All were split anew" in note for note in dataset.notes)


def test_folder_with_the_name_of_a_label_is_a_class(tmp_path, annotate):
    """Even if no folder is named like good: its photographs are not good for lack of an annotation."""
    annotate("Teile A/a", "Kratzer")
    (tmp_path / "own/Kratzer").mkdir()
    (tmp_path / "own/Kratzer/data.yaml").write_text("names: [Kratzer]")
    for name in ("Kratzer/b", "Teile A/c"):
        annotate(name)
        (tmp_path / f"own/{name}.json").unlink()
    dataset = index(tmp_path / "own")
    check_problems(dataset, [("b.png", "Kratzer/b", "has no mask")])
    assert [(item.name, item.label) for item in dataset.items] == [("Teile A/a", 1), ("Teile A/c", 0)]


def test_folder_of_an_export_is_not_a_class(folder_root, write_picture):
    write_picture(folder_root / "yolo/e.png")
    write_picture(folder_root / "yolo/f.png")
    (folder_root / "yolo/classes.txt").write_text("dent\n")
    (folder_root / "yolo/e.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    dataset = index(folder_root)
    assert dataset.problems == ()
    labels = {item.name: item.label for item in dataset.items}
    assert (dataset.classes[1], labels["yolo/e"], labels["yolo/f"]) == ("dent", 1, 0)
    assert "Photographs without an annotation: 1 (yolo/f), read as good." in dataset.notes
