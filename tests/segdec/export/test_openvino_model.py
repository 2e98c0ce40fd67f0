"""What the exported graph is made of: its operations are counted, for a clock would depend on the machine."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
pytest.importorskip("openvino")

from segdec.config import NetworkConfig
from segdec.engines.openvino import MODEL
from segdec.export.export import write_engine
from segdec.network.network import build_network
from segdec.openvino_package import openvino_core

pytestmark = pytest.mark.usefixtures("tensorflow_devices")

COMPACT: dict[str, Any] = {"preset": "compact"}
SMALL: dict[str, Any] = {"segmentation_widths": ((4,), (4,), (4,)), "feature_width": 8, "feature_kernel": 5}
WIDE: dict[str, Any] = {"feature_width": 128, "feature_kernel": 9}
POOLED = 2
"""Means that the decision network takes, of its features and of the mask."""


def operations(folder: Path, fields: dict[str, Any], engine: str = "openvino") -> Counter[str]:
    """How often each operation stands in the exported graph of a network."""
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


def test_batch_normalisation_leaves_no_operation(tmp_path: Path) -> None:
    found = operations(tmp_path, SMALL)
    assert (found["MVN"], found["ReduceMean"], found["BatchNormInference"]) == (0, POOLED, 0)


@pytest.mark.parametrize(
    ("engine", "transformed"), [("openvino", ["features.npy"]), ("openvino-bfloat16", [])]
)
def test_transforms_that_save_little_are_left_to_float32(
    engine: str, transformed: list[str], tmp_path: Path
) -> None:
    """With 7 times fewer multiplications they are not faster than a direct convolution in bfloat16."""
    operations(tmp_path, SMALL | {"segmentation_widths": ((4,), (4,), (32,))} | WIDE, engine)
    assert [path.name for path in tmp_path.glob("*.npy")] == transformed
