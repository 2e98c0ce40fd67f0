"""Masks whose values are class indices without names: every number is worked out by hand."""

import json

import numpy as np
import pytest
from PIL import Image

from datasets.annotations.combined_mask import CombinedMask
from datasets.check_cache import CheckCache
from datasets.checking import check_dataset
from datasets.conversion import convert
from datasets.loading import load_dataset
from datasets.mask_threshold import UnclearMaskError
from datasets.reading import read
from datasets.reading_options import ReadingOptions
from datasets.sample import VALUES_ARE_CLASSES
from datasets.sharding.packing import pack

VOC = bytes([0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0]) + bytes(251 * 3) + bytes([224, 224, 192])


def write_mask(path, row, *, palette=None):
    """Writes a mask of 20×12 px whose first row starts with these values."""
    values = np.zeros((12, 20), np.uint8)
    values[0, : len(row)] = row
    picture = Image.fromarray(values, "L" if palette is None else "P")
    if palette is not None:
        picture.putpalette(palette)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path)


@pytest.fixture
def write_set(tmp_path, write_picture):
    """Writes a photograph in `defect` for each mask, a good one, and the masks; returns the folder."""

    def write(masks, *, folder="defect", palette=None):
        write_picture(tmp_path / "good/good.png")
        for number, row in enumerate(masks):
            write_picture(tmp_path / f"{folder}/{folder}{number}.png")
            write_mask(tmp_path / f"masks/{folder}/{folder}{number}.png", row, palette=palette)
        return tmp_path

    return write


def load(layout, root, **options):
    """The checked data set."""
    reading = ReadingOptions(**options)
    return check_dataset(load_dataset(layout, root, reading=reading)).dataset


def read_rows(dataset):
    """First row of each mask of a defect: its class, 255 where it is ignored."""
    rows = []
    for item in dataset.items:
        sample = read(item)
        if sample.mask is None:
            continue
        classes = np.full(sample.mask.shape, sample.label) if sample.classes is None else sample.classes
        values = np.where(sample.mask > 0, classes, 0)
        if sample.ignored is not None:
            values[sample.ignored > 0] = 255
        assert not values[1:].any()
        rows.append(values[0].tolist())
    return [row[: max(np.flatnonzero(row), default=-1) + 1] for row in rows]


@pytest.mark.parametrize(
    ("masks", "palette", "rows"),
    [
        ([[1, 2, 3]], None, [[1, 1, 1]]),
        ([[1, 255]], None, [[1, 255]]),
        ([[1, 2], [2], [2, 255], [255, 1]], None, [[1, 1], [1], [1, 255], [255, 1]]),
        ([[1, 3], [3]], None, [[1, 1], [1]]),  # no mask shows class 2
        ([[1, 2, 255]], VOC, [[1, 1, 255]]),
        ([[2, 255, 255]], VOC, [[1, 255, 255]]),
    ],
)
def test_every_class_is_a_defect_and_255_is_ignored(write_set, masks, palette, rows):
    dataset = load("folder", write_set(masks, palette=palette))
    assert read_rows(dataset) == rows
    (note,) = dataset.notes
    assert "class indices" in note and ("255 is ignored" in note) == (255 in np.concatenate(masks))
    assert dataset.problems == ()


@pytest.mark.parametrize(
    ("masks", "rows"),
    [([[255]], [[1]]), ([[1]], [[1]]), ([[1], [255]], [[1], [1]]), ([[2], [1]], [[1], [1]])],
)
def test_masks_of_one_value_mark_defects(write_set, masks, rows):
    dataset = load("folder", write_set(masks))
    assert (read_rows(dataset), dataset.notes) == (rows, ())


@pytest.mark.parametrize(
    ("row", "threshold"),
    [
        (range(10, 251, 10), 125),
        ([1, 2, 253, 254, 255], 0),
        ([10, 255, 255], 127),
        ([1] + [255] * 30, 127),  # 1 is an error: as an index it would make all defects ignored
        ([1] * 200 + [10] * 40, 5),
    ],
)
def test_smooth_edges_are_not_classes(write_set, row, threshold):
    root = write_set([])
    write_set([[255]])
    values = np.zeros(240, np.uint8)
    values[: len(row)] = row
    Image.fromarray(values.reshape(12, 20)).save(root / "masks/defect/defect0.png")
    dataset = load("folder", root)
    (problem,) = dataset.problems
    assert f"give --mask-threshold {threshold}," in problem.text and dataset.notes == ()


def test_a_folder_without_indices_keeps_its_masks(write_set):
    write_set([[1, 255], [255, 2]], folder="scratch")
    root = write_set([[255]], folder="stain")
    dataset = load("folder", root)
    assert dataset.classes == ("good", "scratch", "stain")
    assert read_rows(dataset) == [[1, 255], [255, 1], [2]]


def test_a_mask_that_only_ignores_contradicts_a_class(write_set):
    dataset = load("folder", write_set([[1, 255], [255]]))
    (problem,) = dataset.problems
    assert problem.name == "defect/defect1" and "marks no defect" in problem.text


