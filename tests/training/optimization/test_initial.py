"""A network that begins with what another one has learnt."""

import numpy as np
import pytest

from training.config import ExperimentConfig

pytest.importorskip("tensorflow")

from training.optimization.numerics import compute_policy
from training.optimization.pretrained import build_initial_network, load_pretrained, mutable_variables

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

TINY = {"segmentation_widths": ((4,), (4,), (4,)), "feature_width": 8, "decision_widths": (4, 4, 4)}
STAGES = {"joint": {"steps": 1}}


def disturbed(config, path):
    """Writes the weights of a network that has learnt something; returns them."""
    network = build_initial_network(config, load_pretrained(config))
    random = np.random.default_rng(3)
    for variable in network.variables:
        variable.assign(random.normal(0.5, 0.1, variable.shape).astype(np.float32))
    network.save_weights(path)
    return [variable.numpy() for variable in network.variables]


def test_all_weights_are_those_of_the_file(tmp_path):
    path = tmp_path / "network.weights.h5"
    config = ExperimentConfig(network=TINY, stages=STAGES)
    learnt = disturbed(config, path)
    config = ExperimentConfig(network=TINY, stages=STAGES, precision="mixed_bfloat16", initial_weights=path)
    network = build_initial_network(config, None, compute_policy(config))
    for variable, expected in zip(network.variables, learnt, strict=True):
        np.testing.assert_array_equal(variable.numpy(), expected)


@pytest.mark.slow
def test_a_frozen_encoder_starts_with_them_too(tmp_path, tiny_encoder, tiny_encoder_weights):
    path = tmp_path / "network.weights.h5"
    settings = {
        "network": {"preset": "mobilenet", "encoder": tiny_encoder, "feature_width": 8},
        "encoder_weights": str(tiny_encoder_weights),
        "stages": STAGES,
    }
    learnt = disturbed(ExperimentConfig(**settings), path)
    config = ExperimentConfig(**settings, initial_weights=path)
    network = build_initial_network(config, load_pretrained(config))
    for variable, expected in zip(network.variables, learnt, strict=True):
        np.testing.assert_array_equal(variable.numpy(), expected)
    assert len(mutable_variables(network)) < len(network.variables)
