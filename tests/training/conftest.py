"""A model without a network: it calls bright pixels a defect. No test here loads TensorFlow."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from datasets.layouts.toy import make_sample
from datasets.sample import DataSetItem, Sample
from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.engines import Logits
from segdec.images import encode_png
from segdec.predictor import Predictor
from tests import forked
from tests.training import fault_injection
from tests.training.log_odds import score_log_odds
from training.metrics.evaluation import Evaluation
from training.metrics.metrics import compute_metrics
from training.metrics.photograph_results import PhotographResult
from training.metrics.pixel_counts import PixelCounts
from training.metrics.pixel_histogram import PixelHistogram
from training.metrics.storage import save_evaluation

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
    """Builds items and a reader of square photographs with one 8×8 cell of another brightness each.

    Each entry is name, label, brightness of the cell or None, and whether there is a mask file.
    """

    def make(*entries, side=SIDE):
        samples, items = {}, []
        for name, label, brightness, masked in entries:
            image = np.full((side, side, 1), GREY, np.uint8)
            if brightness is not None:
                image[8:16, 16:24] = brightness
            mask = np.zeros((side, side), np.uint8)
            if label:
                mask[8:16, 16:24] = 255
            samples[name] = Sample(name, image, mask if masked else None, label)
            path = Path(f"{name}.png")
            items.append(DataSetItem(name, path, path if masked else None, label, name, "test"))
        return tuple(items), lambda item: samples[item.name]

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
    """Runs `python -m training` in another process: arguments, and faults of fault_injection.py."""

    def run(*arguments, **faults):
        return forked.run("training", *arguments, before=partial(fault_injection.prepare, faults))

    return run


# === Reviewed photographs ===


@pytest.fixture
def write_reviewed(tmp_path):
    """Writes photographs of another toy set as an export leaves them; every second one has a mask."""

    def write(name="reviewed", count=20, label="defect"):
        root, lines = tmp_path / name, []
        for folder in ("pictures", "masks"):
            (root / folder).mkdir(parents=True)
        for number in range(count):
            sample = make_sample(number, seed=5, size=32)
            line = {
                "image": f"pictures/{number}.png",
                "name": f"reviewed/{number}",
                "group": f"part {number}",
            }
            (root / line["image"]).write_bytes(encode_png(sample.image))
            if sample.label and number % 4 == 1:
                line["mask"] = f"masks/{number}.png"
                (root / line["mask"]).write_bytes(encode_png(sample.mask))
            lines.append(json.dumps({**line, "label": label if sample.label else "good"}))
        (root / "manifest.jsonl").write_text("\n".join(lines))
        (root / "classes.txt").write_text(f"{label}\n")
        return root

    return write


# === Evaluated runs ===

NOTHING = PixelCounts()


@pytest.fixture(scope="session")
def make_result():
    """A result of the classes `good` and `defect`, found, left for review or missed by its score alone."""

    def make(
        name,
        truth,
        score,
        *,
        group=None,
        threshold=0.5,
        review=None,
        log_odds=None,
        pixels=NOTHING,
        overlaps=(),
    ):
        labels = ("good", "defect")
        held = review is not None and review <= score < threshold
        return PhotographResult(
            name=name,
            split="test",
            group=group or name,
            truth=truth,
            true_label=labels[truth],
            predicted_label="review" if held else labels[score >= threshold],
            score=score,
            log_odds=score_log_odds(score) if log_odds is None else log_odds,
            threshold=threshold,
            regions=0,
            pixels=pixels,
            overlaps=overlaps,
            review_threshold=review,
        )

    return make


@pytest.fixture(scope="session")
def make_run():
    """Writes a run folder as an evaluation leaves it; the mask scores are those of one 2 × 2 photograph."""

    def make(folder, results, *, classes=("good", "defect"), split="test", seed=1, defect_rate=None):
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text("")
        histogram = PixelHistogram()
        histogram.add(np.array([[0.9, 0.1], [0.6, 0.2]], np.float32), np.array([[255, 0], [0, 0]], np.uint8))
        metrics = compute_metrics(results, classes, histogram, defect_rate=defect_rate)
        evaluation = Evaluation(classes, tuple(results), metrics, histogram, defect_rate)
        save_evaluation(folder, evaluation, split=split, seed=seed)
        return folder

    return make


@pytest.fixture
def make_fold(make_result, make_run, tmp_path):
    """A run of one fold: good and defective photographs in turn, with these scores."""

    def make(name, fold, scores, threshold=0.5, review=None, **options):
        results = [
            make_result(
                f"{fold}/{place}",
                place % 2,
                score,
                threshold=threshold,
                review=review,
                pixels=PixelCounts(tp=6, fn=2) if place % 2 else PixelCounts(fp=1),
            )
            for place, score in enumerate(scores)
        ]
        return make_run(tmp_path / name, results, **options)

    return make