def test_several_masks_of_a_photograph_keep_their_classes(write_set):
    root = write_set([[1, 255, 0, 255], [1, 2]])
    write_mask(root / "masks/defect/defect0_2.png", [255, 0, 2, 2])
    dataset = load("folder", root)
    assert isinstance(dataset.items[0].mask_file, CombinedMask)
    assert read_rows(dataset) == [[1, 255, 1, 1], [1, 1]]


def test_boxes_leave_out_ignored_pixels(write_set):
    root = write_set([[1, 0, 0, 255, 255], [1, 2]])
    (root / "supervision.txt").write_text("box  defect/defect0\n")
    dataset = load("folder", root)
    assert [item.supervision for item in dataset.items] == ["box", "mask", "mask"]
    assert read_rows(dataset) == [[1, 0, 0, 255, 255], [1, 1]]


def test_small_values_beside_smooth_masks_need_no_threshold():
    values = np.array([[0, 1, 2, 3, 3, 3]], np.uint8)
    assert UnclearMaskError("a.png", values, [0, 1, 2, 3]).threshold == 0  # half would lose class 1


def test_conversion_and_shards_read_the_same(write_set, tmp_path):
    dataset = load_dataset("folder", write_set([[1, 2, 255], [2]]), merge_defects=True)
    checked = check_dataset(dataset).dataset
    convert(checked, tmp_path / "converted")
    again = load_dataset("manifest", tmp_path / "converted")
    assert read_rows(again) == [[1, 1, 255], [1]]
    assert json.loads((tmp_path / "converted/manifest.jsonl").read_text().splitlines()[0])["class_mask"]
    pack(checked, str(tmp_path / "packed"))
    packed = load_dataset("shards", tmp_path / "packed")
    assert {item.mask_values for item in packed.items if item.label} == {VALUES_ARE_CLASSES}
    assert sorted(read_rows(packed)) == [[1], [1, 1, 255]]


def test_names_give_each_index_its_class(write_set):
    write_set([[1, 2], [1]], folder="scratch")
    root = write_set([[2, 255]], folder="stain")
    (note,) = load("folder", root).notes
    assert "data.mask_values" in note
    named = ReadingOptions(mask_values={"scratch": 1, "stain": 2, "ignore": 255})
    dataset = load_dataset("folder", root, reading=named)
    assert (read_rows(dataset), dataset.notes) == ([[1, 2], [1], [2, 255]], ())


def test_without_classes_the_masks_become_a_folder_with_names(write_set):
    root = write_set([[1, 2], [1, 255]])
    (note,) = load("folder", root).notes
    assert "named as their photographs, to one folder SegmentationClass, beside a file class_names" in note
    (root / "masks/defect").rename(root / "masks/SegmentationClass")
    (root / "masks/class_names.txt").write_text("background\nscratch\nstain\n")
    dataset = load("folder", root)
    assert (dataset.classes, dataset.problems) == (("good", "scratch", "stain"), ())
    assert read_rows(dataset) == [[1, 2], [1, 255]]


def test_other_values_in_a_folder_of_indices_are_a_problem(write_set, monkeypatch):
    monkeypatch.setattr("datasets.class_indices.MAX_COMPARED", 2)
    dataset = load("folder", write_set([[1, 2], [200, 1], [1]]))  # reads the first and the third
    (problem,) = dataset.problems
    assert problem.name == "defect/defect1" and "has the values 200, but other masks" in problem.text


def test_a_given_threshold_or_inversion_counts(write_set):
    root = write_set([[1, 2, 3, 255]])
    cut = load("folder", root, mask_threshold=2)
    assert (read_rows(cut), cut.notes) == ([[0, 0, 1, 1]], ())
    assert load("folder", root, invert_masks=True).notes == ()


def test_in_a_manifest_the_masks_become_class_masks(write_set):
    root = write_set([[1, 2, 255]])
    row = "defect/defect0.png,{},masks/defect/defect0.png\ngood/good.png,good,\n"
    (root / "manifest.csv").write_text(f"image,label,mask\n{row.format('defect')}")
    (note,) = load("manifest", root).notes
    assert "in a manifest: to the column class_mask, with names in classes.txt" in note
    cut = load("manifest", root, mask_threshold=1)
    assert (read_rows(cut), cut.notes) == ([[0, 1, 1]], ())
    (root / "manifest.csv").write_text(f"image,label,class_mask\n{row.format('stain')}")
    (root / "classes.txt").write_text("scratch\nstain\n")
    dataset = load("manifest", root)
    assert (read_rows(dataset), dataset.problems) == ([[1, 2, 255]], ())


def test_a_second_start_reads_the_same_from_the_cache(write_set, tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.check_cache.MIN_FILE_AGE_S", -3600.0)
    root = write_set([[1, 2, 255], [2], [255, 1]])
    for _ in range(2):
        cache = CheckCache(tmp_path / "checked", str(root), "")
        checked = check_dataset(load_dataset("folder", root), known=cache)
        cache.save(parents=True)
        assert [one.defect_px for one in checked.photographs] == [2, 1, 1, 0]
        assert read_rows(checked.dataset) == [[1, 1, 255], [1], [255, 1]]
