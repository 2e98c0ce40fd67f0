"""Two exports of one network give the same bytes, in any process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]


def contents(folder: Path) -> dict[str, Any]:
    """Name → content of every file; without the measured speed and the checksum of the manifest."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    found: dict[str, Any] = {name: path.read_bytes() for name, path in files.items()}
    if "manifest.json" in found:
        del found["manifest.sha256"]
        found["manifest.json"] = {**json.loads(found["manifest.json"]), "speed": None}
    return found


def check_same(folder: Path, other: Path) -> None:
    one, two = contents(folder), contents(other)
    assert one.keys() == two.keys()
    assert {name for name in one if one[name] != two[name]} == set()


@pytest.mark.slow
def test_export_again_is_the_same(wide_network, wide_config, exported, tmp_path):
    """The other export may be that of another process. OpenVINO converts such an export."""
    from segdec.export.model_export import write_engine
    from segdec.network.network import build_network

    build_network(wide_config.network)(np.zeros((1, 16, 16, 1)))  # and with it names, numbers, functions
    write_engine("tensorflow", wide_network, tmp_path / "tensorflow", [])
    check_same(tmp_path / "tensorflow", exported / "tensorflow")


EXPORT = """
import sys
from pathlib import Path

import keras
import numpy as np

from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.export.model_export import ModelCard, ValidationPhotographs, export_model
from segdec.network.network import build_network
from tests.tiny_encoder import registered

with registered() as encoder:
    head = {"adapter_width": 8, "feature_width": 8, "decision_widths": (4, 4, 4)}
    network = NetworkConfig(preset="mobilenet", encoder=encoder, **head)
    config = ModelConfig(network=network, input=InputConfig(), classes=("good", "defect"))
    for _ in range(int(sys.argv[2])):
        build_network(network)(np.zeros((1, 16, 16, 1)))
    keras.utils.set_random_seed(5)
    photographs = list(np.random.default_rng(4).integers(0, 256, (2, 64, 48, 1), dtype=np.uint8))
    options = {
        "measure": False,
        "engines": ["tensorflow", "openvino", "openvino-int8"],
        "validation": ValidationPhotographs(calibration=photographs),
    }
    export_model(build_network(network), Path(sys.argv[1]), config, ModelCard("tiny", "1"), **options)
"""


@pytest.mark.slow
def test_two_processes_export_the_same_network_with_an_encoder(tmp_path: Path) -> None:
    for name, networks_before in (("first", 0), ("second", 2)):
        command = [sys.executable, "-c", EXPORT, str(tmp_path / name), str(networks_before)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    check_same(tmp_path / "first", tmp_path / "second")
    folders = {name.split("/")[0] for name in contents(tmp_path / "first")}
    assert folders == {"tensorflow", "openvino", "openvino-int8", "self_test", "manifest.json"}
