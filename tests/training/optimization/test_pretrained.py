"""The initial weights of an encoder are read completely from the configured file, or not at all."""

import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from segdec.encoders import ENCODERS
from segdec.errors import ConfigError
from segdec.runtime.files import folder_lock
from tests.marks import slow_case
from training.config import ExperimentConfig

keras = pytest.importorskip("keras")

from segdec.network.encoder import load_application  # noqa: E402
from training.optimization import pretrained, weights_download  # noqa: E402
from training.optimization.pretrained import build_initial_network, load_each_once, load_pretrained  # noqa: E402

ROOT = Path(__file__).parents[3]


@pytest.fixture
def configure(tiny_encoder):
    """An experiment whose network stands on the tiny encoder."""

    def configure(weights, **settings):
        network = {"encoder": tiny_encoder, "adapter_width": 4, "feature_width": 4, "feature_kernel": 3}
        return ExperimentConfig(
            network=network | {"decision_widths": (4,)},
            stages={"joint": {"steps": 1}},
            encoder_weights=str(weights),
            **settings,
        )

    return configure


@pytest.fixture(scope="module")
def application(tiny_encoder, tiny_encoder_weights):
    """The network of `keras.applications` with the weights of the file."""
    application = load_application(ENCODERS[tiny_encoder])
    application.load_weights(tiny_encoder_weights)
    return application


@pytest.fixture(scope="module")
def blank(tiny_encoder):
    """The same network, into which weights are read that do not fit."""
    return load_application(ENCODERS[tiny_encoder])


def check_began_with(network, application):
    layers = [layer for layer in network.backbone.layers if layer.weights]
    assert layers
    for layer in layers:
        expected = application.get_layer(layer.name).get_weights()
        for one, other in zip(layer.get_weights(), expected, strict=True):
            assert one.size <= 4 or np.ptp(one) > 0
            np.testing.assert_array_equal(one, other, err_msg=layer.name)


def write_legacy(model, path):
    """As Keras 2 wrote weights, in which form `keras.applications` still has them."""
    with h5py.File(path, "w") as file:
        file.attrs["layer_names"] = [layer.name.encode() for layer in model.layers]
        file.attrs["backend"], file.attrs["keras_version"] = b"tensorflow", b"2.15.0"
        for layer in model.layers:
            group, names = file.create_group(layer.name), []
            for variable, value in zip(layer.weights, layer.get_weights(), strict=True):
                names.append(f"{layer.name}/{variable.name}:0")
                group.create_dataset(names[-1], data=value)
            group.attrs["weight_names"] = [name.encode() for name in names]


@pytest.mark.parametrize("last", ["conv_pw_16_relu", slow_case("conv_pw_32_relu")])
def test_a_file_of_the_used_layers_or_more_is_read(configure, application, tiny_encoder, tmp_path, last):
    """The origin is recorded."""
    used = keras.Model(application.input, application.get_layer(last).output)
    path = tmp_path / "encoder.weights.h5"
    used.save_weights(path)
    config, load = configure(path, encoder_trainable="top"), load_each_once()
    loaded = load(config)
    assert load(config) is loaded
    check_began_with(build_initial_network(config, loaded), application)
    assert loaded.origin.model_dump() == {
        "encoder": tiny_encoder,
        "weights": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "licence": None,
        "trainable": "top",
    }


def without_an_array(path, application):
    application.save_weights(path)
    with h5py.File(path, "a") as file:
        del file["layers"]["batch_normalization_2"]["vars"]["3"]


def too_short(path, application):
    """Cut before the features of stride 16: the rest would stay as it was drawn."""
    keras.Model(application.input, application.get_layer("conv_pw_8_relu").output).save_weights(path)


def of_a_deeper_network(path, application):
    """Keras ignores layers that a network does not have."""
    deeper = keras.layers.Conv2D(3, 1)(application.output)
    keras.Model(application.input, deeper).save_weights(path)


def of_a_deeper_network_by_keras_2(path, application):
    """As ResNet101 is to ResNet50."""
    deeper = keras.layers.Conv2D(3, 1)(application.output)
    write_legacy(keras.Model(application.input, deeper), path)


def of_a_wider_network(path, _):
    load_application(replace(ENCODERS["tiny"], arguments={"width": 8})).save_weights(path)


