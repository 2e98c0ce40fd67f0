import json

import pytest

from datasets.layouts.folder import index
from datasets.reading_options import ReadingOptions
from tests.datasets.layouts.contents import block, check_problems, described, marked

WIDTH, HEIGHT = 20, 12  # of `write_picture`: 5 % across are one pixel, 25 % down are three


@pytest.fixture
def export(tmp_path):
    def write(*tasks, name="project-1-at-2024-05-01.json"):
        (tmp_path / name).write_text(json.dumps(list(tasks)))

    return write


@pytest.fixture
def task(tmp_path, write_picture):
    """Writes a photograph and returns its task, with one annotation of the given results."""
    numbers = iter(range(1, 1000))

    def make(name, *results, image=None, **annotation):
        write_picture(tmp_path / name)
        return {
            "id": next(numbers),
            "data": {"image": image or f"/data/upload/1/0123abcd-{name.rsplit('/', 1)[-1]}"},
            "annotations": [{"id": 7, "was_cancelled": False, "result": list(results), **annotation}],
            "predictions": [],
        }

    return make


def result(kind, label, ident="r1", **value):
    size = {"original_width": WIDTH, "original_height": HEIGHT, "image_rotation": 0}
    return {"id": ident, "type": kind, "from_name": "label", **size, "value": {**value, kind: [label]}}


def rectangle(label="dent", **changes):
    """3×3 px at (2, 3)."""
    return result(
        "rectanglelabels", label, **{"x": 10, "y": 25, "width": 15, "height": 25, "rotation": 0, **changes}
    )


def choice(*labels):
    return {**result("choices", ""), "value": {"choices": list(labels)}}


def brush(*painted):
    """Run lengths of the whole picture: one for each pixel, counts of 1 bit, 8 bits, 8 bits and 16 bits."""
    fields = [(HEIGHT * WIDTH * 4, 32), (7, 5), (0, 4), (7, 4), (7, 4), (15, 4)]
    for pixel in range(HEIGHT * WIDTH):
        alpha = 255 if divmod(pixel, WIDTH) in painted else 0
        fields += [(0, 1), (1, 2), (3, 8), (alpha, 8), (0, 8), (0, 8), (alpha, 8)]
    bits = "".join(f"{value:0{size}b}" for value, size in fields)
    values = [int(bits[place : place + 8].ljust(8, "0"), 2) for place in range(0, len(bits), 8)]
    return result("brushlabels", "dent", format="rle", rle=values)


SQUARE = [[10, 25], [25, 25], [25, 50], [10, 50]]


@pytest.mark.parametrize(
    ("drawn", "pixels", "supervision"),
    [
        (result("polygonlabels", "dent", points=SQUARE, closed=True), block((3, 4, 5), (2, 3, 4)), "mask"),
        (rectangle(), block((3, 4, 5), (2, 3, 4)), "box"),
        # 4×2 px at (8, 3), turned about that corner: x 6…8, y 3…7
        (rectangle(x=40, y=25, width=20, height=100 / 6, rotation=90), block((3, 4, 5, 6), (6, 7)), "box"),
        # half axes of 2 and 0.6 px around (4, 6)
        (result("ellipselabels", "dent", x=20, y=50, radiusX=10, radiusY=5), block((5, 6), (3, 4)), "mask"),
        (brush((4, 6), (5, 7)), [(4, 6), (5, 7)], "mask"),
    ],
)
def test_shapes_by_hand(export, task, tmp_path, drawn, pixels, supervision):
    export(task("images/a.png", drawn))
    dataset = index(tmp_path)
    assert (dataset.problems, dataset.classes) == ((), ("good", "dent"))
    (item,) = dataset.items
    assert marked(item) == pixels
    assert item.supervision == supervision


