"""What a manifest says of the forms in which an artifact holds its model, one for each engine."""

import re
from collections.abc import Sequence
from importlib import metadata
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat

from segdec.config import Config, Fraction
from segdec.engines import ENGINES, Precision
from segdec.errors import ArtifactError

Release = Annotated[str, Field(pattern=r"^[0-9]{1,4}\.[0-9]{1,4}[0-9A-Za-z.+-]{0,40}$")]
"""Version of a package, of which the first two numbers are compared."""


class ValidationMetrics(Config):
    """How good a model is on validation photographs."""

    average_precision: Fraction | None = Field(None, description="absent without good or defective ones")
    threshold: Fraction | None = Field(
        None, description="of models before format 7: the image score that these photographs would choose"
    )
    missed: int = Field(ge=0, description="defective photographs called good, at the model's threshold")
    false_alarms: int = Field(ge=0, description="good photographs called defective, at the model's threshold")


class Verification(Config):
    """What became of the answers to the validation photographs."""

    photographs: int = Field(ge=1, description="that were compared")
    score_difference: FiniteFloat = Field(ge=0, description="largest difference of an image score")
    mask_difference: FiniteFloat = Field(ge=0, description="largest difference of a mask score")
    decisions_changed: int = Field(ge=0, description="photographs with another label")
    before: ValidationMetrics = Field(description="of the network")
    after: ValidationMetrics = Field(description="of this variant")
    forced: bool = Field(False, description="exported although it is worse than allowed")


class Variant(Config):
    """The model as one engine runs it, in the artifact's folder of the engine's name."""

    precision: Precision = Field("float32", description="in which it multiplies")
    built_with: dict[Literal["tensorflow", "openvino"], Release] = Field(
        {}, description="package → version that wrote it"
    )
    score_tolerance: FiniteFloat = Field(0.0, ge=0, description="added to that of the self-test")
    mask_tolerance: FiniteFloat = Field(0.0, ge=0, description="added to that of the self-test")
    verification: Verification | None = Field(
        None, description="absent where no validation photographs were at hand"
    )


MIN_SPEEDUP = 1.1
"""From so many times as fast on, one goes before what else would come first: what is nearer may be chance."""

Milliseconds = Annotated[FiniteFloat, Field(gt=0)]


class Speed(Config):
    """How long the engines took for one photograph where the artifact was written."""

    height: int = Field(ge=1, description="of the photograph, or tile, as the network sees it, px")
    width: int = Field(ge=1, description="of the photograph, or tile, as the network sees it, px")
    processor: str = Field(description="on which it was measured")
    threads: int = Field(ge=1, description="that the engines could use")
    cpu_ms: dict[str, Milliseconds] = Field(
        min_length=1, description="engine → processor time of all its threads, ms: the least of a few runs"
    )


def order_by_speed(named: Sequence[str], speed: Speed | None) -> tuple[str, ...]:
    """Orders engines by preference: as they were named, but of the exact ones the fastest goes first.

    The exact ones (`float32`) answer alike, so that only speed tells them apart. A reduced one keeps its
    place: it answers differently, which nobody but the user can weigh.

    Args:
        named: Engines in the order in which the user named them.
        speed: What was measured; None leaves the order.
    """
    exact = [name for name in named if ENGINES[name].precision == "float32"]
    if speed is None or not exact or not set(exact) <= set(speed.cpu_ms):
        return tuple(named)
    fastest = min(exact, key=lambda name: speed.cpu_ms[name])
    if speed.cpu_ms[fastest] * MIN_SPEEDUP > speed.cpu_ms[exact[0]]:
        return tuple(named)
    ranked = iter([fastest, *(name for name in exact if name != fastest)])
    return tuple(next(ranked) if name in exact else name for name in named)


def check_versions(name: str, variant: Variant) -> None:
    """Refuses to run a variant with an older package than wrote it, which may not know what it reads.

    Args:
        name: Of the engine.
        variant: Its section of the manifest; its packages are installed.

    Raises:
        ArtifactError: If a package's major and minor version are older.
    """
    for package, built_with in variant.built_with.items():
        installed = metadata.version(package)
        if _release(installed) < _release(built_with):
            raise ArtifactError(
                f"The variant '{name}' was written with {package} {built_with}; {installed} is installed. "
                f"Expected {built_with} or newer: install it, or export the model again with {installed}: "
                f"python -m training export RUN OUT --engines {name}"
            )


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall("[0-9]+", version)[:2])
