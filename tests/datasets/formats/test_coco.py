import json

import pytest

from datasets.layouts.folder import index
from segdec.errors import DatasetError
from tests.datasets.layouts.contents import check_dropped, check_problems, described, marked

SIZE = {"height": 12, "width": 20}
CATEGORIES = [
    {"id": 0, "name": "parts", "supercategory": "none"},  # Roboflow writes one that nothing has
    {"id": 1, "name": "scratch", "supercategory": "parts"},
    {"id": 2, "name": "dent"},
    {"id": 3, "name": "Good"},
]
SQUARE = [[2, 1, 5, 1, 5, 3, 2, 3]]


@pytest.fixture
def write_set(tmp_path, write_picture):
    """Writes photographs of 20×12 px (width × height), ids from 1, and the file; returns the root."""

    def write(annotations, *, images=(), categories=CATEGORIES, names="abcde", file="annotations.json"):
        listed = [{"id": k, "file_name": f"{name}.png", **SIZE} for k, name in enumerate(names, start=1)]
        for name in names:
            write_picture(tmp_path / f"images/{name}.png")
        content = {"images": [*listed, *images], "annotations": annotations, "categories": categories}
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(json.dumps(content))
        return tmp_path

    return write


def annotation(image_id, category_id, segmentation=None, bbox=None, **more):
    given = {"image_id": image_id, "category_id": category_id, "segmentation": segmentation, "bbox": bbox}
    return {**given, "iscrowd": 0, **more}


def test_polygons_run_lengths_and_boxes_are_drawn(write_set):
    counts = [13, 2, 10, 1, 214]  # rows 1 and 2 of column 1, row 1 of column 2
    dataset = index(
        write_set(
            [
                annotation(1, 1, SQUARE, [2, 1, 3, 2], id=10),
                annotation(1, 1, [*SQUARE, [8, 8, 10, 8, 10, 9, 8, 9]], id=11),
                annotation(2, 2, {"size": [12, 20], "counts": counts}, [0, 0, 9, 9], iscrowd=1, id=12),
                annotation(3, 2, {"size": [12, 20], "counts": "=2:O\\6"}, id=13),
                annotation(4, 1, [], [2, 1, 3, 2], id=14),
            ]
        )
    )
    assert dataset.problems == ()
    assert dataset.classes == ("good", "dent", "scratch")
    assert described(dataset) == [
        ("images/a", "scratch", "mask", True),
        ("images/b", "dent", "mask", True),
        ("images/c", "dent", "mask", True),
        ("images/d", "scratch", "box", True),
        ("images/e", "good", "mask", False),
    ]
    square = [(1, 2), (1, 3), (1, 4), (2, 2), (2, 3), (2, 4)]
    a, b, c, d, _ = dataset.items
    assert marked(a) == [*square, (8, 8), (8, 9)]
    assert marked(b) == marked(c) == [(1, 1), (1, 2), (2, 1)]
    assert marked(d) == square
    assert all(item.group == item.name and item.split for item in dataset.items)


def test_label_is_the_category_of_the_largest_area_and_good_marks_nothing(write_set):
    dataset = index(
        write_set(
            [
                annotation(1, 1, None, [0, 0, 3, 3]),
                annotation(1, 2, None, [5, 5, 2, 3]),
                annotation(1, 2, None, [9, 5, 2, 2]),
                annotation(2, 3, None, [0, 0, 9, 9]),
                annotation(3, 3, None, [0, 0, 9, 9]),
                annotation(3, 1, SQUARE),
            ]
        )
    )
    assert [label for _, label, _, _ in described(dataset)] == ["dent", "good", "scratch", "good", "good"]
    assert len(marked(dataset.items[2])) == 6


@pytest.mark.parametrize("file", ["all.JSON", "annotations/instances_default.json"])
def test_file_is_found_or_given(write_set, file):
    root = write_set([annotation(1, 1, SQUARE)], file=file)
    assert len(index(root).items) == 5
    assert index(root / file) == index(root)


@pytest.mark.parametrize("folder", ["images/train", "train"])
def test_photographs_of_a_subset_lie_in_its_folder(write_set, write_picture, folder):
    images, file = [{"id": 1, "file_name": "a.png", **SIZE}], "annotations/instances_train.json"
    root = write_set([annotation(1, 1, SQUARE)], images=images, file=file, names="")
    write_picture(root / f"{folder}/a.png")
    assert [item.name for item in index(root).items] == [f"{folder}/a"]