def test_tree_of_an_export(export, task, tmp_path, write_picture):
    scratch = result("polygonlabels", "scratch", points=[[0, 0], [50, 0], [50, 50], [0, 50]])
    value = {**rectangle()["value"], "choices": ["deep"]}
    about_the_region = {**rectangle(), "type": "choices", "value": value}
    note = {"id": "n", "type": "textarea", "value": {"text": ["look again"]}}
    export(
        task("a.png", rectangle(), scratch, about_the_region, note, {"type": "relation", "from_id": "r1"}),
        task("b.jpg"),
        task("c.png", choice("stain")),
        task("d.png", choice("OK")),
        task("e.png", rectangle("Good"), choice("dent")),
    )
    export(task("f.png", rectangle()), name="second.json")
    write_picture(tmp_path / "without_a_task.png")
    (tmp_path / "splits.txt").write_text("train a\ntest f\n")
    dataset = index(tmp_path)
    assert dataset.problems == ()
    assert dataset.classes == ("good", "dent", "scratch", "stain")
    assert described(dataset) == [
        ("a", "scratch", "box", True),
        ("b", "good", "mask", False),
        ("c", "stain", "label", False),
        ("d", "good", "mask", False),
        ("e", "dent", "label", False),
        ("f", "dent", "box", True),
    ]
    assert [item.split for item in dataset.items] == ["train", None, None, None, None, "test"]
    assert str(dataset.items[0].mask_file) == f"{tmp_path / 'project-1-at-2024-05-01.json'}, task 1"


def test_shape_and_label_may_be_tools_of_their_own(export, task, tmp_path):
    value = {key: size for key, size in rectangle()["value"].items() if key != "rectanglelabels"}
    bare = {**rectangle(), "type": "rectangle", "value": value}
    labelled = {**bare, "type": "labels", "value": {**value, "labels": ["dent"]}}
    export(task("a.png", bare, labelled))
    dataset = index(tmp_path)
    assert dataset.problems == ()
    assert marked(dataset.items[0]) == block((3, 4, 5), (2, 3, 4))


@pytest.mark.parametrize(
    ("annotations", "label"),
    [
        ([("dent", {"updated_at": "2024-05-02T10"}), ("pore", {"updated_at": "2024-05-01T10"})], "dent"),
        ([("dent", {}), ("pore", {})], "pore"),
        ([("dent", {"ground_truth": True}), ("pore", {"updated_at": "2024-05-01T10:00:00Z"})], "dent"),
        ([("dent", {}), ("pore", {"was_cancelled": True, "ground_truth": True})], "dent"),
        ([("dent", {"was_cancelled": True})], None),
        ([], None),
    ],
)
def test_one_annotation_counts(export, task, tmp_path, annotations, label):
    several = task("a.png")
    several["annotations"] = [
        {"id": number, "result": [rectangle(name)], **more} for number, (name, more) in enumerate(annotations)
    ]
    export(several, task("b.png"))
    dataset = index(tmp_path)
    assert dataset.problems == ()
    labels = {item.name: dataset.classes[item.label] for item in dataset.items}
    assert labels == {"b": "good"} | ({"a": label} if label else {})


@pytest.mark.parametrize(
    "address",
    [
        "/data/upload/1/0123abcd-part.png",
        "part.png",
        "/data/local-files/?d=line-2%2Fpart.png",
        "s3://bucket/line-2/part.png",
        "https://host.example/line-2/part.png?X-Amz-Signature=a.jpg",
        "C:\\parts\\line-2\\part.png",
        "my%20part.png",
    ],
)
def test_photographs_are_found_by_their_names(export, task, tmp_path, address):
    name = "my part.png" if "my" in address else "part.png"
    export(task(f"line-2/{name}", rectangle(), image=address))
    assert [item.image_file.name for item in index(tmp_path).items] == [name]


def test_other_data_of_a_task_are_no_photograph(export, task, tmp_path):
    several, single = task("a.png", rectangle()), task("b.png", rectangle())
    several["data"] |= {"reference": "https://host.example/plan.png", "count": 3, "link": "http://[broken"}
    single["data"] = {"photo": single["data"]["image"], "text": "see plan"}
    export(several, single)
    dataset = index(tmp_path)
    assert dataset.problems == ()
    assert [item.name for item in dataset.items] == ["a", "b"]