def truncated(path, application):
    application.save_weights(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def of_another_program(path, _):
    with h5py.File(path, "w") as file:
        file["pixels"] = np.zeros((2, 3))


def not_finite(path, application):
    application.save_weights(path)
    with h5py.File(path, "a") as file:
        file["layers/conv2d/vars/0"][0] = np.nan


@pytest.mark.parametrize(
    ("make", "name", "problem"),
    [
        (lambda path, _: path.write_text("no weights"), "e.txt", "is not a .h5 file"),
        (lambda *_: None, "e.h5", "does not exist. Expected 'imagenet'"),
        (lambda path, _: path.write_text("no weights"), "e.weights.h5", "{misfit}it cannot be read ("),
        (of_another_program, "e.h5", "{misfit}it cannot be read ("),
        (truncated, "e.weights.h5", "{misfit}it cannot be read ("),
        (
            of_another_program,
            "e.weights.h5",
            "{misfit}it contains pixels [2, 3], which this network does not",
        ),
        (of_a_deeper_network, "e.weights.h5", "{misfit}it contains layers/conv2d_5/vars/0 [1, 1, 64, 3], wh"),
        (of_a_deeper_network_by_keras_2, "e.h5", "{misfit}it cannot be read (Layer count mismatch"),
        (
            of_a_wider_network,
            "e.weights.h5",
            "{misfit}layers/batch_normalization/vars/0 is [8], expected [4]. ",
        ),
        (without_an_array, "e.weights.h5", "{misfit}it lacks layers/batch_normalization_2/vars/3 [8]. Exp"),
        (too_short, "e.weights.h5", "{misfit}it lacks layers/"),
        (not_finite, "e.weights.h5", "{misfit}it contains values that are not finite"),
    ],
)
def test_other_files_are_rejected(configure, application, blank, tmp_path, monkeypatch, make, name, problem):
    monkeypatch.setattr(pretrained, "load_application", lambda _: blank)
    path = tmp_path / name
    make(path, application)
    problem = problem.format(misfit="does not fit the encoder 'tiny': ")
    with pytest.raises(ConfigError, match=re.escape(f"encoder_weights = '{path}' {problem}")) as failure:
        load_pretrained(configure(path))
    assert "\n" not in str(failure.value)
    assert "TinyNet without its top" in str(failure.value)


# === ImageNet ===


@pytest.fixture
def publish(tmp_path, monkeypatch, tiny_encoder):
    """Replaces the process that downloads; returns the file."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))

    def publish(download):
        monkeypatch.setattr(pretrained, "download_weights", lambda _, path: download(path))
        return tmp_path / "models" / ENCODERS[tiny_encoder].weights_file

    return publish


def test_one_process_at_a_time_downloads_imagenet(configure, publish, application):
    """An incomplete file of another process is not read, and a complete one is not downloaded again."""
    downloads = []

    def download(path):
        downloads.append(path)
        write_legacy(application, path)

    path, config = publish(download), configure("imagenet")
    path.parent.mkdir()
    with ThreadPoolExecutor(1) as other:
        with folder_lock(path.parent):
            loading = other.submit(load_pretrained, config)
            with pytest.raises(TimeoutError):
                loading.result(0.2)
            assert not downloads
        loaded = loading.result()
    check_began_with(build_initial_network(config, loaded), application)
    origin = loaded.origin
    assert (origin.weights, origin.licence, origin.trainable) == ("imagenet", "Apache-2.0", "frozen")
    assert origin.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (pretrained.fetch_weights("tiny"), downloads) == (path, [path])
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ConfigError, match=rf"cannot be read \(.*'{re.escape(str(path))}': remove it"):
        load_pretrained(config)


WRITE, FAIL = (
    "open(folder + '/models/' + sys.argv[1], 'w').write('weights')",
    "sys.exit('Exception: refused')",
)


def test_a_download_is_complete_or_absent(tmp_path, monkeypatch, capsys):
    """Also where the process is killed: Keras writes into a temporary folder."""
    path, row = tmp_path / "weights.h5", replace(ENCODERS["mobilenet"], application="weights.h5")
    begin = "import os, sys; folder = os.environ['KERAS_HOME']; os.mkdir(folder + '/models'); "
    monkeypatch.setattr(weights_download, "SCRIPT", f"{begin}{WRITE}; {FAIL}")
    with pytest.raises(ConfigError, match=r"^Exception: refused$"):
        weights_download.download_weights(row, path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(weights_download, "SCRIPT", begin + WRITE)
    weights_download.download_weights(row, path)
    assert (list(tmp_path.iterdir()), path.read_text()) == ([path], "weights")
    assert capsys.readouterr().out.splitlines() == [f"Downloading weights.h5 to {tmp_path}"] * 2


def test_a_failed_download_names_the_file(configure, publish):
    def refuse(path):
        raise ConfigError(f"Exception: URL fetch failure on https://example.com/{path.name}: None -- refused")

    path = publish(refuse)
    message = rf"cannot be downloaded \(.*URL fetch .*\)\. Expected the file '{re.escape(str(path))}'"
    with pytest.raises(ConfigError, match=message):
        load_pretrained(configure("imagenet"))


LOOK_UP = """
from pathlib import Path
import keras
from segdec.encoders import ENCODERS
from training.optimization.pretrained import _keras_cache
row = ENCODERS["mobilenet"]
path = _keras_cache() / row.weights_file
path.parent.mkdir()
path.touch()
assert str(path) == keras.utils.get_file(row.weights_file, "file:///nowhere", cache_subdir="models"), path
assert path.is_relative_to(Path.cwd())
"""


@pytest.mark.slow
def test_the_cache_is_that_of_keras(tmp_path):
    """Keras' own rule, which reads the environment when it is imported."""
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "KERAS_HOME": "~/elsewhere"}
    (tmp_path / "elsewhere").mkdir()
    subprocess.run([sys.executable, "-c", LOOK_UP], cwd=tmp_path, env=environment, check=True)


# === None at all ===


def test_random_weights_are_all_trained_or_refused(configure):
    for trainable in ("frozen", "top"):
        with pytest.raises(ValueError, match=f"encoder_weights=none with encoder_trainable={trainable}"):
            configure("none", encoder_trainable=trainable)
    config = configure("none", encoder_trainable="all")
    assert load_pretrained(config) is None
    network = build_initial_network(config, None)
    assert all(layer.trainable for layer in network.backbone.layers)


def test_a_published_network_reads_no_weights(tiny_config, tmp_path):
    config = ExperimentConfig(
        network=tiny_config.network, stages={"joint": {"steps": 1}}, encoder_weights=str(tmp_path / "gone")
    )
    assert load_pretrained(config) is None
