"""A network that begins with what another one has learnt."""

import numpy as np
import pytest

from training.config import ExperimentConfig

pytest.importorskip("tensorflow")

from training.optimization.numerics import compute_policy
from training.optimization.pretrained import build_initial_network

TINY = {"segmentation_widths": ((4,), (4,), (4,)), "feature_width": 8, "decision_widths": (4, 4, 4)}
STAGES = {"joint": {"steps": 1}}


def test_all_weights_are_those_of_the_file(tmp_path):
    path, random = tmp_path / "network.weights.h5", np.random.default_rng(3)
    learnt = build_initial_network(ExperimentConfig(network=TINY, stages=STAGES), None)
    for variable in learnt.variables:
        variable.assign(random.normal(0.5, 0.1, variable.shape).astype(np.float32))
    learnt.save_weights(path)
    config = ExperimentConfig(network=TINY, stages=STAGES, precision="mixed_bfloat16", initial_weights=path)
    network = build_initial_network(config, None, compute_policy(config))
    for variable, expected in zip(network.variables, learnt.variables, strict=True):
        np.testing.assert_array_equal(variable.numpy(), expected.numpy())
