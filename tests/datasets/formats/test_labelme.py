import base64
import json

import cv2
import numpy as np
import pytest

from datasets.layouts.folder import index
from datasets.loading import load_dataset
from datasets.reading import read
from datasets.reading_options import ReadingOptions
from segdec.inference.postprocessing import find_regions
from tests.datasets.layouts.contents import block, check_dropped, check_problems, described, marked

SIZE = {"imageHeight": 12, "imageWidth": 20}  # of `write_picture`


@pytest.fixture
def annotate(tmp_path, write_picture):
    """Writes a photograph and, beside it, the file that LabelMe 5 saves."""

    def write(name, *shapes, suffix=".png", flags=None, **changes):
        photograph = write_picture(tmp_path / f"{name}{suffix}")
        content = {
            "version": "5.4.1",
            "flags": flags or {},
            "shapes": list(shapes),
            "imagePath": photograph.name,
            "imageData": "aGVsbG8=",
            **SIZE,
            **changes,
        }
        photograph.with_suffix(".json").write_text(json.dumps(content))
        return photograph

    return write


def shape(label, kind, *points, **more):
    listed = [list(point) for point in points]
    return {"label": label, "points": listed, "group_id": None, "shape_type": kind, "mask": None, **more}


def encoded(pixels):
    return base64.b64encode(bytes(cv2.imencode(".png", np.array(pixels, np.uint8))[1])).decode()


def only(root):
    dataset = index(root)
    assert dataset.problems == ()
    (item,) = (item for item in dataset.items if item.label)
    return item


def test_polygons_of_an_answer_give_back_its_mask(annotate, tmp_path):
    mask = np.zeros((12, 20), np.uint8)
    mask[3, 4] = mask[0, 7:] = mask[:, 19] = 255  # a pixel, and lines along the border
    mask[range(5, 12), range(2, 9)] = mask[8:11, 12:15] = 255  # a diagonal, a square
    regions = find_regions(mask, mask / np.float32(255))
    annotate("a", *(shape("dent", "polygon", *region.polygon) for region in regions))
    np.testing.assert_array_equal(read(only(tmp_path)).mask, mask)


@pytest.mark.parametrize(
    ("drawn", "pixels", "supervision"),
    [
        (shape("dent", "polygon", (2, 1), (5, 1), (5, 3), (2, 3)), block((1, 2), (2, 3, 4)), "mask"),
        (shape("dent", "rectangle", (5, 3), (2, 1)), block((1, 2), (2, 3, 4)), "box"),
        (shape("dent", "rectangle", (2, 1), (5, 1), (5, 3), (2, 3)), block((1, 2), (2, 3, 4)), "box"),
        # centres within 1.5 of (4, 4) are at ±0.5 of it in both directions, none at (±0.5, ±1.5)
        (shape("dent", "circle", (4, 4), (4, 5.5)), block((3, 4), (3, 4)), "mask"),
        (shape("dent", "mask", (3, 2), (5, 3), mask=encoded([[1, 0, 1]] * 2)), block((2, 3), (3, 5)), "mask"),
    ],
)
def test_shapes_by_hand(annotate, tmp_path, drawn, pixels, supervision):
    annotate("a", drawn)
    item = only(tmp_path)
    assert marked(item) == pixels
    assert item.supervision == supervision


@pytest.mark.parametrize(
    ("kind", "ends", "columns"),
    [
        ("line", [(6, 6), (14, 6)], range(1, 19)),  # half of the width beyond its ends
        ("linestrip", [(6, 6), (14, 6)], range(1, 19)),
        ("point", [(10, 6)], range(5, 15)),
    ],
)
def test_lines_and_points_are_ten_pixels_wide(annotate, tmp_path, kind, ends, columns):
    annotate("a", shape("scratch", kind, *ends))
    mask = read(only(tmp_path)).mask
    assert np.flatnonzero(mask[:, 10]).tolist() == list(range(1, 11))
    assert np.flatnonzero(mask[5]).tolist() == list(columns)


def test_tree_of_photographs(annotate, tmp_path, write_picture):
    polygon = shape("scratch", "polygon", (0, 0), (4, 0), (4, 4), (0, 4))
    annotate("a", shape("dent", "rectangle", (8, 8), (9, 9)), polygon)
    annotate("b", suffix=".JPG")
    write_picture(tmp_path / "line-2/day.1/c.png")
    annotate("line-2/d", polygon | {"label": "OK"}, polygon | {"label": "_background_"})
    annotate("e", flags={"stain": True, "dent": False, "__ignore__": True})
    annotate("f", flags={"Good": True})
    (tmp_path / "settings.json").write_text('{"colour": "red"}')
    dataset = index(tmp_path)
    assert dataset.problems == ()
    assert dataset.classes == ("good", "dent", "scratch", "stain")
    assert described(dataset) == [
        ("a", "scratch", "box", True),  # the scratch is larger than the dent; one of them is a rectangle
        ("b", "good", "mask", False),
        ("e", "stain", "label", False),
        ("f", "good", "mask", False),
        ("line-2/d", "good", "mask", False),
        ("line-2/day.1/c", "good", "mask", False),
    ]
    assert np.count_nonzero(read(dataset.items[0]).mask) == 16 + 1
    assert {item.split for item in dataset.items} <= {"train", "val", "test"}


def test_file_in_another_folder_names_its_photograph(annotate, tmp_path):
    annotate("images/a", shape("dent", "rectangle", (0, 0), (1, 1)), imagePath="..\\images\\a.png")
    (tmp_path / "json").mkdir()
    (tmp_path / "images/a.json").rename(tmp_path / "json/x.json")
    assert only(tmp_path).name == "images/a"


