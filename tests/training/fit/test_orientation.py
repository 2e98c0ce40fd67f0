"""Photographs of a bar in one direction, of bars in any direction, and without a bar."""

import cv2
import numpy as np
import pytest

from datasets.sample import DataSetItem
from tests.marks import slow_case
from training.config import ExperimentConfig
from training.fit.dataset_profile import Orientation

pytest.importorskip("tensorflow")

from training.fit.orientation import detect_orientation
from training.optimization.pretrained import load_each_once


@pytest.fixture(scope="module")
def load_weights():
    return load_each_once()


def photograph(random, degrees, height):
    """A bright bar from the centre in a direction, if given, on grey with noise; uint8 [height, 64]."""
    image = random.normal(120, 20 if degrees is None else 6, (64, 64)).clip(0, 255).astype(np.uint8)
    if degrees is None:
        return image[:height]
    x, y = (round(32 + 28 * turn(np.radians(degrees))) for turn in (np.cos, np.sin))
    return cv2.line(image, (32, 32), (x, y), 220, 9)[:height]


@pytest.mark.parametrize(
    ("degrees", "height", "orientation"),
    [
        slow_case([0], 64, Orientation.FIXED),
        (range(0, 360, 15), 64, Orientation.ARBITRARY),
        slow_case([None], 64, Orientation.ISOTROPIC),
        slow_case([90], 40, Orientation.FIXED),
    ],
)
def test_orientation_follows_from_distances_to_rotated_copies(
    degrees, height, orientation, tiny_mobilenet, load_weights, tmp_path
):
    random = np.random.default_rng(1)
    directions = random.permutation(np.resize(degrees, 24))
    for number, direction in enumerate(directions):
        cv2.imwrite(str(tmp_path / f"{number}.png"), photograph(random, direction, height))
    items = [
        DataSetItem(
            str(number), tmp_path / f"{number}.png", None, 0, str(number), "train", fold=number % 3 + 1
        )
        for number in range(24)
    ]
    encoder, weights = tiny_mobilenet
    network = {"preset": "mobilenet", "encoder": encoder, "heads": 0, "memory": 50}
    config = ExperimentConfig(encoder_weights=str(weights), network=network)
    assert detect_orientation(config, ("good", "defect"), items, load_weights) is orientation