def test_numbers_may_be_texts_or_end_in_point_0(write_set):
    annotations = [annotation("1", "1", SQUARE), annotation(2.0, 2, SQUARE), annotation("007", 1, SQUARE)]
    categories = [{"id": "1", "name": "pit"}, {"id": 2.0, "name": "dent"}]
    dataset = index(write_set(annotations, categories=categories))
    assert [label for _, label, _, _ in described(dataset)] == ["pit", "dent", "good", "good", "good"]
    check_dropped(dataset, [("annotations[2]", "", "No image has the id '007'. Correct")])


def test_all_problems_are_reported_at_once_and_other_photographs_stay(write_set, write_picture):
    root = write_set(
        [
            annotation(1, 1, [[1, 1, 2, 2]]),
            annotation(99, 1, SQUARE),
            annotation(1, 77, SQUARE),
            annotation(2, 1, {"size": [20, 12], "counts": [240]}),
            annotation(2, 1, {"size": [12, 20], "counts": [13, 2, 300]}),
            annotation(2, 1, "polygon"),  # 5
            annotation(2, 1),
            annotation(2, 1, [[22, 1, 25, 1, 25, 3]]),
            annotation(3, 1, [*SQUARE, [1, 1, 2, 2]]),
            annotation(4, 1, SQUARE),
            "annotation",  # 10
            annotation(7, 1, SQUARE),  # of a photograph that does not exist: reported once
            annotation([2], 1, SQUARE),
            annotation(6, 2, SQUARE),
        ],
        names="abcdef",
        images=[
            {"id": 7, "file_name": "gone.png", **SIZE},  # images[6]
            {"id": 8, "file_name": "../out.png", **SIZE},
            {"id": 9, "file_name": "g.png", **SIZE},
            {"id": 9, "file_name": "h.png", **SIZE},
            {"id": 10, "file_name": "i.png", "height": 0, "width": 20},
            {"file_name": "a.png", **SIZE},
            {"id": 12, "file_name": None, **SIZE},
            7,
        ],
    )
    for name in "ghi":
        write_picture(root / f"images/{name}.png")
    dataset = index(root)
    sizes = "have the size [20, 12], the photograph has [12, 20] (height, width)"
    expected = [
        ("images[6]", "", "'gone.png' is missing"),
        ("images[7]", "", "'out.png' is missing"),
        ("images[8]", "images/g", "2 images have the id 9"),
        ("images[9]", "images/h", "2 images have the id 9"),
        ("images[10]", "images/i", "is invalid"),
        ("images[11]", "", "The id None is neither a whole number nor a string"),
        ("images[12]", "", "None is not the name of a photograph"),
        ("images[13]", "", "7 is not an object with the key id"),
        ("annotations[0]", "images/a", "a polygon of 2 different points"),
        ("annotations[2]", "images/a", "No category has the id 77"),
        ("annotations[3]", "images/b", sizes),
        ("annotations[4]", "images/b", "run lengths have 315 pixels, the picture of 20×12 has 240"),
        ("annotations[5]", "images/b", "'polygon' is neither polygons nor run lengths"),
        ("annotations[6]", "images/b", "neither a segmentation nor a box"),
        ("annotations[7]", "images/b", "the shape from (22, 1) to (25, 3) is outside the picture of 20×12"),
    ]
    check_problems(dataset, expected)
    dropped = [
        ("annotations[1]", "", "No image has the id 99"),
        ("annotations[10]", "", "'annotation' is not an object"),
        ("annotations[12]", "", "The image_id [2] is neither"),
        ("annotations[8]", "images/c", "a polygon of 2 different points"),
    ]
    check_dropped(dataset, dropped)
    assert [item.name for item in dataset.items] == [f"images/{name}" for name in "cdef"]


@pytest.mark.parametrize(
    ("categories", "words"),
    [
        ([{"id": 1}], "categories[0]: the label None"),
        ([{"id": 1, "name": name} for name in "ab"], "categories[1]: 'a' and 'b' have the id 1"),
    ],
)
def test_invalid_category_is_a_problem_of_the_file(write_set, categories, words):
    dataset = index(write_set([annotation(1, 1, SQUARE)], categories=categories))
    assert dataset.items == ()
    check_problems(dataset, [("annotations.json", "", words)])


def test_file_without_photographs_is_refused(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({"images": [], "annotations": [], "categories": []}))
    with pytest.raises(DatasetError, match="holds no photograph"):
        index(tmp_path)


