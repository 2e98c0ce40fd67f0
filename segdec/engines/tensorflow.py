"""Runs a network with TensorFlow, from a SavedModel or from memory."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from segdec.engines import Logits, Precision
from segdec.engines.tensorflow_graph import check_saved_model
from segdec.errors import ArtifactError, ConfigError, MissingExtraError, SegdecError
from segdec.network.fourier import kernel_spectra
from segdec.runtime.cpu_features import has_bfloat16

try:
    import tensorflow as tf
except ImportError as error:
    raise MissingExtraError("tensorflow", "tensorflow") from error

CPU_BATCH_PIXELS = 2**19
GPU_BATCH_PIXELS = 2**24
"""Larger batches are not faster, or need much memory."""

SLOW_BFLOAT16 = (
    "This CPU does not support bfloat16: TensorFlow emulates it, which is slower than float32. Expected a "
    "CPU with AVX-512 BF16 or AMX, or a GPU; use the engine 'tensorflow' here."
)


class TensorFlowEngine:
    """Runs a SavedModel, see `segdec.export.saved_model`; `notes` are warnings about this machine.

    One traced function accepts all batch and image sizes, so serving never traces again. On a CPU, large
    convolutions use Fourier transforms where these are faster; the kernel spectra are computed once when the
    model is loaded. GPUs convolve directly.
    """

    def __init__(self, model: Any, notes: tuple[str, ...] = ()) -> None:
        self._model = model  # keeps the variables alive
        self._spectra: tuple[Any, ...] = ()
        if hasattr(model, "fourier_kernels") and not _has_gpu():
            kernels = [np.asarray(kernel, np.float32) for kernel in model.fourier_kernels()]
            # DLPack shares the memory of the array, which is aligned.
            share = tf.experimental.dlpack.from_dlpack
            self._spectra = tuple(share(kernel_spectra(kernel).__dlpack__()) for kernel in kernels)
        self.batch_pixels = default_batch_pixels()
        self.notes = notes

    @classmethod
    def load(
        cls,
        folder: Path,
        precision: Precision = "float32",
        threads: int | None = None,
        _size: tuple[int, int] | None = None,
    ) -> Self:
        """Loads the SavedModel in `folder`, see `EngineKind.load`."""
        if threads is not None:
            set_tensorflow_threads(threads)
        slow = precision == "bfloat16" and not _has_gpu() and not has_bfloat16()
        try:
            check_saved_model(folder)
            return cls(tf.saved_model.load(str(folder)), (SLOW_BFLOAT16,) if slow else ())
        except SegdecError:
            raise
        except Exception as error:  # damaged objects and functions raise any exception
            raise ArtifactError(
                f"TensorFlow {tf.__version__} cannot load the SavedModel in {folder} ({error}). Export the "
                "model again."
            ) from error

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        """Runs the network on `images` [B, H, W, C] uint8, H and W divisible by 8."""
        if self._spectra:
            return to_logits(self._model.serve_fourier(tf.constant(images), *self._spectra))
        return to_logits(self._model.serve(tf.constant(images)))


ENGINE = TensorFlowEngine


class NetworkEngine:
    """Runs a Keras model [B, H, W, C] → `mask_logits`, `class_logits` in memory, during training."""

    def __init__(self, network: Any) -> None:
        signature = [input_signature(network)]
        self._infer = tf.function(lambda images: network(images, training=False), input_signature=signature)
        self.batch_pixels = default_batch_pixels()

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        """Runs the network on `images` [B, H, W, C] uint8, H and W divisible by 8."""
        return to_logits(self._infer(tf.constant(images)))


def set_tensorflow_threads(threads: int) -> None:
    """Sets TensorFlow's number of threads for the whole process, before it starts.

    Raises:
        ConfigError: If it has already started with another number.
    """
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)  # within an operation
        tf.config.threading.set_inter_op_parallelism_threads(threads)  # between operations
    except RuntimeError:
        current = tf.config.threading.get_intra_op_parallelism_threads() or "all cores"
        raise ConfigError(
            f"threads={threads} is too late: TensorFlow has already started in this process with {current}. "
            "Set one number for the whole process, with the first model that is loaded."
        ) from None


def default_batch_pixels() -> int:
    """Returns the pixels per batch beyond which batching is not faster on this process's device."""
    return GPU_BATCH_PIXELS if _has_gpu() else CPU_BATCH_PIXELS


def input_signature(network: Any) -> Any:
    """Returns the exported function's signature: uint8 [B, H, W, C] with variable B, H and W."""
    return tf.TensorSpec([None, None, None, network.input_shape[-1]], tf.uint8, name="images")


def to_logits(outputs: dict[str, Any]) -> Logits:
    """Returns the network's output as float32 arrays."""
    names = "mask_logits", "class_logits", *(["surface"] if "surface" in outputs else [])
    return Logits(*(np.asarray(outputs[name], dtype=np.float32) for name in names))


def _has_gpu() -> bool:
    return bool(tf.config.list_physical_devices("GPU"))
