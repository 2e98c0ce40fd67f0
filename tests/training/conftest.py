"""A model without a network: it calls bright pixels a defect. No test here loads TensorFlow."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from datasets.sample import Record, Sample
from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.engines import Logits
from segdec.predictor import Predictor
from tests import forked
from tests.training import fault_injection

GREY, DIM, BRIGHT = 40, 100, 220
SIDE = 32


class BrightnessEngine:
    """Logits grow with brightness above 128, per 8×8 cell and at the brightest cell.

    Of several defect classes the one that depends on the column of the brightest cell is chosen.
    """

    batch_pixels = 2**24

    def __init__(self, num_classes):
        self.num_classes = num_classes
        self.largest_batch = 0

    def infer(self, images):
        self.largest_batch = max(self.largest_batch, len(images))
        count, height, width, _ = images.shape
        cells = images[..., 0].reshape(count, height // 8, 8, width // 8, 8).mean(axis=(2, 4))
        mask = ((cells - 128) / 16).astype(np.float32)
        classes = np.zeros((count, self.num_classes), np.float32)
        for row, logits in enumerate(mask):
            column = int(logits.max(axis=0).argmax())
            classes[row, 1 + column % (self.num_classes - 1)] = logits.max() + 4
            classes[row, 0] = 4
        return Logits(mask[..., None], classes)


@pytest.fixture(scope="session")
def make_predictor():
    """Builds a predictor for classes `good` and others."""

    def make(*defects):
        config = ModelConfig(
            network=NetworkConfig(preset="compact", num_classes=1 + len(defects)),
            input=InputConfig(),
            classes=("good", *defects),
        )
        return Predictor(BrightnessEngine(1 + len(defects)), config)

    return make


@pytest.fixture(scope="session")
def predictor(make_predictor):
    return make_predictor("defect")


@pytest.fixture(scope="session")
def make_samples():
    """Builds records and a reader of square photographs with one 8×8 cell of another brightness each.

    Each entry is name, label, brightness of the cell or None, and whether there is a mask file.
    """

    def make(*entries, side=SIDE):
        samples, records = {}, []
        for name, label, brightness, masked in entries:
            image = np.full((side, side, 1), GREY, np.uint8)
            if brightness is not None:
                image[8:16, 16:24] = brightness
            mask = np.zeros((side, side), np.uint8)
            if label:
                mask[8:16, 16:24] = 255
            samples[name] = Sample(name, image, mask if masked else None, label)
            path = Path(f"{name}.png")
            records.append(Record(name, path, path if masked else None, label, name, "test"))
        return tuple(records), lambda record: samples[record.name]

    return make


@pytest.fixture(scope="session")
def mixed(make_samples):
    """Two good and three defective photographs: one alarm, one miss, one without a mask."""
    return make_samples(
        ("good/alarm", 0, BRIGHT, False),
        ("good/right", 0, None, False),
        ("defect/found", 1, BRIGHT, True),
        ("defect/missed", 1, DIM, True),
        ("defect/unmasked", 1, BRIGHT, False),
    )


@pytest.fixture(scope="session")
def run_process():
    """Runs `python -m training` in its own process: arguments and faults; see fault_injection.py."""

    def run(*arguments, **faults):
        return forked.run("training", *arguments, before=partial(fault_injection.prepare, faults))

    return run