def test_file_of_another_machine_with_repeated_ids(write_set, tmp_path, write_picture):
    """Some tools count annotation ids from 1 in each photograph, and macOS decomposes accented letters."""
    images = [{"id": 8, "file_name": "C:\\Users\\Max\\Pi\u00e8ce.png", **SIZE}]
    write_picture(tmp_path / "images/Pie\u0300ce.png")
    dataset = index(
        write_set([annotation(8, 1, SQUARE, id=1), annotation(1, 1, SQUARE, id=1)], images=images)
    )
    assert dataset.problems == dataset.dropped == ()
    assert [dataset.classes[item.label] for item in dataset.items] == ["scratch", "scratch", *["good"] * 4]


def test_polygon_over_the_edge_is_cut_off_and_reported(write_set):
    dataset = index(write_set([annotation(1, 1, [[2, 1, 25, 1, 25, 3, 2, 3]])]))
    check_dropped(dataset, [("annotations[0]", "images/a", "x = 25 is outside the picture of 20×12")])
    assert marked(dataset.items[0]) == [(row, column) for row in (1, 2) for column in range(2, 20)]


def test_splits_of_roboflow_are_kept(tmp_path, write_picture):
    for split, names in (("train", "abc"), ("valid", "de"), ("test", "ab")):
        images = [{"id": key, "file_name": f"{name}.png", **SIZE} for key, name in enumerate(names)]
        for name in names:
            write_picture(tmp_path / f"{split}/{name}.png")
        content = {"images": images, "annotations": [annotation(0, 1, SQUARE)], "categories": CATEGORIES}
        (tmp_path / split / "_annotations.coco.json").write_text(json.dumps(content))
    dataset = index(tmp_path)
    assert dataset.problems == ()
    splits = {"train": "train", "valid": "val", "test": "test"}
    assert all(item.split == splits[item.name.split("/")[0]] for item in dataset.items)
    assert [item.name for item in dataset.items if item.label] == ["test/a", "train/a", "valid/d"]


def test_split_in_the_name_of_the_file_finds_its_photographs(tmp_path, write_picture):
    """As CVAT exports projects: annotations/instances_train.json and images/train/a.png."""
    for split in ("train", "val"):
        write_picture(tmp_path / f"images/{split}/a.png")
        write_picture(tmp_path / f"images/{split}/b.png")
        images = [{"id": key, "file_name": f"{name}.png", **SIZE} for key, name in enumerate("ab")]
        content = {"images": images, "annotations": [annotation(0, 1, SQUARE)], "categories": CATEGORIES}
        (tmp_path / "annotations").mkdir(exist_ok=True)
        (tmp_path / f"annotations/instances_{split}.json").write_text(json.dumps(content))
    dataset = index(tmp_path)
    assert [(r.name, r.label, r.split) for r in dataset.items] == [
        ("images/train/a", 1, "train"),
        ("images/train/b", 0, "train"),
        ("images/val/a", 1, "val"),
        ("images/val/b", 0, "val"),
    ]


@pytest.mark.parametrize("size", [{}, {"height": None, "width": None}, {"height": 0, "width": 0}])
def test_a_file_without_sizes_has_those_of_the_photographs(write_set, size):
    images = [{"id": 1, "file_name": "a.png", **size}]
    root = write_set([annotation(1, 1, SQUARE)], names="a")
    content = json.loads((root / "annotations.json").read_text())
    (root / "annotations.json").write_text(json.dumps({**content, "images": images}))
    dataset = index(root)
    assert (len(dataset.items), dataset.problems) == (1, ())


def test_an_empty_segmentation_is_its_box(write_set):
    dataset = index(write_set([annotation(1, 1, [[]], [2, 1, 3, 2])], names="a"))
    assert described(dataset) == [("images/a", "scratch", "box", True)]


@pytest.mark.parametrize(("key", "classes"), [("categories", ("good", "class_1")), ("annotations", None)])
def test_a_missing_list(write_set, key, classes):
    root = write_set([annotation(1, 1, SQUARE)], names="ab")
    content = json.loads((root / "annotations.json").read_text())
    del content[key]
    (root / "annotations.json").write_text(json.dumps(content))
    dataset = index(root)
    if classes:
        assert (dataset.classes, dataset.problems) == (classes, ())
    else:
        assert not dataset.items and "no 'annotations'" in dataset.problems[0].text