def test_all_problems_are_reported_at_once(export, task, tmp_path, write_picture):
    two = result("polygonlabels", "dent", points=[[0, 0], [50, 50]])
    cut = brush((0, 0))
    cut["value"]["rle"] = cut["value"]["rle"][:-40]
    unlabelled, double = rectangle(), rectangle()
    del unlabelled["value"]["rectanglelabels"]
    double["value"]["rectanglelabels"] = ["dent", "pore"]
    broken = {
        "line": ([two, rectangle(x=150)], ["polygon of 2 different points", "outside the picture of 20×12"]),
        "word": ([rectangle(x="left")], ["'left' is not a number"]),
        "kind": ([result("keypointlabels", "dent", x=5, y=5, width=1)], ["'keypointlabels' is unknown"]),
        "cut": ([cut], ["end too early"]),
        "other": ([result("brushlabels", "dent", format="png", rle=[])], ["has the format 'png'"]),
        "clear": ([brush()], ["marks no pixel"]),
        "turned": ([{**rectangle(), "image_rotation": 90}], ["was rotated in the tool"]),
        "size": ([{**rectangle(), "original_width": None}], [") is invalid"]),
        "sizes": ([rectangle(), {**rectangle(), "original_width": 40}], ["pictures of 20×12 and 40×12"]),
        "unlabelled": ([unlabelled], ["has no labels"]),
        "double": ([double], ["has 2 labels"]),
        "surrogate": ([rectangle("\ud800")], ["unprintable characters"]),
        "text": (["dent"], ["has no value"]),
        "choice": ([{**choice(), "value": {"choices": "dent"}}], ["the choices are not a list"]),
    }
    tasks = [task(f"{name}.png", *results) for name, (results, _) in broken.items()]
    gone = task("gone.png", rectangle())
    (tmp_path / "gone.png").unlink()
    unreadable = task("unreadable.png", rectangle(), image="\ud800")
    for folder in ("x", "y"):
        write_picture(tmp_path / folder / "same.png")
    unclear = task("z/same.png", image="same.png")
    export(task("fine.png", rectangle()), *tasks, gone, unreadable, unclear)
    (tmp_path / "cut.json").write_text('[\n{"id": 1,')
    dataset = index(tmp_path)
    assert [item.name for item in dataset.items] == ["fine"]
    cut_off = "cut.json is not JSON: Expecting property name enclosed in double quotes: line 2 column 10"
    expected = [
        ("cut.json", "cut", cut_off),
        *(("", name, words) for name, (_, texts) in broken.items() for words in texts),
        ("", "", "'0123abcd-gone.png' is missing"),
        ("", "", "name 0 pictures"),
        ("", "", "the photograph 'same.png' may be"),
    ]
    check_problems(dataset, expected)
    assert all(problem.text.isprintable() for problem in dataset.problems)


PEOPLE = [{"id": 4, "email": "ann@example.com"}, {"id": 5, "first_name": "Bo", "last_name": "Lee"}]


@pytest.mark.parametrize(
    ("annotator", "label"),
    [
        ("any", "dent"),
        ("all", "good"),
        ("latest", "good"),
        ("ANN@example.com", "dent"),
        ("5", "good"),
        ("bo lee", "good"),
    ],
)
def test_annotators_who_disagree_about_good_are_a_problem_unless_a_setting_decides(
    export, task, tmp_path, annotator, label
):
    several = task("a.png")
    results = [([rectangle()], "2024-05-01"), ([], "2024-05-02")]
    several["annotations"] = [
        {"result": result, "completed_by": person, "updated_at": day}
        for (result, day), person in zip(results, PEOPLE, strict=True)
    ]
    export(several, task("b.png"))
    known = "(5, ann@example.com)"
    check_problems(
        index(tmp_path),
        [("task 1", "a", f"1 of 2 annotations mark a defect, the others none. {known}")][:0]
        or [("task 1", "a", "1 of 2 annotations mark a defect")],
    )
    assert known in index(tmp_path).problems[0].text
    dataset = index(tmp_path, reading=ReadingOptions(annotator=annotator))
    assert [dataset.classes[item.label] for item in dataset.items] == [label, "good"]


def test_a_result_of_another_picture_of_the_task_is_a_problem(export, task, tmp_path):
    given = task("a.png", {**rectangle(), "to_name": "reference"})
    given["data"]["reference"] = "b.png"
    export(given)
    assert "Make a task for each picture" in index(tmp_path).problems[0].text
