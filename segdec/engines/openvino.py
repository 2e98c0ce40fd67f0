"""Runs an artifact with OpenVINO, without TensorFlow."""

from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from segdec.engines import Logits, Precision
from segdec.engines.openvino_graph import KERNEL, MODEL, check_openvino_model
from segdec.engines.openvino_package import import_openvino, openvino_core
from segdec.errors import ArtifactError, SegdecError
from segdec.network.fourier import kernel_spectra
from segdec.runtime.cpu_features import has_bfloat16
from segdec.runtime.threads import available_cores

ov = import_openvino()

SPECTRA = "spectra_"
"""Prefix of the inputs for kernel spectra; the kernel is in `LAYER.npy` next to the model."""

BATCH_PIXELS = 2**17
"""Larger batches are hardly faster, and OpenVINO keeps the memory of the largest one."""

NO_BFLOAT16 = (
    "This CPU does not support bfloat16, so OpenVINO uses float32. Expected a CPU with AVX-512 BF16 or AMX; "
    "here the engine 'openvino' is faster and exact."
)


class OpenVINOEngine:
    """Runs an OpenVINO model on the CPU. It is compiled once for all batch and image sizes.

    Args:
        model: Compiled model with the outputs `mask_logits` and `class_logits`.
        notes: Warnings about how it runs on this machine.
    """

    batch_pixels = BATCH_PIXELS

    def __init__(self, model: Any, notes: tuple[str, ...] = ()) -> None:
        self._model = model
        self._request = model.create_infer_request()
        self._one_at_a_time = Lock()
        self.notes = notes

    @classmethod
    def load(cls, folder: Path, precision: Precision = "float32", threads: int | None = None) -> Self:
        """Loads the model in `folder`, see `EngineKind.load`."""
        core = openvino_core()
        hint = "bf16" if precision != "float32" and has_bfloat16() else "f32"
        notes = (NO_BFLOAT16,) if precision == "bfloat16" and hint == "f32" else ()
        try:
            check_openvino_model(folder)
            model = core.read_model(folder / MODEL)
            _insert_spectra(model, folder)
            settings = {
                "INFERENCE_PRECISION_HINT": hint,
                "PERFORMANCE_HINT": "LATENCY",
                "INFERENCE_NUM_THREADS": available_cores() if threads is None else threads,
            }
            return cls(core.compile_model(model, "CPU", settings), notes)
        except SegdecError:
            raise
        except Exception as error:  # damaged models raise any exception
            raise ArtifactError(
                f"OpenVINO {ov.__version__} cannot load the model in {folder} ({error}). Export it again "
                "with the OpenVINO version that is installed here."
            ) from error

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        """Runs the network on `images` [B, H, W, C] uint8, H and W divisible by 8."""
        with self._one_at_a_time:
            found = self._request.infer({"images": images})
            return Logits(np.array(found["mask_logits"]), np.array(found["class_logits"]))

    def release_memory(self) -> None:
        """Frees the memory of the largest images, which OpenVINO keeps otherwise."""
        with self._one_at_a_time:
            self._model.release_memory()


ENGINE = OpenVINOEngine


def _insert_spectra(model: Any, folder: Path) -> None:
    """Replaces the spectra inputs by constants that are computed from the kernels."""
    for port in list(model.inputs):
        name = port.any_name
        if name.startswith(SPECTRA):
            kernel = _read_kernel(folder, f"{name.removeprefix(SPECTRA)}.npy")
            constant = ov.op.Constant(kernel_spectra(kernel), shared_memory=True)
            port.get_node().output(0).replace(constant.output(0))
            model.remove_parameter(port.get_node())


def _read_kernel(folder: Path, name: str) -> NDArray[np.float32]:
    """Reads the kernel [k, k, C, D] from the file that the model names."""
    if not KERNEL.fullmatch(name):
        raise ValueError(f"it names the kernel file {name!r}, expected the name of a layer")
    kernel = np.lib.format.open_memmap(folder / name, mode="r")  # a wrong header allocates no memory
    if kernel.dtype != np.float32 or kernel.ndim != 4 or kernel.shape[0] != kernel.shape[1]:
        raise ValueError(f"{name} has {kernel.dtype} {kernel.shape}, expected float32 [k, k, C, D]")
    return np.array(kernel)
