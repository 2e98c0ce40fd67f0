"""A trained network to an artifact."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from pydantic import ValidationError

from segdec import __version__
from segdec.artifact import Manifest, write_artifact
from segdec.config import STRIDE, ModelConfig, explain
from segdec.engines import Engine
from segdec.engines.tensorflow import NetworkEngine, TensorFlowEngine, input_signature
from segdec.errors import ArtifactError, ConfigError
from segdec.predictor import Predictor
from segdec.self_test import expected_answer, noise_photograph, run_self_test, write_self_test

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
    sample: NDArray[np.uint8] | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Writes `network` as an artifact with SavedModel and self-test, and checks that it answers the same.

    Args:
        network: [B, H, W, C] → `mask_logits` [B, H/s, W/s, 1] and `class_logits` [B, classes].
        folder: Where the artifact shall lie.
        config: What the model is, with its thresholds.
        name: Of the model.
        version: Of the model.
        metrics: Measured on `metrics_split`.
        metrics_split: Part of the data, for example `test`.
        data_fingerprint: Identifies the training data.
        sample: Photograph uint8 [H, W, C] of the self-test, which travels in the artifact; seeded noise
            when there is none.
        overwrite: Whether to replace an artifact at `folder`.

    Raises:
        ArtifactError: If `folder` cannot be written or the written model answers differently.
        ConfigError: If `network` and `config` do not belong together, or a value cannot stand in
            a manifest (a metric that is not finite, an empty name).
        ImageError: If `sample` does not fit the model.
    """
    _check_network(network, config)
    reference = NetworkEngine(network)
    photograph = noise_photograph(config) if sample is None else sample
    with full_precision():
        answer = Predictor(reference, config).predict([photograph])[0]
    manifest = _manifest(
        config,
        name=name,
        version=version,
        metrics=metrics,
        metrics_split=metrics_split,
        data_fingerprint=data_fingerprint,
        self_test=expected_answer(photograph, answer),
    )

    def build(staged: Path) -> None:
        save_network(network, staged / "tensorflow")
        write_self_test(staged, photograph, answer)
        with full_precision():
            exported = TensorFlowEngine.load(staged / "tensorflow")
            check_parity(reference, exported, config)
            run_self_test(Predictor(exported, manifest), staged)

    return write_artifact(folder, build, manifest, overwrite=overwrite)


def save_network(network: keras.Model, folder: Path) -> None:
    """Writes a SavedModel whose `serve` takes uint8 [B, H, W, C]: any batch, any size divisible by 8."""
    archive = keras.export.ExportArchive()
    archive.track(network)
    archive.add_endpoint(
        "serve", lambda images: network(images, training=False), input_signature=[input_signature(network)]
    )
    archive.write_out(str(folder), verbose=False)


@contextmanager
def full_precision() -> Iterator[None]:
    """Keeps a GPU from rounding float32 to TF32, which would hide a difference of 1e-5 in noise."""
    before = tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(False)
    try:
        yield
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(before)


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


def _manifest(config: ModelConfig, **values: Any) -> Manifest:
    created = datetime.now(UTC).isoformat(timespec="seconds")
    described = config.model_dump(include=set(ModelConfig.model_fields))
    try:
        return Manifest(**described, **values, segdec_version=__version__, created=created)
    except ValidationError as error:
        raise explain(error, Manifest) from error


def _check_close(expected: Any, found: Any, part: str) -> None:
    if not np.allclose(expected, found, rtol=TOLERANCE, atol=TOLERANCE):
        raise ArtifactError(
            f"The exported model's {part} logits differ from the network's by "
            f"{np.abs(expected - found).max():.3g}. Expected at most {TOLERANCE}; no artifact was written."
        )


def _check_network(network: keras.Model, config: ModelConfig) -> None:
    shapes = network.compute_output_shape((1, STRIDE, STRIDE, network.input_shape[-1]))
    stride = STRIDE // shapes["mask_logits"][1]
    found = (network.input_shape[-1], shapes["class_logits"][-1], stride)
    described = config.network
    expected = (described.input_channels, described.num_classes, described.mask_stride)
    if found != expected:
        raise ConfigError(
            f"The network has {found[0]} input channels, {found[1]} classes and a mask stride of {found[2]}, "
            f"its configuration says {expected[0]}, {expected[1]} and {expected[2]}. "
            "Expected the configuration the network was built from."
        )
