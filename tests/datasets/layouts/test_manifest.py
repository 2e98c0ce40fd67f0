import json
import re

import cv2
import numpy as np
import pytest

from datasets.checking import check_dataset
from datasets.layouts.manifest import index
from datasets.loading import load_dataset
from datasets.reading import read
from segdec.errors import DatasetError
from tests.datasets.layouts.contents import block, check_dropped, check_problems, described, marked


@pytest.fixture
def root(tmp_path, write_picture):
    """Five photographs of 20×12 px (width × height) and the mask of `line/b`."""
    for name in "abcde":
        write_picture(tmp_path / f"line/{name}.png")
    write_picture(tmp_path / "masks/b.png", mask=True)
    return tmp_path


def write_csv(root, text, name="manifest.csv"):
    (root / name).write_text(text, encoding="utf-8")
    return root


def write_lines(root, *entries):
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    (root / "manifest.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return root


def test_each_kind_of_annotation_has_its_supervision(root):
    dataset = index(
        write_csv(
            root,
            "image,label,mask,boxes,polygon\n"
            "line/a.png,good,,,\n"
            "line/b.png,dent,masks/b.png,,\n"
            'line/c.png,scratch,,"2,1,3,2; 6, 4, 1, 1",\n'
            'line/d.png,dent,,,"2,1 5,1 5,3 2,3"\n'
            "line/e.png,scratch\n",
        )
    )
    assert dataset.problems == ()
    assert dataset.classes == ("good", "dent", "scratch")
    assert described(dataset) == [
        ("line/a", "good", "mask", False),
        ("line/b", "dent", "mask", True),
        ("line/c", "scratch", "box", True),
        ("line/d", "dent", "mask", True),
        ("line/e", "scratch", "label", False),
    ]
    _, b, c, d, _ = dataset.items
    assert marked(b) == block((4, 5), (5, 6, 7))
    assert marked(c) == [*block((1, 2), (2, 3, 4)), (4, 6)]
    assert marked(d) == block((1, 2), (2, 3, 4))
    assert all(item.group == item.name and item.split for item in dataset.items)


def test_table_of_a_spreadsheet_with_an_accidental_click(root):
    """Windows saves tables in its own encoding. A bad box does not cost the others."""
    text = 'image;label;boxes\nline/a.png;gut;\nline/b.png;Öl;"2,1,3,2;1,1,0,2;18,1,4,2"\n'
    (root / "manifest.csv").write_bytes(text.encode("cp1252"))
    dataset = index(root)
    assert dataset.classes == ("good", "Öl")
    assert marked(dataset.items[1]) == [(r, c) for r in (1, 2) for c in (2, 3, 4, 18, 19)]
    dropped = [
        ("line 3", "line/b", "the box of 0×2 pixels is empty"),
        ("line 3", "line/b", "x = 22 is outside the picture of 20×12"),
    ]
    check_dropped(dataset, dropped)
    assert dataset.notes == (f"{root / 'manifest.csv'} is not UTF-8; it was read as cp1252.",)


def test_json_lines_hold_lists(root):
    dataset = index(
        write_lines(
            root,
            {"image": "line/a.png", "label": "OK", "mask": None, "split": ""},
            "",
            {"image": "line\\b.png", "label": "dent", "box": [2, 1, 3, 2], "boxes": [[6, 4, 1, 1]]},
            {"image": "line/c.png", "label": "dent", "polygon": [[2, 1], [5, 1], [5, 3], [2, 3]]},
            {
                "image": "line/d.png",
                "label": "dent",
                "polygons": [[2, 1, 5, 1, 5, 3, 2, 3], [[8, 8], [9, 8], [9, 9], [8, 9]]],
                "group": 7,
                "name": "fourth",
            },
        )
    )
    assert dataset.problems == ()
    assert described(dataset) == [
        ("fourth", "dent", "mask", True),
        ("line/a", "good", "mask", False),
        ("line/b", "dent", "box", True),
        ("line/c", "dent", "mask", True),
    ]
    assert [len(marked(item)) for item in dataset.items if item.label] == [7, 7, 6]
    assert dataset.items[0].group == "7"


def test_manifest_of_any_name_is_a_root_and_paths_start_at_its_folder(root, monkeypatch):
    rows = "image\tlabel\n../line/a.png\tgood\n../line/b.png\tdent\n"
    (root / "lists").mkdir()
    write_csv(root / "lists", rows, "monday.tsv")
    monkeypatch.chdir(root)
    dataset = load_dataset("manifest", "lists/monday.tsv")
    assert [item.name for item in dataset.items] == ["line/a", "line/b"]
    absolute = rows.replace("..", str(root))
    dataset = load_dataset("manifest", write_csv(root / "line", absolute, "all.tsv") / "all.tsv")
    assert [item.name for item in dataset.items] == ["a", "b"]


@pytest.mark.parametrize(("first", "splits"), [("train", ["train", None, None]), ("", ["val", "val", None])])
def test_split_of_the_manifest_or_the_file_beside_it_is_used(root, first, splits):
    rows = f"line/a.png,good,{first},p1\nline/b.png,dent,,p1\nline/c.png,good,,p2\n"
    write_csv(root, f"image,label,split,group\n{rows}")
    (root / "splits.txt").write_text("val p1\n")
    assert [item.split for item in index(root).items] == splits


def test_classes_file_sets_their_order_and_names_the_nearest(root):
    write_csv(root, "image,label\nline/a.png,good\nline/b.png,dent\nline/c.png,scrach\n")
    (root / "classes.txt").write_text("good\nscratch\n\ndent\n")
    dataset = index(root)
    assert dataset.classes == ("good", "scratch", "dent")
    assert [(r.name, r.label) for r in dataset.items] == [("line/a", 0), ("line/b", 2)]
    words = "'scrach' is not one of the classes in classes.txt: good, scratch, dent. Did you mean 'scratch'?"
    check_problems(dataset, [("line 4", "line/c", words)])


def test_labels_that_differ_by_case_alone_are_a_problem(root):
    write_csv(root, "image,label\nline/a.png,good\nline/b.png,dent\nline/c.png,Dent\nline/d.png,dent\n")
    words = "'Dent' differs only by case from 'dent' of 2 photographs"
    check_problems(index(root), [("line 4", "line/c", words)])


def test_all_problems_are_reported_at_once_and_other_photographs_stay(root, write_picture):
    write_picture(root / "line/a.bmp")
    (root / "line/broken.png").write_text("no picture")
    (root / "line/loop.png").symlink_to("loop.png")
    (root / "masks/e.jpg").touch()
    dataset = index(
        write_lines(
            root,
            {"image": "line/a.png", "label": "good"},  # line 1
            {"image": "line/gone.png", "label": "good"},
            {"image": "line/loop.png", "label": "good"},
            {"label": "good"},
            {"image": "line/b.png"},
            '{"image": "line/b.png", "label": "dent"',  # line 6
            '["line/b.png", "dent"]',
            {"image": "line/b.png", "label": "dent", "mask": "masks/b.png", "box": [1, 1, 2, 2]},
            {"image": "line/b.png", "label": "dent", "box": [1, 1, 2, 2], "polygon": [1, 1, 2, 2, 1, 2]},
            {"image": "line/b.png", "label": "good", "box": [1, 1, 2, 2]},
            {"image": "line/b.png", "label": "dent", "box": [1, 1, 0, 2]},  # line 11
            {"image": "line/b.png", "label": "dent", "box": [30, 1, 4, 2]},
            {"image": "line/b.png", "label": "dent", "polygon": [[1, 1], [2, 2]]},
            {"image": "line/b.png", "label": "dent", "box": "1,2,x,4"},
            {"image": "line/b.png", "label": "dent", "mask": "masks/gone.png"},
            {"image": "line/e.png", "label": "dent", "mask": "masks/e.jpg"},  # line 16
            {"image": "line/b.png", "label": "dent", "split": "valid"},
            {"image": "line/broken.png", "label": "dent", "box": [1, 1, 2, 2]},
            {"image": "line/b.png", "label": ["dent"]},
            {"image": "line/" + "x" * 300, "label": "dent"},
            {"image": "line/b.png", "label": "dent", "boxes": 4},  # line 21
            {"image": "line/d.png", "label": "dent"},
        )
    )
    expected = [
        ("line 2", "line/gone", "The image "),
        ("line 3", "line/loop", "loop.png does not exist"),
        ("line 4", "", "The image is missing"),
        ("line 5", "line/b", "The label is empty"),
        ("line 6", "", "not JSON"),
        ("line 7", "", "not a JSON object"),
        ("line 8", "line/b", "There are a mask and boxes; keep one"),
        ("line 9", "line/b", "There are boxes and polygons; keep one"),
        ("line 10", "line/b", "is good, but has boxes"),
        ("line 11", "line/b", "The box of 0×2 pixels is empty"),
        ("line 12", "line/b", "outside the picture of 20×12"),
        ("line 13", "line/b", "2 different points"),
        ("line 14", "line/b", "'1,2,x,4' is not a list of numbers"),
        ("line 15", "line/b", "gone.png does not exist"),
        ("line 16", "line/e", "save it as PNG"),
        ("line 17", "line/b", "'valid' is not one of train, val, test, fold_1, "),
        ("line 18", "line/broken", "broken.png is not an image"),
        ("line 19", "line/b", "is not a string"),
        ("line 20", f"line/{'x' * 300}", "does not exist"),
        ("line 21", "line/b", "the boxes are not a list"),
    ]
    check_problems(dataset, expected)
    assert described(dataset) == [("line/a", "good", "mask", False), ("line/d", "dent", "label", False)]


def test_photograph_that_is_listed_twice_is_reported_with_all_its_lines(root, write_picture):
    write_picture(root / "line/a.bmp")
    dataset = index(
        write_csv(
            root,
            "image,label,name\nline/a.png,good,\nline/b.png,dent,\nline/../line/b.png,good,\n"
            "line/a.bmp,good,\nline/c.png,dent,\nline/c.png,dent,other\nline/d.png,dent,\n",
        )
    )
    assert [item.name for item in dataset.items] == ["line/d"]
    expected = [
        ("lines 3 and 4", "line/b", "is listed 2 times, with the labels dent and good"),
        ("lines 6 and 7", "line/c", "2 times, as dent"),
        ("lines 6 and 7", "other", "2 times, as dent"),
        ("lines 2 and 5", "line/a", "a.png and"),
    ]
    check_problems(dataset, expected)


def test_group_in_two_splits_is_a_problem(root):
    dataset = index(
        write_csv(
            root,
            "image,label,split,group\nline/a.png,good,train,p1\nline/b.png,dent,train,p1\n"
            "line/c.png,dent,test,p1\nline/d.png,dent,test,p2\n",
        )
    )
    check_problems(dataset, [("lines 2 and 4", "p1", "'p1' is assigned to test and train")])
    assert [item.name for item in dataset.items] == ["line/d"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("image,label\n", "has no entry"),
        (
            "image,class\nline/a.png,good,\n",
            "'label' is missing; unknown column 'class' (did you mean 'label'?)",
        ),
        ("image,label,bbox\nline/a.png,good,\n", "'bbox' (did you mean 'box'?)"),
        ("image,label\nline/a.png,0\nline/b.png,1\n", "has these labels: 0, 1. Expected 'good' "),
        ("image,label\nline/a.png,0\nline/b.png,1\n", "or the label of good ones in --good"),
        ("image,label\nline/a.png,dent\n", "has these labels: dent"),
    ],
)
def test_file_that_is_no_manifest_is_refused(root, text, words):
    with pytest.raises(DatasetError, match=re.escape(words)):
        index(write_csv(root, text))


