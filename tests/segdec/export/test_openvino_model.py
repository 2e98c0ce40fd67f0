"""Counts the operations of the exported graph, because times would depend on the machine."""

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

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

COMPACT: dict[str, Any] = {"preset": "compact"}
SMALL: dict[str, Any] = {"segmentation_widths": ((4,), (4,), (4,)), "feature_width": 8, "feature_kernel": 5}
WIDE: dict[str, Any] = {"feature_width": 128, "feature_kernel": 9}
POOLED = 2
"""Means in the decision network, of its features and of the mask."""


def operations(folder: Path, fields: dict[str, Any], engine: str = "openvino") -> Counter[str]:
    """Returns how often each operation occurs in the exported graph of a network."""
    photograph = np.random.default_rng(0).integers(0, 256, (64, 48, 1), dtype=np.uint8)
    write_engine(engine, build_network(NetworkConfig.model_validate(fields)), folder, [photograph])
    return Counter(node.get_type_name() for node in openvino_core().read_model(folder / MODEL).get_ops())


@pytest.mark.parametrize(
    ("fields", "engine", "normalizations"),
    [
        (COMPACT, "openvino", 2 + 3 + 4 + 1 + 3),
        (SMALL | {"mask_stride": 4}, "openvino", 3 + 1 + 2 + 3),
        (SMALL | {"mask_normalization": "affine"}, "openvino", 3 + 1 + 1 + 3),
        (SMALL, "openvino-int8", 3 + 1 + 3),
    ],
    ids=str,
)
def test_instance_normalisation_is_one_operation(
    fields: dict[str, Any], engine: str, normalizations: int, tmp_path: Path
) -> None:
    """As means, squares and products of their own they take three times as long as all convolutions."""
    found = operations(tmp_path, fields | {"normalization": "instance"}, engine)
    assert (found["MVN"], found["ReduceMean"], found["SquaredDifference"]) == (normalizations, POOLED, 0)


@pytest.mark.parametrize(
    ("engine", "transformed"), [("openvino", ["features.npy"]), ("openvino-bfloat16", [])]
)
def test_only_float32_uses_small_transforms(engine: str, transformed: list[str], tmp_path: Path) -> None:
    """With 7 times fewer multiplications they are not faster than a direct convolution in bfloat16."""
    operations(tmp_path, SMALL | {"segmentation_widths": ((4,), (4,), (32,))} | WIDE, engine)
    assert [path.name for path in tmp_path.glob("*.npy")] == transformed


# === Encoders ===


@pytest.fixture(scope="module")
def quantized(tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path, Any]:
    """A network on an encoder, its int8 folder, and photographs [B, H, W, C].

    The decision network begins with as many channels as several convolutions of the encoder do: 16.
    """
    import keras

    from segdec.network.layers import all_layers

    keras.utils.set_random_seed(2)
    fields = {"adapter_width": 8, "feature_width": 15, "decision_widths": (4, 4, 4)}
    values = {"preset": "mobilenet", "encoder": tiny_encoder, **fields}
    network = build_network(NetworkConfig.model_validate(values))
    photographs = np.random.default_rng(0).integers(0, 256, (4, 96, 80, 1), dtype=np.uint8)
    for layer in all_layers(network):
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.beta.assign(np.full(layer.beta.shape, 0.5))
            layer.momentum = 0.0
    network(photographs.astype(np.float32), training=True)
    folder = tmp_path_factory.mktemp("int8") / "int8"
    write_engine("openvino-int8", network, folder, list(photographs))
    return network, folder, photographs


def weights_of(node: Any) -> Any:
    """Returns the source of a convolution's kernel."""
    return node.input_value(1).get_node().get_type_name()


def test_int8_leaves_the_head_and_the_decision_of_an_encoders_network(
    quantized: tuple[Any, Path, Any],
) -> None:
    nodes = openvino_core().read_model(quantized[1] / MODEL).get_ordered_ops()
    kinds = Counter(
        (node.get_type_name(), weights_of(node) == "Constant")
        for node in nodes
        if node.get_type_name() in ("Convolution", "GroupConvolution", "MatMul")
    )
    exact = {kind: count for (kind, constant), count in kinds.items() if constant}
    assert exact == {"Convolution": 1 + 3, "MatMul": 1}  # the mask's, the decision's
    rounded = {kind: count for (kind, constant), count in kinds.items() if not constant}
    assert rounded == {"GroupConvolution": 7, "Convolution": 1 + 7 + 3 + 1}  # …, adapted, features
    means = [node for node in nodes if node.get_type_name() == "ReduceMean"]
    before = {node.input_value(0).get_node().get_type_name() for node in means}
    assert len(means) == POOLED
    assert "FakeQuantize" not in before
