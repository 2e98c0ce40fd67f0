"""A trained network to an artifact."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import keras
import numpy as np

from segdec import __version__
from segdec.artifact import Manifest, write_artifact
from segdec.config import STRIDE, ModelConfig
from segdec.engines import Engine
from segdec.engines.tensorflow import NetworkEngine, TensorFlowEngine, input_signature
from segdec.errors import ArtifactError, ConfigError

TOLERANCE = 1e-5
"""Largest difference between a logit of the network and of its artifact, absolute plus relative."""

PROBES = ((1, 8, 8), (4, 5, 11))
"""Batch size, rows and columns (in units of 8 px) of the images that compare the two."""


def export_model(
    network: keras.Model,
    folder: Path,
    *,
    config: ModelConfig,
    name: str,
    version: str,
    metrics: dict[str, float],
    metrics_split: str,
    data_fingerprint: str,
    overwrite: bool = False,
) -> Manifest:
    """Writes `network` as an artifact with a SavedModel, and checks that it still answers the same.

    Args:
        network: [B, H, W, C] → `mask_logits` [B, H/8, W/8, 1] and `class_logits` [B, classes].
        folder: Where the artifact shall lie.
        config: What the model is, with its thresholds.
        name: Of the model.
        version: Of the model.
        metrics: Measured on `metrics_split`.
        metrics_split: Part of the data, for example `test`.
        data_fingerprint: Identifies the training data.
        overwrite: Whether to replace an artifact at `folder`.

    Raises:
        ArtifactError: If `folder` cannot be written or the written model answers differently.
        ConfigError: If `network` and `config` do not belong together.
    """
    _check_network(network, config)
    manifest = Manifest(
        **config.model_dump(include=set(ModelConfig.model_fields)),
        name=name,
        version=version,
        segdec_version=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        metrics=metrics,
        metrics_split=metrics_split,
        data_fingerprint=data_fingerprint,
    )

    def build(staged: Path) -> None:
        save_network(network, staged / "tensorflow")
        check_parity(NetworkEngine(network), TensorFlowEngine.load(staged / "tensorflow"), config)

    return write_artifact(folder, build, manifest, overwrite=overwrite)


def save_network(network: keras.Model, folder: Path) -> None:
    """Writes a SavedModel whose `serve` takes uint8 [B, H, W, C]: any batch, any size divisible by 8."""
    archive = keras.export.ExportArchive()
    archive.track(network)
    archive.add_endpoint(
        "serve", lambda images: network(images, training=False), input_signature=[input_signature(network)]
    )
    archive.write_out(str(folder), verbose=False)


def check_parity(reference: Engine, exported: Engine, config: ModelConfig) -> None:
    """Compares the answers of two engines on random images.

    Raises:
        ArtifactError: If a logit differs by more than 1e-5, or is not a number.
    """
    random = np.random.default_rng(0)
    for batch, rows, columns in PROBES:
        shape = (batch, rows * STRIDE, columns * STRIDE, config.network.input_channels)
        images = random.integers(0, 256, shape, dtype=np.uint8)
        expected, found = reference.infer(images), exported.infer(images)
        for part in ("mask", "classes"):
            _check_close(getattr(expected, part), getattr(found, part), part)


def _check_close(expected: Any, found: Any, part: str) -> None:
    if not np.allclose(expected, found, rtol=TOLERANCE, atol=TOLERANCE):
        raise ArtifactError(
            f"The exported model's {part} logits differ from the network's by "
            f"{np.abs(expected - found).max():.3g}. Expected at most {TOLERANCE}; the artifact was not written."
        )


def _check_network(network: keras.Model, config: ModelConfig) -> None:
    found = (network.input_shape[-1], network.output_shape["class_logits"][-1])
    expected = (config.network.input_channels, config.network.num_classes)
    if found != expected:
        raise ConfigError(
            f"The network has {found[0]} input channels and {found[1]} classes, its configuration says "
            f"{expected[0]} and {expected[1]}. Expected the configuration the network was built from."
        )
