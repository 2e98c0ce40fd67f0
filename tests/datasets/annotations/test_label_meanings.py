import json

import pytest

from datasets.annotations.label_meanings import interpret_labels
from datasets.loading import load_dataset
from datasets.reading_options import ReadingOptions
from segdec.errors import DatasetError

BOX = {"xmin": 2, "ymin": 2, "xmax": 8, "ymax": 6}


def coco(label):
    return {
        "images": [{"id": 1, "file_name": "b.png", "width": 20, "height": 12}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [2, 2, 6, 4]}],
        "categories": [{"id": 1, "name": label}],
    }


def label_studio(label):
    choice = {"type": "choices", "from_name": "c", "to_name": "image", "value": {"choices": [label]}}
    return [{"id": 1, "data": {"image": "b.png"}, "annotations": [{"id": 1, "result": [choice]}]}]


def labelme_flag(label):
    return {"imagePath": "b.png", "shapes": [], "flags": {label: True}, "imageHeight": 12, "imageWidth": 20}


def labelme(label):
    shape = {"label": label, "points": [[2, 2], [8, 6]], "shape_type": "rectangle"}
    return {**labelme_flag(label), "flags": {}, "shapes": [shape]}


def voc(label):
    box = "".join(f"<{side}>{value}</{side}>" for side, value in BOX.items())
    return (
        "<annotation><filename>b.png</filename><size><width>20</width><height>12</height><depth>1</depth>"
        f"</size><object><name>{label}</name><bndbox>{box}</bndbox></object></annotation>"
    )


def cvat(label):
    return (
        '<annotations><image id="0" name="b.png" width="20" height="12">'
        f'<box label="{label}" xtl="2" ytl="2" xbr="8" ybr="6"/></image></annotations>'
    )


FORMATS = {
    "COCO": lambda label: {"coco.json": json.dumps(coco(label))},
    "CVAT": lambda label: {"annotations.xml": cvat(label)},
    "Label Studio": lambda label: {"export.json": json.dumps(label_studio(label))},
    "LabelMe": lambda label: {"b.json": json.dumps(labelme(label))},
    "LabelMe, flag": lambda label: {"b.json": json.dumps(labelme_flag(label))},
    "Pascal VOC": lambda label: {"b.xml": voc(label)},
    "YOLO": lambda label: {"data.yaml": f"names: ['{label}']\n", "b.txt": "0 0.25 0.33 0.3 0.3\n"},
}


@pytest.fixture
def annotated(tmp_path, write_picture):
    """Writes `b.png` with a label in each format, beside a photograph in each folder, good and dent."""

    def write(annotation):
        for name in ("good/a", "dent/c", "masks/dent/c", "b"):
            write_picture(tmp_path / f"{name}.png", mask=name.startswith("masks"))
        for name, text in annotation.items():
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


def labels(dataset):
    return {item.name: dataset.classes[item.label] for item in dataset.items}


def load(root, good=(), defect=(), layout="folder"):
    return load_dataset(layout, root, reading=ReadingOptions(good_labels=good, defect_labels=defect))


@pytest.mark.parametrize("make", FORMATS.values(), ids=FORMATS)
def test_a_label_without_defects_is_good_in_every_format(annotated, make):
    dataset = load(annotated(make("Non-defective")))
    assert dataset.problems == ()
    assert labels(dataset) == {"b": "good", "dent/c": "dent", "good/a": "good"}
    assert "The label 'Non-defective' of 1 photograph was read as good." in dataset.notes


@pytest.mark.parametrize("make", FORMATS.values(), ids=FORMATS)
def test_an_unclear_label_is_a_problem_until_it_is_answered_in_every_format(annotated, make):
    root = annotated(make("No burr"))
    (problem,) = load(root).problems
    assert problem.name == "b"
    assert all(answer in problem.text for answer in ("--good 'No burr'", "--defect 'No burr'"))
    assert labels(load(root)) == {"dent/c": "dent", "good/a": "good"}
    assert load(root, good=["no_burr"]).problems == ()
    assert labels(load(root, good=["no_burr"]))["b"] == "good"
    assert labels(load(root, defect=["No burr"]))["b"] == "No burr"