@pytest.mark.parametrize("more", ["", "line/missing.png,dent\n"])
def test_good_photographs_alone_are_a_data_set(root, more):
    dataset = index(write_csv(root, f"image,label\nline/a.png,good\nline/b.png,ok\n{more}"))
    assert dataset.classes == ("good", "defect") and len(dataset.problems) == bool(more)
    assert [item.label for item in dataset.items] == [0, 0]


def test_cells_beyond_the_last_column_are_a_problem(root):
    write_csv(root, "image,label,box\nline/a.png,good,\nline/b.png,dent,2,1,3,2\n")
    expected = [("line 3", "", "3 cells are beyond the last column: quote cells")]
    check_problems(index(root), expected)


def test_root_without_a_manifest_or_with_two_is_refused(root):
    with pytest.raises(DatasetError, match=r"holds no manifest\.csv or manifest\.jsonl"):
        index(root)
    write_csv(root, "image,label\n")
    write_lines(root)
    with pytest.raises(DatasetError, match=r"holds both manifest\.csv and manifest\.jsonl"):
        index(root)
    (root / "list.xlsx").touch()
    with pytest.raises(DatasetError, match=r"has the suffix '\.xlsx'"):
        index(root / "list.xlsx")


@pytest.mark.parametrize("text", ["\n", "dent\nscratch\ndent\n"])
def test_classes_file_names_each_class_once(root, text):
    write_csv(root, "image,label\nline/a.png,good\nline/b.png,dent\n")
    (root / "classes.txt").write_text(text)
    with pytest.raises(DatasetError, match=r"classes\.txt holds"):
        index(root)


