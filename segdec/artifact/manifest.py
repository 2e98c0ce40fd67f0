"""The manifest of an artifact."""

import json
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, FiniteFloat, ValidationError

from segdec import __version__
from segdec.artifact.operating_points import OperatingPoints
from segdec.artifact.rating import ModelRating
from segdec.artifact.training_photographs import TrainingPhotographs
from segdec.artifact.variants import Speed, Variant, order_by_speed
from segdec.config import Config, EncoderWeights, Fraction, ModelConfig, config_error
from segdec.engines import ENGINES
from segdec.errors import ArtifactError

MANIFEST = "manifest.json"
CHECKSUM = "manifest.sha256"

FORMAT_VERSION = 11
"""Increased with each change of the format."""

EARLIEST_VERSION = 10
"""Earliest format that is read. It had other limits of photographs unlike the training, which are ignored."""

_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
"""A portable relative path that stays inside the folder."""


def _check_printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it has control characters; expected printable text")
    return text


Text = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_printable)]
"""Text that is shown to users."""

SCORE_TOLERANCE = 1e-3
"""Tolerance of an image score without calibration: float32 on another CPU, TF32 on a GPU."""


class SelfTest(Config):
    """A stored photograph, its result, and the tolerances on other machines."""

    photograph: str = Field("self_test/photograph.png", description="path inside the folder")
    mask_scores: str = Field("self_test/mask_scores.png", description="path inside the folder; 255 = 1.0")
    height: int = Field(ge=1, description="of the photograph, px")
    width: int = Field(ge=1, description="of the photograph, px")
    label: Text = Field(description="class that the photograph must get")
    score: Fraction = Field(description="image score that the photograph must get")
    score_tolerance: Fraction = Field(SCORE_TOLERANCE, description="of the image score")
    mask_tolerance: Fraction = Field(0.03, description="of each mask score; they are stored in 8 bits")


class Parent(Config):
    """The model from which training continued."""

    version: Text = Field(description="of the parent; it has the same name")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="of its manifest")


class Manifest(ModelConfig):
    """Content and origin of an artifact."""

    format_version: int = Field(FORMAT_VERSION, description="of the folder; others are rejected")
    name: Text = Field(description="of the model")
    version: Text = Field(description="of the model")
    classes: Annotated[tuple[Text, ...], Field(min_length=2)]
    segdec_version: Text = Field(description="of the code that wrote the artifact")
    metrics: dict[str, FiniteFloat] = Field({}, description="measured on `metrics_split`")
    metrics_split: str = Field("", description="part of the data on which the metrics were measured")
    operating_points: OperatingPoints | None = Field(
        None, description="thresholds to choose from; absent: unknown"
    )
    rating: ModelRating | None = Field(None, description="by the last evaluation; absent: not evaluated")
    warnings: tuple[str, ...] = Field((), description="of the training, about thresholds and decision")
    data_fingerprint: str = Field("", description="of the training data set")
    training_photographs: TrainingPhotographs | None = Field(
        None, description="size and depth of the training photographs; absent: unknown"
    )
    encoder: EncoderWeights | None = Field(None, description="origin of the encoder's initial weights")
    parent: Parent | None = Field(None, description="from which training continued; absent: none")
    self_test: SelfTest
    variants: dict[str, Variant] = Field(
        min_length=1, description="engine → its variant of the model, in the order that the user gave"
    )
    speed: Speed | None = Field(None, description="of the engines; absent if it was not measured")
    files: dict[str, str] = Field({}, description="path inside the folder → SHA-256")

    @property
    def notes(self) -> tuple[str, ...]:
        """What the format of an earlier version lacks."""
        if self.format_version == FORMAT_VERSION or self.training_photographs is None:
            return ()
        return (
            f"It inspects any photograph, because segdec {self.segdec_version}, which exported it, had other "
            "limits of photographs unlike the training. Export it again.",
        )

    @property
    def engines_by_speed(self) -> tuple[str, ...]:
        """The engines in the order of `order_by_speed`; the first one is the default."""
        return order_by_speed(tuple(self.variants), self.speed)


def parse_manifest(path: Path, content: bytes) -> Manifest:
    """Parses the manifest at `path`; raises ArtifactError if it is invalid or has another format version."""
    try:
        values: Any = json.loads(content)
        version = int(values["format_version"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ArtifactError(f"{path} is not a manifest ({error!r:.200}). Export the model again.") from error
    if not EARLIEST_VERSION <= version <= FORMAT_VERSION:
        raise _version_error(path, version, values)
    try:
        manifest = Manifest.model_validate(values)
    except ValidationError as error:
        raise ArtifactError(f"{path} is not a valid manifest. {config_error(error, Manifest)}") from error
    _check(path, manifest)
    return manifest


def _version_error(path: Path, version: int, values: dict[str, Any]) -> ArtifactError:
    age = "a newer" if version > FORMAT_VERSION else "an older"
    wrote = str(values.get("segdec_version", "unknown")).encode("unicode_escape").decode()[:40]
    return ArtifactError(
        f"{path} has format_version {version}. Expected {EARLIEST_VERSION} or {FORMAT_VERSION}: {age} segdec "
        f"({wrote}) wrote it. Export the model again with this version ({__version__}), or install that one."
    )


def _check(path: Path, manifest: Manifest) -> None:
    for name in manifest.files:
        if not _FILE_NAME.fullmatch(name):
            raise ArtifactError(
                f"{path} has the file name {name!r:.200}. Expected only files inside its folder, with names "
                "of letters, digits, '.', '_' and '-'; export the model again."
            )
    for name in (manifest.self_test.photograph, manifest.self_test.mask_scores):
        if name not in manifest.files:
            raise ArtifactError(
                f"{path} names {name!r} for the self-test but has no checksum of it. Expected one of its "
                "files; export the model again."
            )
    if unknown := sorted(manifest.variants.keys() - ENGINES.keys()):
        raise ArtifactError(
            f"{path} has a variant for the unknown engine {unknown[0]!r}. Expected one of "
            f"{', '.join(ENGINES)}: install the newer segdec ({manifest.segdec_version}) that wrote it."
        )