@pytest.mark.parametrize(
    ("given", "good", "unclear"),
    [
        ("scratch|no scratch", "no scratch", ""),
        ("Crack|Uncracked", "Uncracked", ""),
        ("Kratzer|kratzerfrei", "kratzerfrei", ""),
        ("scratch|no scratch|dent", "", "no scratch"),
        ("good|scratch|no scratch", "good", "no scratch"),
        ("cap|no cap", "", "no cap"),
        ("complete|incomplete", "", "incomplete"),
        ("unsoldered|dent", "", ""),
        ("unsoldered|solder|dent", "", "unsoldered"),
        ("not good|OK|ignore", "OK", ""),
        ("review|not_inspected", "", ""),
        ("class_1|class_2", "", ""),
    ],
)
def test_other_labels_of_the_set_decide(given, good, unclear):
    meanings = interpret_labels(given.split("|"), ReadingOptions())
    assert (meanings.good, meanings.unclear) == ({*filter(None, [good])}, {*filter(None, [unclear])})


def test_an_answer_about_a_label_decides_about_its_negation():
    answered = interpret_labels(["cap", "no cap"], ReadingOptions(good_labels=["cap"]))
    assert (answered.good, answered.unclear) == ({"cap"}, set())
    answered = interpret_labels(["cap", "no cap"], ReadingOptions(defect_labels=["no cap"]))
    assert (answered.good, answered.unclear) == (set(), {"cap"})


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"good": ["dant"]}, "no label 'dant'.*Nearest label: 'dent'"),
        ({"defect": ["no bur"]}, "no label 'no bur'.*Nearest label: 'no burr'"),
        ({"good": ["no burr"], "defect": ["No Burr"]}, "'No Burr'.*is also given as --good"),
        ({"defect": ["good"]}, "'good'.*always means good"),
    ],
)
def test_an_answer_that_cannot_be_used_is_an_error(annotated, answers, message):
    with pytest.raises(DatasetError, match=message):
        load(annotated(FORMATS["COCO"]("no burr")), **answers)


def test_an_answer_may_name_a_label_of_the_test_folder_alone(annotated, tmp_path_factory, write_picture):
    root, tests = annotated(FORMATS["COCO"]("dent")), tmp_path_factory.mktemp("tests")
    for name in ("good/a", "no_burr/b"):
        write_picture(tests / f"{name}.png")
    reading = ReadingOptions(good_labels=["no burr"])
    dataset = load_dataset("folder", root, reading=reading, test_root=tests)
    assert [item.label for item in dataset.of_split("test")] == [0, 0]


def test_one_annotator_who_may_mean_good_and_one_who_marks_a_defect_disagree(annotated):
    (task,) = label_studio("clean")
    task["annotations"] += label_studio("dent")[0]["annotations"]
    (problem,) = load(annotated({"export.json": json.dumps([task])})).problems
    assert "1 of 2 annotations mark a defect" in problem.text


def test_folders_are_good_by_their_words_beside_their_opposite_or_by_an_answer(tmp_path, write_picture):
    for name in ("first/defective/a", "first/non_defective/b", "second/scratch/c", "second/no_scratch/d"):
        write_picture(tmp_path / f"{name}.png")
    for root, names in (("first", ("defective", "non_defective")), ("second", ("scratch", "no_scratch"))):
        (tmp_path / root / "supervision.txt").write_text(f"label  {names[0]}\n")
        dataset = load(tmp_path / root)
        assert dataset.problems == ()
        assert dataset.classes == ("good", names[0])
        assert f"The folder '{names[1]}' was read as good." in dataset.notes
    write_picture(tmp_path / "third/A-Ware/a.png")
    write_picture(tmp_path / "third/dent/b.png")
    write_picture(tmp_path / "third/masks/dent/b.png", mask=True)
    assert labels(load(tmp_path / "third", good=["A ware"])) == {"A-Ware/a": "good", "dent/b": "dent"}


