"""Counts the operations of the exported graph, because times would depend on the machine."""

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
pytest.importorskip("openvino")

from segdec.config import NetworkConfig
from segdec.engines.openvino import MODEL
from segdec.engines.openvino_package import openvino_core
from segdec.export.model_export import write_engine
from segdec.network.network import build_network
from tests.marks import slow_case

SMALL: dict[str, Any] = {"segmentation_widths": ((4,), (4,), (4,)), "feature_width": 8, "feature_kernel": 5}
POOLED = 2
"""Means in the decision network, of its features and of the mask."""


@pytest.fixture
def shared_handler():
    """A handler that the quantiser's logger shares with others, as pytest's own: its level must stay."""
    pytest.importorskip("nncf")
    logger, handler = logging.getLogger("nncf"), logging.NullHandler()
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "engine", "normalizations"),
    [
        ({"mask_stride": 4, "mask_normalization": "affine"}, "openvino", 3 + 1 + 1 + 2 + 3),
        slow_case({}, "openvino-int8", 3 + 1 + 3),
    ],
    ids=str,
)
def test_instance_normalisation_is_one_operation(fields, engine, normalizations, tmp_path, shared_handler):
    """As means, squares and products of their own they take three times as long as all convolutions."""
    config = NetworkConfig.model_validate(SMALL | fields | {"normalization": "instance"})
    photograph = np.random.default_rng(0).integers(0, 256, (64, 48, 1), dtype=np.uint8)
    write_engine(engine, build_network(config), tmp_path, [photograph])
    nodes = openvino_core().read_model(tmp_path / MODEL).get_ops()
    found = Counter(node.get_type_name() for node in nodes)
    assert (found["MVN"], found["ReduceMean"], found["SquaredDifference"]) == (normalizations, POOLED, 0)
    assert shared_handler.level == 0


def test_float32_uses_small_transforms(exported: Path) -> None:
    """Reduced precision does not, see `test_export_with_bfloat16_passes_the_self_test`."""
    assert [path.name for path in (exported / "openvino").glob("*.npy")] == ["features.npy"]
    assert not list((exported / "openvino-int8").glob("*.npy"))


@pytest.mark.slow
def test_int8_leaves_the_head_and_the_decision_of_an_encoders_network(tiny_encoder, tmp_path):
    """The decision network begins with as many channels as several convolutions of the encoder do: 16."""
    fields = {"adapter_width": 8, "feature_width": 15, "decision_widths": (4, 4, 4)}
    config = NetworkConfig.model_validate({"preset": "mobilenet", "encoder": tiny_encoder, **fields})
    photograph = np.random.default_rng(0).integers(0, 256, (64, 48, 1), dtype=np.uint8)
    write_engine("openvino-int8", build_network(config), tmp_path, [photograph])
    nodes = openvino_core().read_model(tmp_path / MODEL).get_ordered_ops()
    kinds = Counter(
        (node.get_type_name(), node.input_value(1).get_node().get_type_name() == "Constant")
        for node in nodes
        if node.get_type_name() in ("Convolution", "GroupConvolution", "MatMul")
    )
    exact = {kind: count for (kind, constant), count in kinds.items() if constant}
    # The first one, because its input is grey, the mask's and the decision's; the first depthwise one
    assert exact == {"Convolution": 1 + 1 + 3, "MatMul": 1, "GroupConvolution": 1}
    rounded = {kind: count for (kind, constant), count in kinds.items() if not constant}
    assert rounded == {"GroupConvolution": 2, "Convolution": 3 + 3 + 1}  # …, adapted, features
    means = [node for node in nodes if node.get_type_name() == "ReduceMean"]
    before = {node.input_value(0).get_node().get_type_name() for node in means}
    assert len(means) == POOLED
    assert "FakeQuantize" not in before
