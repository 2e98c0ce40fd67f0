"""Initial weights from a finished run."""

import hashlib
import warnings
from pathlib import Path

from segdec.errors import ConfigError
from segdec.network.network import SegDecNet
from training.config import ExperimentConfig


def with_initial_sha256(config: ExperimentConfig) -> ExperimentConfig:
    """Returns the experiment with the SHA-256 of its `initial_weights`, if set.
    Raises a `ConfigError` if the file is missing, or its SHA-256 differs from `initial_sha256`.
    """
    path, expected = config.initial_weights, config.initial_sha256
    if path is None:
        return config
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ConfigError(
            f"initial_weights = '{path}' cannot be read: {error.strerror}. Expected network.weights.h5 "
            "of a finished run."
        ) from error
    if expected not in (None, digest):
        raise ConfigError(
            f"initial_weights = '{path}' has the SHA-256 {digest}, but initial_sha256 is {expected}. "
            "Expected the file with which the run was started."
        )
    return config.model_copy(update={"initial_sha256": digest})


def load_initial_weights(network: SegDecNet, path: Path) -> None:
    """Loads the weights of a finished run into a network.
    Raises a `ConfigError` if they cannot be read or belong to another network.
    """
    try:
        with warnings.catch_warnings(action="error", category=UserWarning):  # about missing weights
            network.load_weights(path)
    except (OSError, ValueError, LookupError, UserWarning) as error:
        (reason, *_) = str(error).strip().splitlines() or [repr(error)]
        raise ConfigError(
            f"initial_weights = '{path}' does not fit the network: {reason}. Expected the weights of a run "
            "with the same network and classes, and the same encoder."
        ) from error
