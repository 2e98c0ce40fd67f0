"""The weights that a network begins with where it goes on from those of a finished run."""

import hashlib
import warnings
from pathlib import Path

from segdec.errors import ConfigError
from segdec.network.network import SegDecNet
from training.config import ExperimentConfig


def with_initial_sha256(config: ExperimentConfig) -> ExperimentConfig:
    """Returns the experiment with the SHA-256 of the weights that it begins with, where it names any.

    Raises:
        ConfigError: If they are not there, or others than the experiment says.
    """
    path, expected = config.initial_weights, config.initial_sha256
    if path is None:
        return config
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ConfigError(
            f"initial_weights = '{path}' cannot be read: {error.strerror}. Expected network.weights.h5 "
            "of a finished run."
        ) from error
    if expected not in (None, found):
        raise ConfigError(
            f"initial_weights = '{path}' has the SHA-256 {found}, and initial_sha256 says {expected}: these "
            "are other weights. Expected the same file as when the run was started."
        )
    return config.model_copy(update={"initial_sha256": found})


def load_initial_weights(network: SegDecNet, path: Path) -> None:
    """Gives a network the weights of a finished run.

    Raises:
        ConfigError: If they are those of another network, or cannot be read.
    """
    try:
        with warnings.catch_warnings(action="error", category=UserWarning):  # of weights that stay as drawn
            network.load_weights(path)
    except (OSError, ValueError, LookupError, UserWarning) as error:
        (reason, *_) = str(error).strip().splitlines() or [repr(error)]
        raise ConfigError(
            f"initial_weights = '{path}' does not fit the network: {reason}. Expected the weights of a run "
            "with the same network and classes, and the same encoder."
        ) from error
