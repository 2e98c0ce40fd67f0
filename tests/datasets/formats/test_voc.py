import numpy as np
import pytest
from PIL import Image

from datasets.causes import Cause
from datasets.layouts import folder
from datasets.reading import read
from tests.datasets.formats.reading import read_format
from tests.datasets.layouts.contents import block, check_problems, described, marked

BOX = "<bndbox><xmin>3</xmin><ymin>2</ymin><xmax>6</xmax><ymax>4</ymax></bndbox>"
"""Pixels 3 to 6 and 2 to 4, counted from 1."""
BOX_PIXELS = block(range(1, 4), range(2, 6))
SIZE = "<size><width>20</width><height>12</height><depth>3</depth></size>"


def xml(*objects, filename="a.png", size=SIZE):
    listed = "".join(f"<object>{each}</object>" for each in objects)
    return f"<annotation><filename>{filename}</filename>{size}{listed}</annotation>"


def named(shape, name="scratch"):
    return f"<name>{name}</name>{shape}<difficult>1</difficult>"


@pytest.fixture
def tree(tmp_path, write_picture):
    """Writes photographs of 20×12 px, which have no content, and other files by path."""

    def make(files):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                write_picture(path)
            elif isinstance(content, Image.Image):
                content.save(path)
            else:
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_format(tmp_path, "voc").dataset()

    return make


@pytest.mark.parametrize(
    "photograph, file, content",
    [
        ("JPEGImages/a.png", "Annotations/a.xml", xml(named(BOX))),
        ("train/a.png", "train/a.xml", xml(named(BOX), filename="C:\\pictures\\a")),
        (
            "a.png",
            "other/a.xml",
            xml(named(BOX), filename="renamed.png", size="<size><width>0</width></size>"),
        ),
        ("a.png", "a.xml", f"<?xml version='1.0' encoding='gbk'?>{xml(named(BOX))}"),
    ],
    ids=["VOC", "Roboflow", "renamed", "encoding"],
)
def test_boxes_count_pixels_from_1(tree, photograph, file, content):
    dataset = tree({photograph: None, file: content, "b.png": None, "b.xml": xml(filename="b.png")})
    first, second = sorted(dataset.items, key=lambda item: item.name[-1])
    assert (dataset.classes, dataset.problems, dataset.dropped) == (("good", "scratch"), (), ())
    assert (first.supervision, first.label, second.label, second.mask_file) == ("box", 1, 0, None)
    assert marked(first) == BOX_PIXELS


def test_polygons_replace_boxes(tree):
    flat = (
        "<polygon><x1>2</x1><y1>1</y1><x2>6</x2><y2>1</y2><x3>6</x3><y3>4</y3><x4>2</x4><y4>4</y4></polygon>"
    )
    points = "".join(f"<pt><x>{x}</x><y>{y}</y></pt>" for x, y in ((2, 1), (6, 1), (6, 4), (2, 4)))
    turned = "<robndbox><cx>4</cx><cy>2.5</cy><w>3</w><h>4</h><angle>1.5707963267948966</angle></robndbox>"
    shapes = {"a": flat + BOX, "b": f"<polygon>{points}</polygon>", "c": turned}
    files = {f"{name}.xml": xml(named(shape), filename=f"{name}.png") for name, shape in shapes.items()}
    dataset = tree({**files, **dict.fromkeys(("a.png", "b.png", "c.png"))})
    assert [item.supervision for item in dataset.items] == ["mask", "mask", "box"]
    assert [marked(item) for item in dataset.items] == [BOX_PIXELS] * 3


def test_bad_objects_and_files_are_reported(tree):
    bad = {
        BOX: "label",  # without a name
        named(""): "no bndbox",
        named(BOX.replace(">6<", ">1<")): "empty",
        named(BOX.replace("<ymax>4</ymax>", "")): "has no ymax",
        named(BOX.replace(">4<", ">?<")): "'?' is not a number",
    }
    entity = "<!DOCTYPE a [<!ENTITY e 'x'>]>"
    dataset = tree(
        {
            **dict.fromkeys(("a.png", "b.png", "c.png", "d.png", "e.png")),
            "a.xml": xml(*bad, named(BOX)),
            "b.xml": entity + xml(named(BOX), filename="b.png"),
            "c.xml": xml(named(BOX), filename="d.png"),
            "e.xml": xml(named(BOX), filename="e.png")[:60],
        }
    )
    assert described(dataset) == [("a", "scratch", "box", True)]
    for number, (found, words) in enumerate(zip(dataset.dropped, bad.values(), strict=True), start=1):
        assert found.place.endswith(f"a.xml, object {number}")
        assert words in found.text
    expected = [
        ("b.xml", "b", "document type"),
        ("c.xml", "c", "by its filename"),
        ("e.xml", "e", "invalid XML"),
    ]
    check_problems(dataset, expected)


