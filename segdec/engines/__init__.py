"""Inference engines: a common protocol and one module per engine."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from segdec.errors import ArtifactError, ConfigError, MissingExtraError, SegdecError

Precision = Literal["float32", "bfloat16", "int8"]
"""Precision of an engine's multiplications; its results are float32."""


@dataclass(frozen=True)
class Logits:
    """The network's output, float32: `mask` [B, H/s, W/s, M], `classes` [B, C] and `surface` [B, D].

    s is the network's `mask_stride`, M its `mask_channels`. `surface` describes the whole photograph, see
    `segdec.photograph_check`; None without a memory of good surface, and for models of earlier versions.
    `photographs` uint8 [B, H, W, 1 or 3] are the network's input, if the masks are refined by it, else None.
    """

    mask: NDArray[np.float32]
    classes: NDArray[np.float32]
    surface: NDArray[np.float32] | None = None
    photographs: NDArray[np.uint8] | None = field(default=None, kw_only=True)

    def surface_of(self, row: int) -> NDArray[np.float32] | None:
        """Returns the `surface` [D] of a photograph of the batch, if there is one.

        Raises:
            SegdecError: If it has a number that is not finite.
        """
        if self.surface is None:
            return None
        surface: NDArray[np.float32] = self.surface[row]
        check_finite(surface)
        return surface


def check_finite(values: NDArray[np.float32]) -> None:
    """Raises a SegdecError if a network returned a number that is not finite."""
    if not np.isfinite(values).all():
        raise SegdecError(
            "The network returned numbers that are not finite: its weights are damaged or its training "
            "diverged. Use another model."
        )


class Engine(Protocol):
    """Runs the network of an artifact."""

    @property
    def batch_pixels(self) -> int:
        """Pixels (B × H × W) beyond which a batch is not faster than its images one by one."""
        ...

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        """Runs the network on `images` [B, H, W, C] uint8, H and W divisible by 8."""
        ...


@dataclass(frozen=True)
class EngineKind:
    """An engine with a precision, and the package that it needs."""

    package: Literal["tensorflow", "openvino"]
    precision: Precision

    @property
    def is_installed(self) -> bool:
        """Whether its package is installed."""
        if self.package in sys.modules:
            return sys.modules[self.package] is not None
        return find_spec(self.package) is not None

    def load(self, folder: Path, threads: int | None = None, size: tuple[int, int] | None = None) -> Engine:
        """Loads the engine from its folder inside an artifact.

        `threads`: None means all cores of the process. The engine may be faster for the `size`, the usual
        height and width of the network's input, px; it accepts all others.

        Raises:
            ArtifactError: If the files are missing or invalid.
            ConfigError: If TensorFlow has already started with another number of threads.
            MissingExtraError: If its package is not installed; the extra has the same name.
        """
        module = import_module(f"segdec.engines.{self.package}")
        engine: Engine = module.ENGINE.load(folder, self.precision, threads, size)
        return engine


ENGINES: dict[str, EngineKind] = {
    "tensorflow": EngineKind("tensorflow", "float32"),
    "tensorflow-bfloat16": EngineKind("tensorflow", "bfloat16"),
    "openvino": EngineKind("openvino", "float32"),
    "openvino-bfloat16": EngineKind("openvino", "bfloat16"),
    "openvino-int8": EngineKind("openvino", "int8"),
}
"""All engines by name. The files of an engine are in the artifact's folder with its name."""


def check_engine(name: str) -> None:
    """Raises ConfigError if there is no engine of this name."""
    if name not in ENGINES:
        raise ConfigError(f"engine {name!r} is unknown. Expected one of: {', '.join(ENGINES)}.")


def choose_engine(folder: Path, exported: Sequence[str], requested: str | None) -> str:
    """Chooses an engine of the artifact in `folder`: the `requested` one, else the first installed one.

    Raises:
        ConfigError: If the requested engine is unknown.
        ArtifactError: If the artifact was not exported for it.
        MissingExtraError: If none is requested and no package is installed.
    """
    if requested is None:
        installed = [name for name in exported if ENGINES[name].is_installed]
        if not installed:
            package = ENGINES[exported[0]].package
            raise MissingExtraError(package, package)
        return installed[0]
    check_engine(requested)
    if requested not in exported:
        raise ArtifactError(
            f"{folder} was exported for {', '.join(exported)}, not for the engine '{requested}'. Export it "
            f"again with --engines {' '.join([*exported, requested])}."
        )
    return requested
