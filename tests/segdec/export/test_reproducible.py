"""Two exports of one network give the same bytes, in any process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segdec.config import ModelConfig, NetworkConfig
from segdec.engines import ENGINES
from tests.marks import slow_case

ROOT = Path(__file__).parents[3]
MEASURED = "speed"
"""Fields of a manifest that depend on the machine and differ in each export."""


def without_measured(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_measured(one) for key, one in value.items() if key != MEASURED}
    return value


def contents(folder: Path) -> dict[str, Any]:
    """Name → content of every file; except the checksum of the manifest."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    assert files.pop("manifest.sha256")
    manifest = json.loads(files.pop("manifest.json").read_bytes())
    return {"manifest": without_measured(manifest)} | {
        name: path.read_bytes() for name, path in files.items()
    }


def check_same(folder: Path, other: Path) -> None:
    one, two = contents(folder), contents(other)
    assert one.keys() == two.keys()
    assert {name for name in one if one[name] != two[name]} == set()


@pytest.mark.parametrize("engine", ["tensorflow", slow_case("openvino")])
def test_export_again_is_the_same(
    engine: str, wide_network: Any, wide_config: ModelConfig, tmp_path: Path
) -> None:
    from segdec.export.model_export import ModelCard, export_model
    from segdec.network.network import build_network

    card = ModelCard("wide", "1")
    export_model(wide_network, tmp_path / "first", wide_config, card, engines=[engine])
    build_network(wide_config.network)(np.zeros((1, 16, 16, 1)))  # and with it names, numbers, functions
    export_model(wide_network, tmp_path / "second", wide_config, card, engines=[engine])
    check_same(tmp_path / "first", tmp_path / "second")


ON_ENCODER = {"preset": "mobilenet", "adapter_width": 8, "feature_width": 8, "decision_widths": (4, 4, 4)}


EXPORT = """
import sys
from pathlib import Path

import keras
import numpy as np

from segdec.config import ModelConfig, NetworkConfig
from segdec.engines import ENGINES
from segdec.export.model_export import ModelCard, ValidationPhotographs, export_model
from segdec.network.network import build_network

config = ModelConfig.model_validate_json(sys.argv[2])
for _ in range(int(sys.argv[3])):
    build_network(config.network)(np.zeros((1, 16, 16, 1)))
keras.utils.set_random_seed(5)
photographs = list(np.random.default_rng(4).integers(0, 256, (8, 64, 48, 1), dtype=np.uint8))
validation = ValidationPhotographs(calibration=photographs)
network, card = build_network(config.network), ModelCard("wide", "1")
export_model(network, Path(sys.argv[1]), config, card, engines=list(ENGINES), validation=validation)
"""


@pytest.mark.slow
@pytest.mark.parametrize("network", [None, ON_ENCODER], ids=["segdecnet", "encoder"])
def test_two_processes_export_the_same_for_every_engine(
    network: dict[str, Any] | None, wide_config: ModelConfig, tmp_path: Path
) -> None:
    if network is not None:
        own = NetworkConfig.model_validate(network)
        wide_config = wide_config.model_copy(update={"network": own})
    for name, networks_before in (("first", 0), ("second", 3)):
        words = [
            sys.executable,
            "-c",
            EXPORT,
            tmp_path / name,
            wide_config.model_dump_json(),
            networks_before,
        ]
        done = subprocess.run(list(map(str, words)), cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    check_same(tmp_path / "first", tmp_path / "second")
    assert {name.split("/")[0] for name in contents(tmp_path / "first")} == {
        *ENGINES,
        "self_test",
        "manifest",
    }
