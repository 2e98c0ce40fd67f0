"""Untrained artifacts and photographs for measurements: trained weights take the same time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.images import encode_png
from segdec.runtime.cli import import_tensorflow

COMPACT = ModelConfig(
    network=NetworkConfig(preset="compact"),
    input=InputConfig(policy="resize", height=256, width=256),
    classes=("good", "defect"),
)
"""The CPU preset."""
DEFAULT_MODEL = "an artifact (default: an untrained compact network, 256 px)"
"""Help of `--model`, see `given_or_untrained`."""

NATIVE = COMPACT.model_copy(update={"input": InputConfig()})
"""The CPU preset for photographs of any size."""

TINY = ModelConfig(
    network=NetworkConfig(
        segmentation_widths=((4,), (4,), (4,)), feature_width=8, feature_kernel=5, decision_widths=(4, 4, 4)
    ),
    input=InputConfig(),
    classes=("good", "defect"),
)
"""A network with a few thousand weights for photographs of any size."""


def given_or_untrained(model: Path | None, folder: Path, config: ModelConfig = COMPACT) -> Path:
    """Returns `model`, or writes an untrained artifact of `config` into `folder`."""
    if model is None:
        model = folder / "untrained"
        export_untrained(config, model, name="untrained")
    return model


def export_untrained(config: ModelConfig, folder: Path, *, name: str, seed: int = 0, **options: Any) -> None:
    """Writes a network with seeded random weights as an artifact; `options` are those of `export_network`."""
    import_tensorflow()
    import keras

    from segdec.network.network import build_network

    keras.utils.set_random_seed(seed)
    export_network(build_network(config.network), config, folder, name=name, **options)


def export_network(
    network: Any,
    config: ModelConfig,
    folder: Path,
    *,
    name: str,
    engines: Sequence[str] = ("tensorflow",),
    calibration: Sequence[NDArray[np.uint8]] = (),
) -> None:
    """Writes a network as an artifact without metrics.

    Args:
        network: In memory.
        config: Of the model.
        folder: Destination of the artifact.
        name: Of the model.
        engines: Of the artifact.
        calibration: Photographs uint8 [H, W, C] for int8.
    """
    from segdec.export.model_export import ModelCard, ValidationPhotographs, export_model

    photographs = ValidationPhotographs(calibration=calibration)
    export_model(network, folder, config, ModelCard(name, "1"), engines=engines, validation=photographs)


def photograph(height: int, width: int, seed: int = 0) -> bytes:
    """Returns a grey PNG of a part: an even surface with sensor noise and a bright scratch."""
    random = np.random.default_rng(seed)
    image = random.normal(110, 3, (height, width)).clip(0, 255).astype(np.uint8)
    image[height // 2 : height // 2 + 2, width // 4 : width // 2] = 220
    return encode_png(image)
