"""Copies of data sets with rotated photographs."""

import cv2
import numpy as np

from benchmarks.rotated_parts import copy_rotated, rotate
from benchmarks.suite.sets import load_set
from datasets.reading import read
from segdec.images import write_png


def test_an_image_is_rotated_about_its_centre_to_a_square():
    image = np.zeros((5, 9, 1), np.uint8)
    image[2, 8] = 255  # at the right, in the middle
    rotated = rotate(image, 90, cv2.INTER_NEAREST)
    assert rotated.shape == (9, 9)
    rows, columns = np.nonzero(rotated)
    assert rows.max() <= 1 and set(columns) == {4}  # at the top, in the middle; the border is repeated


def test_a_copy_has_the_splits_and_rotated_masks_of_the_data_set(tmp_path):
    source = tmp_path / "parts"
    (source / "masks" / "defect").mkdir(parents=True)
    for kind in ("good", "defect"):
        (source / kind).mkdir()
        for number in range(4):
            image = np.full((32, 48, 3), 100 + number, np.uint8)
            image[10:16, 4:12] = 255 if kind == "defect" else 50
            write_png(source / kind / f"{number}.png", image)
            if kind == "defect":
                mask = np.zeros((32, 48), np.uint8)
                mask[10:16, 4:12] = 255
                write_png(source / "masks" / kind / f"{number}.png", mask)
    splits = {
        f"{kind}/{number}": ("train", "test")[number % 2]
        for kind in ("good", "defect")
        for number in range(4)
    }
    (source / "splits.txt").write_text("".join(f"{split} {name}\n" for name, split in splits.items()))
    copy_rotated(load_set(source), tmp_path / "rotated" / "parts", seed=0)
    copy = load_set(tmp_path / "rotated" / "parts")
    assert sorted((item.split, item.label) for item in copy.dataset.items) == sorted(
        (split, int(name.startswith("defect"))) for name, split in splits.items()
    )
    samples = [read(item) for item in copy.dataset.items if item.label]
    for sample in samples:
        assert sample.image.shape == (48, 48, 3)
        assert np.median(sample.image[sample.mask > 0]) == 255
    assert len({sample.mask.tobytes() for sample in samples}) == 4
