"""Runs a network with TensorFlow: from an artifact's SavedModel, or one that is still in memory."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from segdec.engines import Logits
from segdec.errors import ArtifactError, MissingExtraError

try:
    import tensorflow as tf
except ImportError as error:
    raise MissingExtraError("tensorflow", "tensorflow") from error

CPU_BATCH_PIXELS = 2**19
GPU_BATCH_PIXELS = 2**24
"""Larger batches are not faster, or take much memory; `benchmarks/serving/batching.py` measures it."""


class TensorFlowEngine:
    """Runs a SavedModel.

    One traced function takes every batch and image size, so nothing is traced again while serving.

    Args:
        model: What `tf.saved_model.load` returned; its `serve` takes uint8 [B, H, W, C] and returns
            `mask_logits` and `class_logits`.
    """

    def __init__(self, model: Any) -> None:
        self._model = model  # its variables live as long as it does
        self.batch_pixels = find_batch_pixels()

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Loads the SavedModel in `folder`.

        Raises:
            ArtifactError: If TensorFlow cannot load it.
        """
        try:
            return cls(tf.saved_model.load(str(folder)))
        except (OSError, ValueError, tf.errors.OpError) as error:
            raise ArtifactError(
                f"{folder} holds no SavedModel that TensorFlow {tf.__version__} can load ({error}). "
                "Export the model again."
            ) from error

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        """Runs the network on `images` [B, H, W, C] uint8, H and W divisible by 8."""
        return to_logits(self._model.serve(tf.constant(images)))


class NetworkEngine:
    """Runs a network in memory, as training does to evaluate it.

    Args:
        network: Keras model: [B, H, W, C] → `mask_logits`, `class_logits`.
    """

    def __init__(self, network: Any) -> None:
        self._infer = tf.function(
            lambda images: network(images, training=False), input_signature=[input_signature(network)]
        )
        self.batch_pixels = find_batch_pixels()

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        """Runs the network on `images` [B, H, W, C] uint8, H and W divisible by 8."""
        return to_logits(self._infer(tf.constant(images)))


def find_batch_pixels() -> int:
    """Pixels beyond which a batch is not faster, on the device that this process uses."""
    return GPU_BATCH_PIXELS if tf.config.list_physical_devices("GPU") else CPU_BATCH_PIXELS


def input_signature(network: Any) -> Any:
    """What the exported function takes: uint8 [B, H, W, C] with B, H and W open."""
    return tf.TensorSpec([None, None, None, network.input_shape[-1]], tf.uint8, name="images")


def to_logits(outputs: dict[str, Any]) -> Logits:
    """The network's answer as float32 arrays."""
    return Logits(
        mask=np.asarray(outputs["mask_logits"], dtype=np.float32),
        classes=np.asarray(outputs["class_logits"], dtype=np.float32),
    )
