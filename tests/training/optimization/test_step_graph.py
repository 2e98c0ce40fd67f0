"""What replicas add to the graph of a step."""

import pytest

pytest.importorskip("tensorflow")

from benchmarks.step_graph import measure
from training.config import ExperimentConfig

pytestmark = [pytest.mark.usefixtures("tensorflow_devices"), pytest.mark.slow]


@pytest.fixture(scope="module")
def graphs(tiny_config):
    config = ExperimentConfig(network=tiny_config.network, stages={"joint": {"steps": 1}})
    return {replicas: measure(config, replicas) for replicas in (1, 2)}


def test_the_average_is_kept_once(graphs):
    """Reading a replica's copy needs no kernel."""
    assert graphs[2].traced["average"] <= graphs[1].traced["average"] + 10


def test_the_optimiser_takes_few_operations_a_variable(graphs, tiny_config):
    from segdec.network.network import build_network

    variables = len(build_network(tiny_config.network).trainable_variables)
    for replicas, graph in graphs.items():
        assert graph.traced["optimiser"] < 10 * replicas * variables  # constants among them; 20 in Keras


def test_a_replica_adds_what_it_computes_and_little_else(graphs):
    one, two = graphs[1], graphs[2]
    for part in ("forward", "backward"):
        assert two.traced[part] == pytest.approx(2 * one.traced[part], rel=0.1)
    assert two.kernels < 2.2 * one.kernels
