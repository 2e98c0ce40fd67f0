"""Annotations that were drawn on photographs without their EXIF rotation."""

import json

import numpy as np
import pytest
from PIL import Image

from datasets.__main__ import main
from datasets.checking import check_dataset, describe_risks
from datasets.exif_rotation import Evidence, describe_rotation, find_evidence
from datasets.layouts.toy import make_sample
from datasets.loading import load_dataset
from datasets.reading import read
from datasets.reading_options import ReadingOptions
from datasets.sample import Dataset, DataSetItem, LazyItems, Sample
from segdec.errors import DatasetError
from segdec.images import write_png
from segdec.imaging.decoders import upright

BOX = 2, 4, 8, 7
"""Left, top, right and bottom of the defect in the stored picture, px."""

ROTATED = range(2, 9)
INVERSE = {**{orientation: orientation for orientation in range(1, 9)}, 6: 8, 8: 6}
UNDONE, KEPT = ReadingOptions(annotations_before_rotation=True), ReadingOptions()


def write_photograph(path, orientation, width=24, height=24):
    """A photograph of noise, as stored with this orientation."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(len(path.name) + orientation).integers(0, 256, (height, width), np.uint8)
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"tiffinfo": {0x0112: orientation}} if path.suffix == ".tif" else {"exif": exif}
    Image.fromarray(pixels).save(path, **options)


def stored_mask(width=24, height=24):
    mask = np.zeros((height, width), np.uint8)
    left, top, right, bottom = BOX
    mask[top:bottom, left:right] = 255
    return mask


# === One annotation of each tool ===


def mask_file(root, width, height):
    (root / "masks/dent").mkdir(parents=True)
    write_png(root / "masks/dent/a.png", stored_mask(width, height))


def labelme(root, width, height):
    points = [BOX[:2], BOX[2:]]
    content = {"imagePath": "a.png", "imageHeight": height, "imageWidth": width}
    content["shapes"] = [{"label": "dent", "shape_type": "rectangle", "points": points}]
    (root / "dent/a.json").write_text(json.dumps(content))


def labelme_without_size(root, _width, _height):
    labelme(root, None, None)


def coco(root, width, height):
    left, top, right, bottom = BOX
    content = {
        "images": [{"id": 1, "file_name": "a.png", "width": width, "height": height}],
        "categories": [{"id": 1, "name": "dent"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [left, top, right - left, bottom - top]}
        ],
    }
    (root / "annotations.json").write_text(json.dumps(content))


def yolo(root, width, height):
    left, top, right, bottom = BOX
    fractions = (left + right) / 2 / width, (top + bottom) / 2 / height
    sides = (right - left) / width, (bottom - top) / height
    (root / "dent/a.txt").write_text("0 " + " ".join(map(str, (*fractions, *sides))))
    (root / "classes.txt").write_text("dent\n")


def voc(root, width, height):
    sides = zip(("xmin", "ymin", "xmax", "ymax"), (BOX[0] + 1, BOX[1] + 1, *BOX[2:]), strict=True)
    box = "".join(f"<{side}>{value}</{side}>" for side, value in sides)
    (root / "dent/a.xml").write_text(
        f"<annotation><filename>a.png</filename><size><width>{width}</width><height>{height}</height></size>"
        f"<object><name>dent</name><bndbox>{box}</bndbox></object></annotation>"
    )


def cvat(root, width, height):
    sides = dict(zip(("xtl", "ytl", "xbr", "ybr"), BOX, strict=True))
    box = "".join(f' {side}="{value}"' for side, value in sides.items())
    (root / "annotations.xml").write_text(
        f'<annotations><image id="0" name="a.png" width="{width}" height="{height}">'
        f'<box label="dent"{box}/></image></annotations>'
    )


def label_studio(root, width, height):
    left, top, right, bottom = BOX
    value = {"x": 100 * left / width, "width": 100 * (right - left) / width, "rectanglelabels": ["dent"]}
    value |= {"y": 100 * top / height, "height": 100 * (bottom - top) / height, "rotation": 0}
    result = {"type": "rectanglelabels", "value": value, "original_width": width, "original_height": height}
    task = {"id": 1, "data": {"image": "a.png"}, "annotations": [{"id": 1, "result": [result]}]}
    (root / "tasks.json").write_text(json.dumps([task]))


def manifest(root, _width, _height):
    box = [BOX[0], BOX[1], BOX[2] - BOX[0], BOX[3] - BOX[1]]
    lines = [{"image": "dent/a.png", "label": "dent", "box": box}, {"image": "good/b.png", "label": "good"}]
    (root / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


TOOLS = [mask_file, labelme, labelme_without_size, coco, yolo, voc, cvat, label_studio, manifest]
WITHOUT_SIZE = [labelme_without_size, yolo, manifest]


def write_set(root, tool, orientation, width=24, height=24):
    """A defect that was drawn on the stored picture, and a good photograph."""
    write_photograph(root / "dent/a.png", orientation, width, height)
    write_photograph(root / "good/b.png", 1)
    tool(root, width, height)


def load(root, tool, reading):
    return load_dataset("manifest" if tool is manifest else "folder", root, reading=reading)


def mask_of(dataset):
    return read(next(item for item in dataset.items if item.label)).mask


@pytest.mark.parametrize(
    ("orientation", "code"),
    [(1, "mask_of_other_size"), (3, "mask_of_other_size"), (6, "mask_before_rotation")],
)
def test_cause_says_whether_the_rotation_may_explain_the_size_of_a_mask(tmp_path, orientation, code):
    stored = (24, 20) if orientation == 6 else (20, 24)
    write_photograph(tmp_path / "dent/a.png", orientation, *stored)
    write_photograph(tmp_path / "good/b.png", 1)
    mask_file(tmp_path, 24, 20)
    (problem,) = check_dataset(load(tmp_path, mask_file, KEPT)).dataset.problems
    assert problem.cause.code == code
    assert ("--annotations-before-rotation" in problem.text) == (code == "mask_before_rotation")


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("tool", TOOLS)
def test_annotations_of_square_photographs_are_rotated_with_them(tmp_path, tool, orientation):
    write_set(tmp_path, tool, orientation)
    np.testing.assert_array_equal(mask_of(load(tmp_path, tool, KEPT)), stored_mask())
    mask = mask_of(load(tmp_path, tool, UNDONE))
    np.testing.assert_array_equal(mask, upright(stored_mask(), orientation))


@pytest.mark.parametrize("orientation", ROTATED)
@pytest.mark.parametrize("tool", TOOLS)
def test_annotations_of_other_photographs_are_rotated_with_them(tmp_path, tool, orientation):
    write_set(tmp_path, tool, orientation, 30, 20)
    mask = mask_of(load(tmp_path, tool, UNDONE))
    np.testing.assert_array_equal(mask, upright(stored_mask(30, 20), orientation))


@pytest.mark.parametrize("suffix", [".jpg", ".tif"])
def test_photographs_of_each_type_are_known_to_be_rotated(tmp_path, suffix):
    write_photograph(tmp_path / f"dent/a{suffix}", 6, 30, 20)
    write_photograph(tmp_path / "good/b.png", 1)
    mask_file(tmp_path, 30, 20)
    mask = mask_of(load(tmp_path, mask_file, UNDONE))
    np.testing.assert_array_equal(mask, upright(stored_mask(30, 20), 6))


def test_an_annotation_with_the_size_of_the_rotated_photograph_is_not_rotated(tmp_path):
    write_set(tmp_path, mask_file, 6, 30, 20)
    write_png(tmp_path / "masks/dent/a.png", stored_mask(20, 30))
    np.testing.assert_array_equal(mask_of(load(tmp_path, mask_file, UNDONE)), stored_mask(20, 30))


def test_a_mask_with_an_orientation_of_its_own_is_not_rotated_twice(tmp_path):
    write_set(tmp_path, mask_file, 6)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(stored_mask()).save(tmp_path / "masks/dent/a.png", exif=exif)
    for reading in (KEPT, UNDONE):
        dataset = load(tmp_path, mask_file, reading)
        np.testing.assert_array_equal(mask_of(dataset), upright(stored_mask(), 6))
        assert describe_risks(check_dataset(dataset)) == []


def test_values_that_are_classes_are_rotated(tmp_path):
    write_set(tmp_path, mask_file, 8)
    Image.fromarray(stored_mask() // 85).save(tmp_path / "masks/dent/a.png")
    reading = ReadingOptions(annotations_before_rotation=True, mask_values={"dent": 3})
    np.testing.assert_array_equal(mask_of(load(tmp_path, mask_file, reading)), upright(stored_mask(), 8))


def test_inverted_masks_are_rotated(tmp_path):
    write_set(tmp_path, mask_file, 7)
    write_png(tmp_path / "masks/dent/a.png", 255 - stored_mask())
    reading = ReadingOptions(annotations_before_rotation=True, invert_masks=True)
    np.testing.assert_array_equal(mask_of(load(tmp_path, mask_file, reading)), upright(stored_mask(), 7))


def test_class_indices_are_rotated(tmp_path):
    write_set(tmp_path, mask_file, 6)
    indices = stored_mask() // 85
    indices[4, 2:4] = 1, 2
    Image.fromarray(indices).save(tmp_path / "masks/dent/a.png")
    dataset = check_dataset(load(tmp_path, mask_file, UNDONE)).dataset
    np.testing.assert_array_equal(mask_of(dataset), upright(stored_mask(), 6))


# === The warning ===


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("tool", TOOLS)
def test_what_an_annotation_does_not_show_is_stated(tmp_path, tool, orientation):
    write_set(tmp_path, tool, orientation)
    warnings = describe_risks(check_dataset(load(tmp_path, tool, KEPT)))
    assert len(warnings) == (orientation > 1)
    for warning in warnings:
        assert "drawn before it: 1 (" in warning and "a). The annotations were read as drawn on" in warning
        assert "If the annotation tool ignores the rotation, give --annotations-before-rotation" in warning
    for is_before in (True, False):
        decided = load(tmp_path, tool, ReadingOptions(annotations_before_rotation=is_before))
        assert describe_risks(check_dataset(decided)) == []


@pytest.mark.parametrize("tool", TOOLS)
def test_half_a_turn_does_not_change_a_size(tmp_path, tool):
    write_set(tmp_path, tool, 3, 30, 20)
    (warning,) = describe_risks(check_dataset(load(tmp_path, tool, KEPT)))
    assert "drawn before it: 1 (" in warning


@pytest.mark.parametrize("tool", TOOLS)
def test_a_size_before_the_rotation_is_a_problem_that_names_the_option(tmp_path, tool):
    write_set(tmp_path, tool, 6, 30, 20)
    checked = check_dataset(load(tmp_path, tool, KEPT))
    if tool in WITHOUT_SIZE:
        assert len(describe_risks(checked)) == 1
    else:
        assert describe_risks(checked) == []
        (problem,) = checked.dataset.problems
        assert "remove it, or give --annotations-before-rotation" in problem.text


def test_sizes_of_other_photographs_propose_the_option(tmp_path):
    write_set(tmp_path, mask_file, 6, 30, 20)
    write_photograph(tmp_path / "dent/square.png", 6)
    write_png(tmp_path / "masks/dent/square.png", stored_mask())
    (warning,) = describe_risks(check_dataset(load(tmp_path, mask_file, KEPT)))
    assert "1 (dent/square). " in warning and "have the size before it, 1 (dent/a): give" in warning


def test_a_class_mask_of_a_manifest_is_upright(tmp_path):
    """`python -m datasets convert` writes it, also with the option."""
    write_set(tmp_path / "own", mask_file, 6)
    options = ["--annotations-before-rotation", "folder", str(tmp_path / "own"), str(tmp_path / "converted")]
    main(["convert", *options])
    for reading in (KEPT, UNDONE):
        converted = load_dataset("manifest", tmp_path / "converted", reading=reading)
        assert describe_risks(check_dataset(converted)) == []
        np.testing.assert_array_equal(mask_of(converted), upright(stored_mask(), 6))


def test_reviewed_photographs_have_upright_masks(tmp_path):
    write_set(tmp_path / "own", mask_file, 1)
    write_set(tmp_path / "reviewed", manifest, 6)
    dataset = load_dataset("folder", tmp_path / "own", reviewed=[tmp_path / "reviewed"], reading=UNDONE)
    assert describe_risks(check_dataset(dataset)) == []


def test_masks_in_shards_cannot_be_rotated(tmp_path, monkeypatch):
    class Packed(LazyItems):
        __len__ = __getitem__ = of_split = labels = unlocalized = None
        shapes = identities = equal_files = None

    packed = Dataset(("good", "dent"), Packed())
    monkeypatch.setattr("datasets.loading.shards.index", lambda _root: packed)
    with pytest.raises(DatasetError, match="Give --annotations-before-rotation to python -m datasets pack"):
        load_dataset("shards", tmp_path, reading=UNDONE)
    undecided = ReadingOptions(annotations_before_rotation=False)
    assert load_dataset("shards", tmp_path, reading=undecided) is packed


# === The edges ===


@pytest.mark.parametrize(
    ("is_before", "words"), [(True, "of 8 annotations fit"), (False, "If the annotation")]
)
@pytest.mark.parametrize("surface", ["wood", "brushed"])
def test_edges_propose_the_option(surface, is_before, words):
    samples = (make_sample(number, size=64, surface=surface) for number in range(100))
    item, evidence = DataSetItem("a", None, None, 1, "a"), {}
    defects = (sample for sample in samples if sample.label)
    for orientation, sample in zip((*ROTATED, 6), defects, strict=False):
        mask = upright(sample.mask, INVERSE[orientation]) if is_before else sample.mask
        rotated = Sample(sample.name, sample.image, mask, 1, orientation=orientation)
        evidence[sample.name] = find_evidence(item, rotated)
    (warning,) = describe_rotation(evidence, [])
    assert words in warning


@pytest.mark.parametrize(
    ("before", "after", "proposed"),
    [(4, 0, False), (5, 0, True), (7, 1, True), (7, 2, False), (15, 5, True), (14, 6, False), (0, 9, False)],
)
def test_few_or_unclear_edges_propose_nothing(before, after, proposed):
    votes = [Evidence.EDGES_BEFORE] * before + [Evidence.EDGES_AFTER] * after + [Evidence.NONE] * 3
    evidence = dict(zip("abcdefghijklmnopqrstuvwxyz", votes, strict=False))
    (warning,) = describe_rotation(evidence, [])
    assert ("But the edges of" in warning) == proposed
    (sized,) = describe_rotation({**evidence, "sized": Evidence.SIZE}, ["other"])
    assert "But" not in sized
