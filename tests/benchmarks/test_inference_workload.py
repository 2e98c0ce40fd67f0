"""What the inference benchmarks give our own competitors: weights, artifact, training step."""

import math

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from benchmarks.inference import artifact_inference, our_training, training_step, workload
from segdec.config import InputConfig, NetworkConfig
from segdec.network.network import build_network

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

TINY = NetworkConfig(
    segmentation_widths=((2,), (3,), (4,)), feature_width=5, feature_kernel=3, decision_widths=(2, 2, 2)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A workload of the tiny network, without the peers' file."""
    folder = tmp_path_factory.mktemp("workload")
    workload.main([str(folder), "--network", TINY.model_dump_json(), "--engines", "tensorflow"])
    return folder


def test_the_weights_are_those_of_the_artifact(folder):
    described = (folder / workload.DESCRIPTION).read_text(encoding="utf-8")
    network = build_network(NetworkConfig.model_validate_json(described))
    with np.load(folder / "weights.npz") as weights:
        workload.set_weights(network, weights)
    images = workload.photographs(2, 64, 48)
    expected = network(images, training=False)
    infer, version = artifact_inference.load(folder, "tensorflow")
    mask, classes = infer(images)
    assert mask == pytest.approx(np.asarray(expected["mask_logits"]), abs=1e-5)
    assert classes == pytest.approx(np.asarray(expected["class_logits"]), abs=1e-5)
    assert mask.std() > 0.1  # a network whose signals have died agrees with every other
    assert version.startswith("tensorflow 2.")


def test_photographs_differ():
    first, second = workload.photographs(2, 64, 48)
    assert first.shape == (64, 48, 1)
    assert (first != second).any()


@pytest.mark.slow
def test_our_step_trains(tmp_path):
    experiment = training_step.load_step_experiment().model_copy(
        update={
            "network": TINY.model_copy(update={"normalization": "instance", "mask_stride": 4}),
            "input": InputConfig(policy="resize", height=64, width=48),
        }
    )
    workload.main([str(tmp_path), "--network", experiment.network.model_dump_json()])
    (tmp_path / "experiment.json").write_text(experiment.model_dump_json(), encoding="utf-8")
    np.savez(tmp_path / "batch.npz", **training_step.make_batch(experiment))
    step, _ = our_training.prepare(tmp_path, "float32")
    losses = [step()["loss"] for _ in range(5)]
    assert math.isfinite(losses[0])
    assert losses[-1] < losses[0]
    assert not (tmp_path / "artifact").exists()
