"""Initial weights of an encoder, and its trainable layers."""

import hashlib
import os
import warnings
from contextlib import nullcontext
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

IMAGENET, RANDOM = "imagenet", "none"


@dataclass(frozen=True)
class Pretrained:
    """Pretrained weights of an encoder: their origin, and the network of `keras.applications` with them."""

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
    path = _cached(row) if published else Path(config.encoder_weights)
    with folder_lock(path.parent) if published else nullcontext():  # another process may download it
        application = _load_imagenet(row, path) if published else _load_file(name, row, path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    origin = EncoderWeights(
        encoder=name,
        weights=IMAGENET if published else path.name,
        sha256=digest,
        licence=row.licence if published else None,
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


def _load_imagenet(row: Encoder, path: Path) -> keras.Model:
    try:
        return load_application(row, IMAGENET)
    except Exception as error:  # urllib and HDF5 raise various types
        problem = "cannot be read" if path.is_file() else "cannot be downloaded"
        raise ConfigError(
            f"The ImageNet weights of {row.application} {problem} ({error}). Expected the file '{path}': "
            "remove an incomplete download, copy the file from another machine, set encoder_weights to a "
            "file, or train without an encoder: training/experiments/folder_compact.toml."
        ) from error


def _cached(row: Encoder) -> Path:
    """Path of the weights in Keras' cache, whose folder is created."""
    user = os.path.expanduser("~")  # noqa: PTH111 - Path fails without a home
    default = os.path.join(user if os.access(user, os.W_OK) else "/tmp", ".keras")  # noqa: PTH118
    home = os.path.expanduser(os.environ.get("KERAS_HOME", default))  # noqa: PTH111
    models = Path(home if os.access(home, os.W_OK) else "/tmp/.keras") / "models"
    models.mkdir(parents=True, exist_ok=True)
    return models / row.weights_file


def _load_file(name: str, row: Encoder, path: Path) -> keras.Model:
    """The file may contain the application without its top, or only its used part, in either Keras format."""
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
