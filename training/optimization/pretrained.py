"""The weights that an encoder begins with, and what of them is trained."""

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
    """Weights of an encoder.

    Attributes:
        origin: Where they come from.
        application: The network of `keras.applications` that has them.
    """

    origin: EncoderWeights
    application: keras.Model

    def copy_to(self, network: SegDecNet) -> None:
        """Gives them to the encoder of a network."""
        origin = {layer.name: layer for layer in all_layers(self.application)}
        for layer in network.backbone.layers if network.backbone is not None else ():
            if layer.weights:
                layer.set_weights(origin[layer.name].get_weights())


def load_pretrained(config: ExperimentConfig) -> Pretrained | None:
    """Reads the weights that the experiment names; None for a network that begins at random.

    Raises:
        ConfigError: If they are not there, cannot be downloaded, or do not fit.
    """
    if not config.has_encoder or config.encoder_weights == RANDOM:
        return None
    name = config.network.encoder
    row = ENCODERS[name]
    published = config.encoder_weights == IMAGENET
    path = _cached(row) if published else Path(config.encoder_weights)
    with folder_lock(path.parent) if published else nullcontext():  # another process may be downloading it
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
    """Makes the network of an experiment as it begins, and holds still what is not trained of it."""
    network = build_network(config.network, policy)
    if pretrained is not None:
        pretrained.copy_to(network)
    if config.initial_weights is not None:
        load_initial_weights(network, config.initial_weights)
    set_trainable(network, config.encoder_trainable)
    return network


def set_trainable(network: SegDecNet, trainable: EncoderTrainable) -> None:
    """Holds still what is not trained of the encoder: neither weights nor statistics change by a bit."""
    if network.backbone is None:
        return
    held = {"frozen": len(network.backbone.layers), "all": 0}.get(trainable)
    if held is None:
        names = [layer.name for layer in network.backbone.layers]
        held = names.index(ENCODERS[network.config.encoder].layers[STRIDE]) + 1
    for layer in network.backbone.layers[:held]:
        layer.trainable = False


def mutable_variables(network: SegDecNet) -> list[Any]:
    """Returns what training may change, moving statistics included: all but what is held of the encoder.

    That is neither averaged nor saved in checkpoints: it stays what the encoder began with.
    """
    layers = network.backbone.layers if network.backbone is not None else ()
    held = {id(variable) for layer in layers if not layer.trainable for variable in layer.variables}
    return [variable for variable in network.variables if id(variable) not in held]


def _load_imagenet(row: Encoder, path: Path) -> keras.Model:
    try:
        return load_application(row, IMAGENET)
    except Exception as error:  # urllib's and HDF5's, of whatever kind
        there = "cannot be read" if path.is_file() else "are not there and cannot be downloaded"
        raise ConfigError(
            f"The ImageNet weights of {row.application} {there} ({error}). Expected them whole in '{path}': "
            "remove what is left of a download, copy the file there from a machine with a network, name one "
            "with encoder_weights, or begin without an encoder: training/experiments/folder_compact.toml."
        ) from error


def _cached(row: Encoder) -> Path:
    """Where Keras looks for weights, and keeps what it has downloaded, in a folder that is there."""
    user = os.path.expanduser("~")  # noqa: PTH111 - Path refuses without a home
    default = os.path.join(user if os.access(user, os.W_OK) else "/tmp", ".keras")  # noqa: PTH118
    home = os.path.expanduser(os.environ.get("KERAS_HOME", default))  # noqa: PTH111
    models = Path(home if os.access(home, os.W_OK) else "/tmp/.keras") / "models"
    models.mkdir(parents=True, exist_ok=True)
    return models / row.weights_file


def _load_file(name: str, row: Encoder, path: Path) -> keras.Model:
    """It may hold all of the application but its top, or what is used of it, in Keras' new or old form."""
    if not path.is_file() or path.suffix != ".h5":  # of an index of several files the SHA-256 says nothing
        problem = "is no .h5 file" if path.exists() else "does not exist"
        raise ConfigError(
            f"encoder_weights = '{path}' {problem}. Expected 'imagenet', 'none', or a weights file that "
            f"Keras wrote of {row.application} without its top (.h5, .weights.h5)."
        )
    whole = load_application(row)
    used = keras.Model(whole.input, whole.get_layer(row.layers[ENCODER_STRIDE]).output)
    reason = "weights are missing in it"
    for model in (whole, used):
        _clear(used)
        try:
            with warnings.catch_warnings(action="ignore"):  # of what is missing, which is looked for below
                model.load_weights(path)
        except Exception as error:  # a damaged file fails in any way
            (reason, *_) = str(error).strip().splitlines() or [repr(error)]
        else:
            if _is_filled(used):
                return whole
    raise ConfigError(
        f"encoder_weights = '{path}' does not fit the encoder '{name}': {reason}. Expected a weights "
        f"file (.h5, .weights.h5) that Keras wrote of {row.application} without its top."
    )


def _clear(model: keras.Model) -> None:
    """Leaves no weight of which one could think that it was read: Keras reads what it finds."""
    for variable in model.variables:
        variable.assign(np.full(variable.shape, np.nan))


def _is_filled(model: keras.Model) -> bool:
    return not any(np.isnan(variable.numpy()).any() for variable in model.variables)
