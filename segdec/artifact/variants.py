"""Manifest sections of a model's variants, one for each engine."""

import re
from collections.abc import Sequence
from importlib import metadata
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat

from segdec.config import Config, Fraction
from segdec.engines import ENGINES, Precision
from segdec.errors import ArtifactError

Release = Annotated[str, Field(pattern=r"^[0-9]{1,4}\.[0-9]{1,4}[0-9A-Za-z.+-]{0,40}$")]
"""Version of a package; the first two numbers are compared."""


class ValidationMetrics(Config):
    """Quality of a model on validation photographs."""

    average_precision: Fraction | None = Field(None, description="absent without good or defective ones")
    threshold: Fraction | None = Field(None, description="not used; models of format 10 have this key")
    missed: int = Field(ge=0, description="defective photographs called good, at the model's threshold")
    false_alarms: int = Field(ge=0, description="good photographs called defective, at the model's threshold")


class Verification(Config):
    """Comparison of a variant with the network on validation photographs."""

    photographs: int = Field(ge=1, description="number of compared photographs")
    score_difference: FiniteFloat = Field(ge=0, description="largest difference of an image score")
    mask_difference: FiniteFloat = Field(ge=0, description="largest difference of a mask score")
    decisions_changed: int = Field(ge=0, description="photographs with another label")
    before: ValidationMetrics = Field(description="metrics of the network")
    after: ValidationMetrics = Field(description="metrics of this variant")
    forced: bool = Field(False, description="exported although the loss exceeds the limit")


class Variant(Config):
    """The model for one engine, in the artifact's folder with the engine's name."""

    precision: Precision = Field("float32", description="of its multiplications")
    built_with: dict[Literal["tensorflow", "openvino"], Release] = Field(
        {}, description="package → version that wrote the variant"
    )
    score_tolerance: FiniteFloat = Field(0.0, ge=0, description="added to that of the self-test")
    mask_tolerance: FiniteFloat = Field(0.0, ge=0, description="added to that of the self-test")
    verification: Verification | None = Field(None, description="absent without validation photographs")


MIN_SPEEDUP = 1.1
"""Speed-up from which an engine precedes the preferred one; smaller differences may be noise."""

Milliseconds = Annotated[FiniteFloat, Field(gt=0)]


class Speed(Config):
    """Processing time of the engines for one photograph, measured during the export."""

    height: int = Field(ge=1, description="of the network's input (photograph or tile), px")
    width: int = Field(ge=1, description="of the network's input (photograph or tile), px")
    processor: str = Field(description="name of the CPU")
    threads: int = Field(ge=1, description="available to the engines")
    cpu_ms: dict[str, Milliseconds] = Field(
        min_length=1, description="engine → minimum CPU time of a few runs, all threads, ms"
    )


def order_by_speed(named: Sequence[str], speed: Speed | None) -> tuple[str, ...]:
    """Orders engines: in the given order, but of the exact ones the fastest is first.

    Exact engines (`float32`) give the same results, so that only speed matters. An engine with reduced
    precision keeps its position, because its results differ and the user must weigh that.
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
    """Raises ArtifactError if an installed package is older (major, minor) than that of the export."""
    for package, built_with in variant.built_with.items():
        installed = metadata.version(package)
        own, needed = (list(map(int, re.findall("[0-9]+", one)[:2])) for one in (installed, built_with))
        if own < needed:
            raise ArtifactError(
                f"The variant '{name}' was written with {package} {built_with}, but {installed} is "
                f"installed. Expected {built_with} or newer: install it, or export the model again with "
                f"{installed}: python -m training export RUN OUT --engines {name}"
            )