def test_a_folder_beside_its_opposite_is_asked_about_if_there_are_further_classes(tmp_path, write_picture):
    for name in ("a/scratch/1", "a/no_scratch/2", "b/dent/3", "b/no_scratch/4", "b/good/5"):
        write_picture(tmp_path / f"{name}.png")
    (tmp_path / "supervision.txt").write_text("label  a/scratch\nlabel  b/dent\n")
    dataset = load(tmp_path)
    assert [problem.name for problem in dataset.problems] == ["a/no_scratch/2", "b/no_scratch/4"]
    assert dataset.notes == ()


def test_advice_about_a_folder_that_may_mean_good_asks_instead_of_naming_a_mask(tmp_path, write_picture):
    for name in ("defect/a", "masks/defect/a", "no_burr/b", "no_burr/c"):
        write_picture(tmp_path / f"{name}.png", mask=name.startswith("masks"))
    problems = load(tmp_path).problems
    assert [problem.name for problem in problems] == ["no_burr/b", "no_burr/c"]
    assert all("--good no_burr" in each.text and "supervision" not in each.text for each in problems)
    answered = load(tmp_path, good=["no_burr"])
    assert answered.problems == ()
    assert labels(answered) == {"defect/a": "defect", "no_burr/b": "good", "no_burr/c": "good"}


def test_folders_of_masks_that_may_mean_good_are_asked_about(tmp_path, write_picture):
    for name in ("images/a", "images/b", "masks/dent/a", "masks/clean/b"):
        write_picture(tmp_path / f"{name}.png", mask=name.startswith("masks"))
    (problem,) = load(tmp_path).problems
    assert (problem.name, "--good clean" in problem.text) == ("images/b", True)


@pytest.mark.parametrize(("label", "expected"), [("No defects", 0), ("No burr", 1)])
def test_names_of_values_in_masks_are_read_by_the_same_rules(tmp_path, write_picture, label, expected):
    write_picture(tmp_path / "JPEGImages/a.png")
    write_picture(tmp_path / "SegmentationClass/a.png", mask=True, value=1)
    (tmp_path / "class_names.txt").write_text(f"_background_\n{label}\n")
    dataset = load(tmp_path)
    assert len(dataset.problems) == expected
    assert labels(load(tmp_path, good=["No burr"] * expected)) == {"JPEGImages/a": "good"}


def test_the_label_column_of_a_manifest_is_read_by_the_same_rules(tmp_path, write_picture):
    rows = ["image,label,supervision"]
    for name, label in (("a", "Undamaged"), ("b", "dent"), ("c", "no burr"), ("d", "no burr")):
        write_picture(tmp_path / f"{name}.png")
        rows.append(f"{name}.png,{label},")
    (tmp_path / "manifest.csv").write_text("\n".join(rows))
    dataset = load(tmp_path, layout="manifest")
    assert [problem.name for problem in dataset.problems] == ["c", "d"]
    assert dataset.notes == ("The label 'Undamaged' of 1 photograph was read as good.",)
    answered = load(tmp_path, good=["No burr"], layout="manifest")
    assert labels(answered) == {"a": "good", "b": "dent", "c": "good", "d": "good"}
    assert load(tmp_path, defect=["No burr"], layout="manifest").classes == ("good", "dent", "no burr")


def test_a_good_name_in_the_list_of_classes_keeps_the_values_of_the_others(tmp_path, write_picture):
    write_picture(tmp_path / "a.png")
    write_picture(tmp_path / "a_mask.png", mask=True, value=3)
    (tmp_path / "manifest.csv").write_text("image,label,class_mask\na.png,dent,a_mask.png\n")
    (tmp_path / "classes.txt").write_text("scratch\nundamaged\ndent\n")
    (item,) = load(tmp_path, layout="manifest").items
    assert item.mask_values == ((1, 1), (3, 2), (255, 255))
    for first, values in (("good", (1, 2)), ("undamaged", (2, 3))):  # only `good` is always the value 0
        (tmp_path / "classes.txt").write_text(f"{first}\nscratch\ndent\n")
        (item,) = load(tmp_path, layout="manifest").items
        assert item.mask_values == (*zip(values, (1, 2), strict=True), (255, 255))
