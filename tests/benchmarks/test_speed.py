"""The inference benchmark: competitors have the same network, and the table compares them."""

import math
import sys

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from benchmarks.inference import artifact_inference, memory_cost, plain_conversion, speed, workload
from benchmarks.inference.competitor import Competitor
from segdec.config import NetworkConfig

TINY = NetworkConfig(
    segmentation_widths=((2,), (3,), (4,)), feature_width=5, feature_kernel=3, decision_widths=(2, 2, 2)
)
WORK = """
from benchmarks.inference.peers.answering import answer_requests
answer_requests(lambda: ({work}, "library 1"))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A workload of the tiny network."""
    folder = tmp_path_factory.mktemp("workload")
    arguments = ["--engines", "tensorflow", "--plain", "tensorflow"]
    workload.main([str(folder), "--network", TINY.model_dump_json(), *arguments])
    return folder


@pytest.mark.slow
def test_artifact_and_plain_conversion_return_the_same_logits(folder):
    images = workload.photographs(2, 64, 48)
    np.save(folder / workload.IMAGES, images)
    assert (images[0] != images[1]).any()
    ours, version = artifact_inference.load(folder, "tensorflow")
    plain, _ = plain_conversion.load(folder, "tensorflow")
    for one, other in zip(ours(images), plain(images), strict=True):
        assert one == pytest.approx(other, abs=1e-5)
    assert ours(images)[0].std() > 0.1  # constant signals would agree too
    assert version.startswith("tensorflow 2.")
    with np.load(folder / "weights.npz") as weights:
        assert "segmentation_1_1/kernel" in weights


def test_a_competitor_answers_each_request():
    with Competitor([sys.executable, "-c", WORK.format(work="lambda: sum(range(1000))")]) as competitor:
        assert competitor.measure() > 0
        assert competitor.measure() > 0
    assert competitor.ready["version"] == "library 1"
    assert competitor.answers[1].keys() >= {"seconds", "cpu_seconds", "peak_mb"}


class FakeCompetitor:
    """Reports given seconds, and half of them as CPU time."""

    def __init__(self, folder, name, seconds, mask):
        np.savez(speed.logits_file(folder, name), mask=np.full((1, 2, 2, 1), mask), classes=np.zeros((1, 2)))
        self.seconds, self.answers, self.ready = seconds, [], {"version": "1"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Does nothing."""

    def measure(self):
        self.answers.append({"cpu_seconds": self.seconds / 2, "peak_mb": 3.0})
        return self.seconds


def test_rows_and_targets_compare_with_pytorch_and_plain_conversion(tmp_path):
    given = {"segdec tensorflow": (1.0, 0.1), speed.EAGER: (4.0, 0.0), "plain tensorflow": (3.0, 0.0)}
    competitors = {name: FakeCompetitor(tmp_path, name, *values) for name, values in given.items()}
    rows = speed.measure_case(tmp_path, speed.TARGET_CASE, competitors, 2)
    ours = rows[0]
    assert (ours[speed.TIMES], ours[speed.GAIN], ours[speed.CPU]) == (4.0, 3.0, 0.5)
    assert ours[speed.DIFFERENCE] == pytest.approx(1 / (1 + math.exp(-0.1)) - 0.5)
    targets = speed.targets([{"network": speed.PUBLISHED, **row} for row in rows], ["tensorflow"])
    # No reduced engine, large difference
    assert [target.met for target in targets] == [True, False, False, True]


def test_the_cost_of_a_memory_is_that_of_the_most_expensive_case():
    def row(engine, minima, median):
        return {"engine": engine, memory_cost.MINIMA: minima, memory_cost.MEDIAN: median}

    rows = [row("openvino", 1.1, 1.15), row("openvino", 1.3, 1.19), row("tensorflow", 1.25, 1.21)]
    targets = {target.name: (target.value, target.met) for target in memory_cost.targets(rows)}
    assert targets == {"openvino, ratio": (1.19, True), "tensorflow, ratio": (1.21, False)}


def test_the_cost_of_a_memory_is_measured_in_turn():
    asked = []

    class Fake:
        def __init__(self, name):
            self.name = name

        def infer(self, images):
            asked.append((self.name, images.shape))
            sum(range(10_000))

    engines = {name: Fake(name) for name in (memory_cost.WITHOUT, memory_cost.WITH)}
    row = memory_cost.compare(engines, np.zeros((2, 8, 8, 1), np.uint8), 2)
    assert asked == 3 * [(name, (2, 8, 8, 1)) for name in engines]  # the first round is not counted
    assert row[memory_cost.MINIMA] > 0