def test_links_that_lead_back_are_followed_once(annotate, tmp_path):
    annotate("line/a", shape("dent", "rectangle", (0, 0), (1, 1)))
    (tmp_path / "line/back").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "again").symlink_to(tmp_path / "line", target_is_directory=True)
    assert [item.name for item in index(tmp_path).items] == ["line/a"]


def test_a_file_without_its_photograph_leaves_those_of_its_stem_out(annotate, tmp_path, write_picture):
    """As with photographs and files in folders of their own: none of them may count as good."""
    for name in ("images/a", "more/a", "images/b"):
        write_picture(tmp_path / f"{name}.png")
    annotate("labels/a", shape("dent", "rectangle", (0, 0), (1, 1))).unlink()
    (tmp_path / "labels/b.json").write_text("{")
    annotate("c")
    dataset = index(tmp_path)
    assert [item.name for item in dataset.items] == ["c"]
    assert {problem.name for problem in dataset.problems} == {"images/a", "more/a", "images/b"}


def test_all_problems_are_reported_at_once(annotate, tmp_path, write_picture):
    box = shape("dent", "rectangle", (0, 0), (1, 1))
    broken = {
        "base64": (shape("dent", "mask", (0, 0), (1, 1), mask="§"), "not base64"),
        "kind": (shape("dent", "cuboid", (0, 0), (1, 1)), "The shape type 'cuboid' is unknown"),
        "label": (box | {"label": None}, "The label None is not a string"),
        "number": (shape("dent", "polygon", (0, 0), (1, "x"), (3, 3)), "'x' is not a number"),
        "outside": (shape("dent", "polygon", (30, 1), (35, 1), (35, 3)), "outside the picture of 20×12"),
        "picture": (shape("dent", "mask", (0, 0), (1, 1), mask="aGVsbG8="), "mask of the shape is not a pic"),
        "points": (box | {"points": 3}, "not a list of points"),
        "span": (shape("dent", "mask", (0, 0), (1, 1), mask=encoded([[1, 1, 1]])), "its points span 2×2"),
        "text": (7, "not a JSON object"),
        "three": (shape("dent", "rectangle", (0, 0), (1, 1), (2, 1)), "has 3 points; expected 2 or 4"),
    }
    for name, (drawn, _) in broken.items():
        annotate(name, drawn)
    annotate("size", box, imageHeight=None)
    annotate("good")
    annotate("fine", box)
    annotate("gone", box).unlink()
    annotate("other", box, imagePath="good.png")
    for name, text in (("cut", '{\n"shapes": ['), ("deep", "[" * 10**5), ("list", "[]")):
        write_picture(tmp_path / f"{name}.png")
        (tmp_path / f"{name}.json").write_bytes(text.encode("latin-1"))
    annotate("second", box)
    write_picture(tmp_path / "second.jpg")
    dataset = index(tmp_path)
    assert [item.name for item in dataset.items] == ["fine", "good"]
    expected = [(f"{name}.json, shape 1", name, words) for name, (_, words) in broken.items()]
    expected += [
        ("cut.json", "cut", "cut.json is not JSON: Expecting value: line 2 column 12"),
        ("deep.json", "deep", "deep.json is not JSON"),
        ("gone.json", "", "The photograph 'gone.png' is missing"),
        ("list.json", "list", "the format of the file is unknown"),
        ("other.json", "other", "The file belongs to"),
        ("size.json", "size", "The size 20×None"),
    ]
    expected.sort()
    expected += [("", "second", "Two photographs have the name 'second'")]
    check_problems(dataset, expected)


def test_more_classes_than_a_mask_numbers_are_a_problem(annotate, tmp_path):
    annotate("a", *(shape(f"dent {number}", "rectangle", (0, 0), (1, 1)) for number in range(255)))
    annotate("b")
    dataset = index(tmp_path)
    assert described(dataset) == [("b", "good", "mask", False)]
    check_problems(dataset, [("a.json", "a", "255 classes of defects, and a mask numbers at most 254")])


def test_accidental_click_beside_a_shape_is_dropped_unless_strict(annotate, tmp_path):
    box = shape("dent", "rectangle", (0, 0), (1, 1))
    annotate("a", box, shape("dent", "rectangle", (3, 3), (3, 3)), shape("dent", "polygon", (1, 1), (2, 2)))
    annotate("b")
    dataset = index(tmp_path)
    assert described(dataset) == [("a", "dent", "box", True), ("b", "good", "mask", False)]
    dropped = [("shape 2", "a", "the box of 0×0 pixels"), ("shape 3", "a", "a polygon of 2 different points")]
    check_dropped(dataset, dropped)
    strict = load_dataset("labelme", tmp_path, reading=ReadingOptions(strict=True))
    check_problems(strict, dropped)
    assert [item.name for item in strict.items] == ["b"]


@pytest.mark.parametrize(("encoding", "label"), [("gb2312", "划痕"), ("cp932", "キズ"), ("cp1252", "Öl")])
def test_file_of_another_encoding_is_read_and_reported(annotate, tmp_path, encoding, label):
    path = annotate("a", shape(label, "rectangle", (0, 0), (1, 1))).with_suffix(".json")
    content = json.dumps(json.loads(path.read_text()), ensure_ascii=False)
    path.write_bytes(content.encode(encoding))
    dataset = index(tmp_path)
    assert dataset.classes == ("good", label)
    assert any(f"a.json is not UTF-8; it was read as {encoding}" in note for note in dataset.notes)


@pytest.mark.parametrize("kind", ["rotation", "quadrilateral"])
def test_four_corners_of_x_anylabeling(annotate, tmp_path, kind):
    annotate("a", shape("dent", kind, (2, 1), (5, 1), (5, 3), (2, 3), direction=0.0))
    assert marked(only(tmp_path)) == block((1, 2), (2, 3, 4))