def test_lists_state_the_split(tree):
    names = ("a.1", "b", "c")
    photographs = dict.fromkeys(f"JPEGImages/{name}.png" for name in names)
    files = {f"Annotations/{name}.xml": xml(filename=name) for name in names}
    lists = {"train": "a.1 1\n\n", "val": "b\nmissing\n", "trainval": "c\n"}
    dataset = tree({**photographs, **files, **{f"ImageSets/Main/{k}.txt": v for k, v in lists.items()}})
    assert [item.split for item in dataset.items] == ["train", "val", None]


def palette_mask(values):
    picture = Image.fromarray(values)
    palette = np.zeros((256, 3), np.uint8)
    palette[1], palette[2], palette[255] = (128, 0, 0), (0, 128, 0), (224, 224, 192)
    picture.putpalette(palette.tobytes())
    return picture


def values_of_mask():
    values = np.zeros((12, 20), np.uint8)
    values[1:4, 2:6], values[8, 8:10], values[0, 10:20] = 2, 1, 255
    return values


def coloured(values):
    colours = np.zeros((256, 3), np.uint8)
    colours[1], colours[2], colours[255] = (250, 50, 83), (0, 128, 0), (224, 224, 192)
    return Image.fromarray(colours[values])


LABEL_MAP = "# label:color_rgb:parts:actions\nstain:0,128,0::\nbackground:0,0,0::\ndent:250,50,83::\n"
NAMES = "_background_\ndent\nstain\n"


@pytest.mark.parametrize(
    "save, file, classes",
    [
        (palette_mask, {"class_names.txt": NAMES}, ("dent", "stain")),
        (palette_mask, {"labels.txt": f"__ignore__\n{NAMES}"}, ("dent", "stain")),
        (Image.fromarray, {"class_names.txt": "dent\nstain\n"}, ("dent", "stain")),
        (coloured, {"labelmap.txt": LABEL_MAP}, ("dent", "stain")),
        (palette_mask, {}, ("class_1", "class_2")),
    ],
    ids=["LabelMe", "labels", "grey", "CVAT", "unnamed"],
)
def test_masks_hold_classes_and_ignored_pixels(tree, tmp_path, save, file, classes):
    values = values_of_mask()
    only_ignored = np.where(values == 255, np.uint8(255), np.uint8(0))
    dataset = tree(
        {
            **dict.fromkeys(("JPEGImages/a.png", "JPEGImages/b.png")),
            "SegmentationClass/a.png": save(values),
            "SegmentationClass/b.png": save(only_ignored),
            "SegmentationObject/a.png": save(values),
            "SegmentationClassVisualization/a.jpg": coloured(values),
            "Annotations/a.xml": xml(named(BOX)),
            **file,
        }
    )
    first, second = dataset.items
    assert (dataset.classes, dataset.problems) == (("good", *classes), ())
    assert (first.label, first.supervision, second.label) == (2, "mask", 0)
    for item, numbers in ((first, np.where(values == 255, 0, values)), (second, 0 * values)):
        sample = read(item)
        found = 0 * values if sample.classes is None else np.where(sample.mask > 0, sample.classes, 0)
        np.testing.assert_array_equal(found, numbers)
        np.testing.assert_array_equal(sample.ignored, only_ignored)
    assert bool(dataset.notes) == (not file)
    mixed = folder.index(tmp_path)
    assert [(item.name, item.label) for item in mixed.items] == [(first.name, 2), (second.name, 0)]
    assert (mixed.classes, mixed.problems) == (dataset.classes, ())


def test_mask_with_several_pictures_is_reported(tree, tmp_path):
    (tmp_path / "SegmentationClass").mkdir()
    first, second = palette_mask(values_of_mask()), palette_mask(0 * values_of_mask())
    first.save(tmp_path / "SegmentationClass/a.png", save_all=True, append_images=[second])
    dataset = tree({"JPEGImages/a.png": None, "class_names.txt": NAMES})
    (warning,) = dataset.dropped
    assert (warning.name, warning.cause) == ("JPEGImages/a", Cause("several_pictures"))
    assert warning.text.startswith("The mask has several pictures; the first one is used.")
    assert np.count_nonzero(read(dataset.items[0]).mask) == np.count_nonzero(values_of_mask() % 255)


@pytest.mark.parametrize(
    "save, file, words",
    [
        (palette_mask, {"class_names.txt": "_background_\ndent\n"}, "the value 2"),
        (coloured, {"labelmap.txt": LABEL_MAP.replace("50", "51")}, r"the colour (250, 50, 83)"),
        (coloured, {"labelmap.txt": "dent:red::\n"}, "'red' is not a colour"),
    ],
)
def test_values_without_a_class_are_reported(tree, save, file, words):
    files = {"JPEGImages/a.png": None, "SegmentationClass/a.png": save(values_of_mask())}
    (found,) = tree({**files, **file}).problems
    assert found.name == "JPEGImages/a" and words in found.text
