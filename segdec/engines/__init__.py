"""What runs an artifact: one small protocol, one module an engine."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from segdec.errors import ArtifactError, ConfigError, MissingExtraError

Precision = Literal["float32", "bfloat16", "int8"]
"""In what an engine multiplies; its answers are float32."""


@dataclass(frozen=True)
class Logits:
    """What the network answers: `mask` [B, H/s, W/s, M] and `classes` [B, C], both float32.

    s is the network's `mask_stride`, M its `mask_channels`.
    """

    mask: NDArray[np.float32]
    classes: NDArray[np.float32]


class Engine(Protocol):
    """Runs the network of an artifact."""

    @property
    def batch_pixels(self) -> int:
        """Pixels (B × H × W) beyond which a batch is not faster than its images one by one."""
        ...

    def infer(self, images: NDArray[np.uint8]) -> Logits:
        """Runs the network on `images` [B, H, W, C] uint8, H and W divisible by 8."""
        ...


class Loader(Protocol):
    """The class of an engine."""

    def load(self, folder: Path, precision: Precision, threads: int | None) -> Engine:
        """Loads what the export wrote into `folder`, to run with `threads` threads; None for all cores."""
        ...


@dataclass(frozen=True)
class EngineKind:
    """An engine in one precision; its files lie in the artifact's folder of its name.

    Attributes:
        package: What must be installed.
        precision: In what it multiplies.
    """

    package: Literal["tensorflow", "openvino"]
    precision: Precision

    @property
    def is_installed(self) -> bool:
        """Whether its package is."""
        if self.package in sys.modules:
            return sys.modules[self.package] is not None
        return find_spec(self.package) is not None

    def load(self, folder: Path, threads: int | None = None) -> Engine:
        """Loads the engine from its folder inside an artifact.

        Args:
            folder: Inside the artifact.
            threads: That it runs with; None for all cores that the process may use.

        Raises:
            ArtifactError: If the folder does not hold what it needs.
            MissingExtraError: If its package is not installed; the extra has the same name.
        """
        module = import_module(f"segdec.engines.{self.package}")
        return cast(Loader, module.ENGINE).load(folder, self.precision, threads)


ENGINES: dict[str, EngineKind] = {
    "tensorflow": EngineKind("tensorflow", "float32"),
    "tensorflow-bfloat16": EngineKind("tensorflow", "bfloat16"),
    "openvino": EngineKind("openvino", "float32"),
    "openvino-bfloat16": EngineKind("openvino", "bfloat16"),
    "openvino-int8": EngineKind("openvino", "int8"),
}
"""All engines, by the names that users give."""


def check_engine(name: str) -> None:
    """Refuses the name of no engine.

    Raises:
        ConfigError: If there is no such engine.
    """
    if name not in ENGINES:
        raise ConfigError(f"engine {name!r} is unknown. Expected one of: {', '.join(ENGINES)}.")


def choose_engine(folder: Path, held: Sequence[str], asked: str | None) -> str:
    """Chooses the engine that shall run the artifact in `folder`.

    Args:
        folder: Named in errors.
        held: Names of the engines that the artifact was exported for, in the order of preference.
        asked: By the user; None for the first one whose package is installed.

    Raises:
        ConfigError: If there is no engine of that name.
        ArtifactError: If the artifact was not exported for it.
        MissingExtraError: If none is asked for and no package is installed.
    """
    if asked is None:
        installed = [name for name in held if ENGINES[name].is_installed]
        if not installed:
            package = ENGINES[held[0]].package
            raise MissingExtraError(package, package)
        return installed[0]
    check_engine(asked)
    if asked not in held:
        raise ArtifactError(
            f"{folder} was exported for {', '.join(held)}, not for the engine '{asked}'. Export it again, "
            f"with --engines {' '.join([*held, asked])}."
        )
    return asked
