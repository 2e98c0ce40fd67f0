import json

import pytest

from datasets.annotations.yolo_rows import read_row
from datasets.layouts import folder
from datasets.reading_options import ReadingOptions
from tests.datasets.formats.reading import read_format
from tests.datasets.layouts.contents import block, check_problems, described, marked

BOX = "1 0.4 0.5 0.2 0.25"
"""In a photograph of 20×12 px from (6, 4.5) to (10, 7.5): the centres of rows 4 to 6."""
BOX_PIXELS = block(range(4, 7), range(6, 10))
POLYGON = "0 0.1 0 0.4 0 0.4 0.25 0.1 0.25"
POLYGON_PIXELS = block(range(3), range(2, 8))


def write(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def tree(tmp_path, write_picture):
    """Writes photographs, text files and other files by path; photographs are files without a text."""

    def make(files):
        for name, text in files.items():
            write_picture(tmp_path / name) if text is None else write(tmp_path / name, text)
        return read_format(tmp_path, "yolo").dataset()

    return make


NAMES = "names: [scratch, NO]\n"  # YAML 1.1 calls NO false
TREES = {
    "Ultralytics": (
        *("images/train/a.png", "labels/train/a.txt"),
        {"data.yaml": f"path: /data/set\ntrain: images/train\nval: images/val\n{NAMES}"},
    ),
    "Roboflow": (
        *("train/images/a.rf.1f.png", "train/labels/a.rf.1f.txt"),
        {
            "data.yaml": f"train: ../train/images\nval: ../valid/images\nnc: 2\n{NAMES}",
            "README.txt": "5 files",
        },
    ),
    "CVAT": (
        *("obj_train_data/a.png", "obj_train_data/a.txt"),
        {
            "obj.names": "scratch\nNO\n",
            "obj.data": "classes = 2\n",
            "train.txt": "data/obj_train_data/a.png\n",
        },
    ),
    "Label Studio": (
        *("images/a.png", "labels/1f2e3d4c-a.txt"),
        {
            "notes.json": json.dumps(
                {"categories": [{"id": 0, "name": "scratch"}, {"id": 1, "name": "NO"}], "info": {}}
            )
        },
    ),
    "LabelImg": ("a.png", "a.txt", {"classes.txt": "scratch\nNO\n\n"}),
    "names by index": ("images/a.png", "labels/a.txt", {"d.yml": "names:\n  0: scratch\n  1: NO\n"}),
}


@pytest.mark.parametrize("photograph, labels, others", TREES.values(), ids=TREES)
def test_the_trees_of_tools_are_read(tree, photograph, labels, others):
    dataset = tree({photograph: None, labels: f"{BOX}\n\n{POLYGON}\n", **others})
    assert described(dataset) == [(photograph[:-4], "scratch", "box", True)]
    assert dataset.classes == ("good", "NO", "scratch")
    assert sorted(marked(dataset.items[0])) == sorted(BOX_PIXELS + POLYGON_PIXELS)
    assert (dataset.problems, dataset.dropped, dataset.notes) == ((), (), ())


def test_splits_are_those_of_the_yaml_file(tree):
    names = dict.fromkeys(("one/a.png", "two/b.png", "two/c.png", "d.png"))
    texts = {name.replace("png", "txt"): "" for name in names}
    lists = {"valid.txt": "./two/b.png\n./one/a.png\n/missing.png\n"}
    yaml = {"data.yaml": f"train: one\nval: /elsewhere/valid.txt\ntest: ['C:\\\\x\\\\two']\n{NAMES}"}
    dataset = tree({**names, **texts, **lists, **yaml})
    found = {item.name: item.split for item in dataset.items}
    assert found == {"one/a": "train", "two/b": "val", "two/c": "test", "d": None}
    assert {item.label for item in dataset.items} == {0}  # empty files mean good


def test_a_folder_of_photographs_keeps_the_split_and_its_good_photographs(tree, tmp_path):
    splits = ("train", "valid", "test")
    photographs = [f"{split}/images/{name}.png" for split in splits for name in ("a", "b")]
    tree(
        {
            **dict.fromkeys(photographs),
            **{f"{split}/labels/a.txt": BOX for split in splits},
            "data.yaml": NAMES,
        }
    )
    dataset = folder.index(tmp_path, reading=ReadingOptions(defect_labels=["NO"]))
    found = {(item.name, item.split, item.label) for item in dataset.items}
    names = {"train": "train", "valid": "val", "test": "test"}
    assert found == {(f"{s}/images/{n}", names[s], int(n == "a")) for s in splits for n in ("a", "b")}
    assert (dataset.problems, len(dataset.notes)) == ((), 1) and "read as good" in dataset.notes[0]


BAD_ROWS = {
    "1 0.5 0.5 0.2": "4 numbers",
    "1 0.5 0.5 0.2 x": "'x' is not a number",
    "1.5 0.5 0.5 0.2 0.2": "index of a class",
    "7 0.5 0.5 0.2 0.2": "there is no class 7: classes.txt names 2 classes",
    "0 0.5 0.5 0 0.2": "empty",
    "0 nan 0.5 0.1 0.2": "fraction",
    "0 10 6 4 3": "10 is not a fraction",
    "0 0.5 0.5 0.2 0.2 0.5 0.5 2": "keypoints",
    "0 0.1 0.1 0.2 0.2 0.1 0.1": "different points",
}


def test_a_bad_row_costs_itself(tree):
    rows = "\n".join([BOX, *BAD_ROWS])
    files = {"a.png": None, "a.txt": rows, "b.png": None, "b.txt": "0 10 6 4 3\n0 0.5 0.5 9 9"}
    dataset = tree({**files, "labels/c.txt": BOX, "classes.txt": "scratch\nNO\n"})
    assert described(dataset) == [("a", "NO", "box", True)]
    for number, (found, words) in enumerate(zip(dataset.dropped, BAD_ROWS.values(), strict=True), start=2):
        assert found.place.endswith(f"a.txt, line {number}")
        assert words.lower() in found.text.lower()
    lost = [(f"b.txt, line {number}", "b", "is not a fraction") for number in (1, 2)]
    check_problems(dataset, [("c.txt", "", "'c' is missing"), *lost])


def test_rows_may_be_predictions_or_have_decimal_commas():
    box = read_row(BOX, 12, 20)
    for line in (f"{BOX} 0.87", BOX.replace(".", ","), BOX.replace(" ", ","), BOX.replace(" ", ", ")):
        assert read_row(line, 12, 20) == box
    assert read_row(f"{POLYGON} 0.87", 12, 20) == read_row(POLYGON, 12, 20)
    with pytest.raises(ValueError, match="keypoints"):
        read_row(f"{BOX} 0.5 0.5 0.6 0.6", 12, 20, keypoints=True)


def test_classes_without_names_are_numbered(tree):
    dataset = tree({"a.png": None, "a.txt": BOX})
    assert dataset.classes == ("good", "class_1")
    assert "Add a classes.txt" in dataset.notes[0]


def test_class_names_of_another_encoding_or_invalid_ones_are_reported(tree, tmp_path):
    (tmp_path / "classes.txt").write_bytes("Maß\nGehäuse\n".encode("cp1252"))
    dataset = tree({"a.png": None, "a.txt": BOX})
    assert dataset.classes == ("good", "Gehäuse")
    assert "read as cp1252" in dataset.notes[0]
    (problem,) = tree({"data.yaml": "train: a\nnames: [a, b\n"}).problems
    assert problem.name == "a" and "data.yaml, line 3: invalid YAML" in problem.text