# === Masks of classes ===


@pytest.fixture
def valued(root):
    """Masks whose first row is ignored and whose fifth and sixth rows have the values 1 and 2."""
    values = np.zeros((12, 20), np.uint8)
    values[0], values[4], values[5] = 255, 1, 2
    assert cv2.imwrite(str(root / "masks/b.png"), values)
    assert cv2.imwrite(str(root / "masks/a.png"), np.where(values == 255, values, 0))
    (root / "classes.txt").write_text("dent\nscratch\n")
    return write_lines(
        root,
        {"image": "line/a.png", "label": "good", "class_mask": "masks/a.png"},
        {"image": "line/b.png", "label": "dent", "class_mask": "masks/b.png", "supervision": "box"},
        {"image": "line/c.png", "label": "scratch"},
    )


def test_values_of_a_class_mask_are_positions_in_the_list_of_classes(valued):
    good, defective, _ = index(valued).items
    assert (good.label, defective.label, defective.supervision) == (0, 1, "box")
    sample = read(defective)
    assert marked(defective) == block((4, 5), range(20))
    assert (sample.classes[4] == 1).all() and (sample.classes[5] == 2).all()
    assert sample.ignored[0].all() and not sample.ignored[1:].any()
    assert read(good).ignored[0].all() and not read(good).mask.any()


