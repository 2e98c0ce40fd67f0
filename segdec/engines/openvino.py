"""Runs an artifact with OpenVINO, without TensorFlow."""

from collections.abc import Callable
from functools import partial
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
    """Runs an OpenVINO model on the CPU.

    One compilation accepts all batch and image sizes. Images of `size` have another one, which takes them one
    by one: without computations of shapes, MobileNet takes 9 to 27 % less CPU time. The first is made when it
    is needed. A network with Fourier transforms has only the first, because each one holds the spectra of the
    kernels.

    Args:
        compiled: The model with the outputs `mask_logits`, `class_logits` and maybe `surface`, compiled for
            all sizes, or, with `compile_any`, for images [1, H, W, C].
        compile_any: Compiles it for all sizes.
        notes: Warnings about how it runs on this machine.

    Attributes:
        size: H and W of `compiled`, px; None if it accepts all sizes.
    """

    batch_pixels = BATCH_PIXELS

    def __init__(
        self, compiled: Any, compile_any: Callable[[], Any] | None = None, notes: tuple[str, ...] = ()
    ) -> None:
        self.size = None if compile_any is None else tuple(compiled.input("images").shape)[1:3]
        self._requests = {self.size: compiled.create_infer_request()}
        self._compile_any = compile_any
        self._one_at_a_time = Lock()
        self.notes = notes

    @classmethod
    def load(
        cls,
        folder: Path,
        precision: Precision = "float32",
        threads: int | None = None,
        size: tuple[int, int] | None = None,
    ) -> Self:
        """Loads the model in `folder`, see `EngineKind.load`."""
        core = openvino_core()
        hint = "bf16" if precision != "float32" and has_bfloat16() else "f32"
        notes = (NO_BFLOAT16,) if precision == "bfloat16" and hint == "f32" else ()
        settings = {
            "INFERENCE_PRECISION_HINT": hint,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": available_cores() if threads is None else threads,
        }
        try:
            check_openvino_model(folder)
            model = core.read_model(folder / MODEL)
            if _insert_spectra(model, folder) or size is None:
                return cls(core.compile_model(model, "CPU", settings), notes=notes)
            fixed = model.clone()
            fixed.reshape([1, *size, fixed.input("images").partial_shape[3]])
            compiled = core.compile_model(fixed, "CPU", settings)
            return cls(compiled, partial(core.compile_model, model, "CPU", settings), notes)
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
            size = self.size if images.shape[1:3] == self.size else None
            if size not in self._requests and self._compile_any is not None:
                self._requests[None] = self._compile_any().create_infer_request()
                self._compile_any = None  # frees the model that is not compiled
            parts = [images] if size is None else [image[None] for image in images]
            outputs = [self._run(size, part) for part in parts]
            return Logits(*(np.concatenate(one) for one in zip(*outputs, strict=True)))

    def _run(self, size: tuple[int, int] | None, images: NDArray[np.uint8]) -> list[Any]:
        outputs = self._requests[size].infer({"images": images})
        names = "mask_logits", "class_logits", *(["surface"] if "surface" in outputs else [])
        return [np.array(outputs[name]) for name in names]

    def release_memory(self) -> None:
        """Frees the memory of the largest images, which OpenVINO keeps otherwise."""
        with self._one_at_a_time:
            for request in self._requests.values():
                request.get_compiled_model().release_memory()


ENGINE = OpenVINOEngine


def _insert_spectra(model: Any, folder: Path) -> bool:
    """Replaces the spectra inputs by constants computed from the kernels; returns whether there are any."""
    ports = [port for port in model.inputs if port.any_name.startswith(SPECTRA)]
    for port in ports:
        kernel = _read_kernel(folder, f"{port.any_name.removeprefix(SPECTRA)}.npy")
        constant = ov.op.Constant(kernel_spectra(kernel), shared_memory=True)
        port.get_node().output(0).replace(constant.output(0))
        model.remove_parameter(port.get_node())
    return bool(ports)


def _read_kernel(folder: Path, name: str) -> NDArray[np.float32]:
    """Reads the kernel [k, k, C, D] from the file that the model names."""
    if not KERNEL.fullmatch(name):
        raise ValueError(f"it names the kernel file {name!r}, expected the name of a layer")
    kernel = np.lib.format.open_memmap(folder / name, mode="r")  # a wrong header allocates no memory
    if kernel.dtype != np.float32 or kernel.ndim != 4 or kernel.shape[0] != kernel.shape[1]:
        raise ValueError(f"{name} has {kernel.dtype} {kernel.shape}, expected float32 [k, k, C, D]")
    return np.array(kernel)
