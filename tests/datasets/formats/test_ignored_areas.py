"""Pixels of unknown class, from the annotation to the targets: every number is worked out by hand."""

import json
from dataclasses import replace

import numpy as np
import pytest

from datasets.annotations.boxed_mask import BoxedMask
from datasets.layouts import shards
from datasets.loading import load_dataset
from datasets.reading import read
from datasets.reading_options import ReadingOptions
from datasets.sample import VALUES_ARE_CLASSES
from datasets.sharding.packing import pack
from datasets.supervision import merged_defects
from segdec.config import InputConfig
from segdec.images import write_png
from tests.datasets.formats.reading import read_format
from tests.datasets.layouts.contents import block
from training.config import AugmentationConfig, TargetConfig
from training.data.array_cache import ArrayCache
from training.data.augmentation import AugmentationParameters, transform_geometry
from training.data.example_source import PhotographSource, TileSource
from training.data.targets import build_targets, known_area

SCRATCH, IGNORED = block([4], range(8, 16)), block(range(8), range(32, 44))


def pixels(mask):
    return [tuple(pixel) for pixel in np.argwhere(mask).tolist()]


@pytest.fixture
def annotated(tmp_path, write_picture):
    """Photographs of 48×16 px: a scratch and an ignored area, an ignored area alone, a lost scratch."""

    def shape(label, *points):
        return {"label": label, "shape_type": "polygon", "points": points}

    ignored = shape("__ignore__", [32, 0], [44, 0], [44, 8], [32, 8])
    scratch, lost = shape("scratch", [8, 4], [16, 4], [16, 5], [8, 5]), shape("scratch", [1, 1])
    for name, shapes in (("a", [scratch, ignored]), ("b", [ignored]), ("c", [lost, ignored])):
        write_picture(tmp_path / f"{name}.png", size=(48, 16))
        content = {"imageHeight": 16, "imageWidth": 48, "imagePath": f"{name}.png", "shapes": shapes}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return read_format(tmp_path, "labelme").dataset()


def test_an_ignored_area_is_neither_good_nor_a_defect(annotated, tmp_path):
    assert [(item.name, item.label) for item in annotated.items] == [("a", 1), ("b", 0)]
    assert [problem.name for problem in annotated.problems] == ["c"]  # not good for its lost scratch
    items = tuple(item.with_split("train") for item in annotated.items)
    pack(replace(annotated, problems=(), items=items), str(tmp_path / "packed"))
    packed = shards.index(str(tmp_path / "packed"))
    assert packed.items[0].mask_values == VALUES_ARE_CLASSES
    for dataset in (annotated, packed, merged_defects(annotated), merged_defects(packed)):
        first, second = map(read, dataset.items)
        assert (pixels(first.mask), pixels(first.ignored)) == (SCRATCH, IGNORED)
        assert (pixels(second.mask), pixels(second.ignored)) == ([], IGNORED)
    first = annotated.items[0]
    boxed = read(replace(first, mask_file=BoxedMask(first.mask_file, None), supervision="box"))
    assert (pixels(boxed.mask), pixels(boxed.ignored)) == (SCRATCH, IGNORED)


@pytest.mark.parametrize("inverted", [False, True])
def test_mask_files_may_mark_ignored_pixels(tmp_path, write_picture, inverted):
    for name in ("scratch/a", "good/b", "ignore/c"):
        write_picture(tmp_path / f"{name}.png", size=(48, 16))
    for name, marked in (("scratch/a", SCRATCH), ("ignore/a", IGNORED), ("ignore/b", IGNORED)):
        mask = np.full((16, 48), 255 * inverted, np.uint8)
        mask[tuple(np.transpose(marked))] = 255 * (not inverted)
        (tmp_path / "masks" / name).parent.mkdir(parents=True, exist_ok=True)
        write_png(tmp_path / "masks" / f"{name}.png", mask)
    dataset = load_dataset("folder", tmp_path, reading=ReadingOptions(invert_masks=inverted))
    assert (dataset.classes, dataset.problems) == (("good", "scratch"), ())
    good, scratched = dataset.items
    assert (good.name, good.label, scratched.label) == ("good/b", 0, 1)
    assert (pixels(read(scratched).mask), pixels(read(scratched).ignored)) == (SCRATCH, IGNORED)
    assert (pixels(read(good).mask), pixels(read(good).ignored)) == ([], IGNORED)


def test_a_value_of_mask_files_may_mark_ignored_pixels(folder_root):
    values = np.zeros((12, 20), np.uint8)
    values[0, 1], values[0, 2] = 10, 200
    write_png(folder_root / "masks/dent/c.png", values)
    dataset = load_dataset(
        "folder", folder_root, reading=ReadingOptions(mask_values={"dent": 10, "ignore": 200})
    )
    dent = read(dataset.items[0])
    assert (pixels(dent.mask), pixels(dent.ignored)) == ([(0, 1)], [(0, 2)])


def targets_of(example):
    area = known_area(example.area, example.ignored)
    settings = TargetConfig(dilation_px=1), 8
    found = build_targets(example.mask, example.image.shape[:2], *settings, area=area)
    return found.share[..., 0].tolist(), found.weight[..., 0].tolist()


def test_an_ignored_area_has_no_weight(annotated):
    weight = [[1, 1, 1, 1, 0, 0.5], [1] * 6]
    for cache_mb in (0, 1):
        source = PhotographSource(annotated.items, read, InputConfig(), 1, ArrayCache(cache_mb))
        assert targets_of(source[0]) == ([[0, 8 / 64, 0, 0, 0, 0], [0] * 6], weight)
        assert targets_of(source[1]) == ([[0] * 6] * 2, weight)
    half = InputConfig(policy="resize", height=8, width=24)
    source = PhotographSource(annotated.items, read, half, 1, ArrayCache(0))
    assert targets_of(source[0]) == ([[4 / 64, 0, 0]], [[1, 1, 40 / 64]])
    tiles = InputConfig(policy="tile", height=8, width=8)
    source = TileSource(PhotographSource(annotated.items, read, tiles, 1, ArrayCache(0)), tiles, 0)
    assert len(source) == 2 * (12 - 1)  # the ninth part of each photograph is ignored entirely
    assert targets_of(source[4]) == ([[0]], [[0.5]])


def test_an_ignored_area_moves_with_the_photograph():
    ignored = np.zeros((16, 48), np.uint8)
    ignored[:8, 32:44] = 255
    still = AugmentationConfig(rotate=False, flip_horizontal=False, scale=0, shift=0.25)
    drawn = AugmentationParameters(*[0.5] * 10)._replace(flip_vertical=0, shift_right=1)  # by 12 px
    moved = transform_geometry(ignored[..., None], None, drawn, still, ignored=ignored)[-1]
    assert pixels(moved) == block(range(8, 16), range(44, 48))
