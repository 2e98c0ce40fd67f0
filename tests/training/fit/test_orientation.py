"""Photographs of a bar in one direction, and of bars in any direction."""

import cv2
import numpy as np
import pytest

from datasets.sample import Record
from tests.marks import slow_case
from training.config import ExperimentConfig

pytest.importorskip("tensorflow")

from training.fit.orientation import has_arbitrary_orientation

pytestmark = pytest.mark.usefixtures("tensorflow_devices")


def photograph(random, degrees, height):
    """A bright bar from the centre in a direction, on grey with noise; uint8 [height, 64]."""
    image = random.normal(120, 6, (64, 64)).clip(0, 255).astype(np.uint8)
    x, y = (round(32 + 28 * turn(np.radians(degrees))) for turn in (np.cos, np.sin))
    return cv2.line(image, (32, 32), (x, y), 220, 5)[:height]


@pytest.mark.parametrize(
    ("degrees", "height", "varies"),
    [
        ([0], 64, False),
        (range(0, 360, 15), 64, True),
        slow_case([90], 40, False),
        slow_case([90, 270], 64, False),
    ],
)
def test_orientation_varies_if_rotated_copies_are_nearer_than_the_others(
    degrees, height, varies, tiny_encoder, tiny_encoder_weights, tmp_path
):
    random = np.random.default_rng(1)
    directions = random.permutation(np.resize(degrees, 24))
    for number, direction in enumerate(directions):
        cv2.imwrite(str(tmp_path / f"{number}.png"), photograph(random, direction, height))
    records = [
        Record(str(number), tmp_path / f"{number}.png", None, 0, str(number), "train", fold=number % 3 + 1)
        for number in range(24)
    ]
    network = {"preset": "mobilenet", "encoder": tiny_encoder, "heads": 0, "memory": 50}
    config = ExperimentConfig(encoder_weights=str(tiny_encoder_weights), network=network)
    assert has_arbitrary_orientation(config, ("good", "defect"), records) == varies