def test_a_value_without_a_class_is_a_problem(valued):
    (valued / "classes.txt").write_text("scratch\n")
    (valued / "manifest.jsonl").write_text(
        (valued / "manifest.jsonl").read_text().replace('"dent"', '"scratch"')
    )
    (problem,) = check_dataset(index(valued)).dataset.problems
    assert problem.name == "line/b" and "holds the values 2, which are not classes" in problem.text


def test_class_mask_needs_the_list_of_classes(valued):
    (valued / "classes.txt").unlink()
    dataset = index(valued)
    expected = [(f"line {n}", name, "no classes.txt") for n, name in ((1, "line/a"), (2, "line/b"))]
    check_problems(dataset, expected)
    assert [item.name for item in dataset.items] == ["line/c"]


def test_supervision_agrees_with_the_annotation(root):
    entry = {"image": "line/b.png", "label": "dent"}
    dataset = index(
        write_lines(
            root,
            {"image": "line/a.png", "label": "good"},
            {**entry, "supervision": "mask"},
            {"image": "line/c.png", "label": "dent", "supervision": "boxes"},
            {"image": "line/d.png", "label": "dent", "mask": "masks/b.png", "class_mask": "masks/b.png"},
            {"image": "line/e.png", "label": "dent", "mask": "masks/b.png", "supervision": "label"},
        )
    )
    expected = [
        ("line 2", "line/b", "the supervision is 'mask', but a mask is missing"),
        ("line 3", "line/c", "the supervision 'boxes' is not one of mask, box, label (did you mean 'box'?)"),
        ("line 4", "line/d", "there are a mask and a class_mask; keep one of them"),
    ]
    check_problems(dataset, expected)
    assert described(dataset) == [("line/a", "good", "mask", False), ("line/e", "dent", "label", True)]


def test_folds_are_splits(root):
    lines = [
        f"line/{name}.png,{'dent' if name == 'b' else 'good'},fold_{n}" for n, name in ((1, "a"), (2, "b"))
    ]
    dataset = index(write_csv(root, "\n".join(["image,label,split", *lines])))
    assert [(item.split, item.fold) for item in dataset.items] == [("train", 1), ("train", 2)]
