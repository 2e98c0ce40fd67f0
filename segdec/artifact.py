"""The artifact: a folder with a model's files, a manifest that says what it is, and checksums.

    model/
    ├── manifest.json      what the model is and the SHA-256 of every other file
    ├── manifest.sha256    the SHA-256 of the manifest; `sha256sum -c` checks it
    ├── self_test/         a photograph and the mask scores it must get
    └── tensorflow/        files of one engine; a folder for each that it was exported for

It is written whole or not at all, and refused if anything in it has changed.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import Field, FiniteFloat, ValidationError

from segdec import __version__
from segdec.config import Config, Fraction, ModelConfig, explain
from segdec.engines import ENGINES
from segdec.errors import ArtifactError
from segdec.files import new_folder
from segdec.variants import Speed, Variant, order_by_speed

FORMAT_VERSION = 4
"""Of the folder, counted up whenever it changes; no other one is read."""

MANIFEST = "manifest.json"
CHECKSUM = "manifest.sha256"


class SelfTest(Config):
    """A stored photograph, its answer, and how far another machine's answer may be from it."""

    photograph: str = Field("self_test/photograph.png", description="path inside the folder")
    mask_scores: str = Field("self_test/mask_scores.png", description="path inside the folder; 255 = 1.0")
    height: int = Field(ge=1, description="of the photograph, px")
    width: int = Field(ge=1, description="of the photograph, px")
    label: str = Field(description="class that the photograph must get")
    score: Fraction = Field(description="image score that the photograph must get")
    score_tolerance: Fraction = Field(
        1e-3, description="of the image score: float32 on another CPU, TF32 on a GPU"
    )
    mask_tolerance: Fraction = Field(0.03, description="of each mask score; they are stored in 8 bits")


class Manifest(ModelConfig):
    """What an artifact holds and where it comes from."""

    format_version: int = Field(FORMAT_VERSION, description="of the folder; others are refused")
    name: str = Field(min_length=1, description="of the model")
    version: str = Field(min_length=1, description="of the model")
    segdec_version: str = Field(description="of the code that wrote the artifact")
    created: str = Field(description="ISO 8601, UTC")
    metrics: dict[str, FiniteFloat] = Field({}, description="measured on `metrics_split`")
    metrics_split: str = Field("", description="part of the data the metrics were measured on")
    data_fingerprint: str = Field("", description="of the data set the model was trained on")
    self_test: SelfTest
    variants: dict[str, Variant] = Field(
        min_length=1, description="engine → its form of the model, in the order in which the user named them"
    )
    speed: Speed | None = Field(None, description="of the engines; absent where it was not measured")
    files: dict[str, str] = Field({}, description="path inside the folder → SHA-256")

    @property
    def preference(self) -> tuple[str, ...]:
        """The engines, the one first that runs the model if none is asked for."""
        return order_by_speed(tuple(self.variants), self.speed)


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest in `folder` and checks every file that it names.

    Raises:
        ArtifactError: If the folder or a file is missing, a file has changed since the export, or
            the format is another than this code's; the message says which.
    """
    manifest = read_manifest_file(folder)
    for name, expected in manifest.files.items():
        _check_file(folder, name, expected)
    _check_self_test(folder, manifest)
    _check_variants(folder, manifest)
    return manifest


def read_manifest_file(folder: Path) -> Manifest:
    """Reads the manifest in `folder` without looking at the files that it names.

    Raises:
        ArtifactError: If the folder or the manifest is missing, has changed, or is of another format.
    """
    if not folder.is_dir():
        raise ArtifactError(
            f"{folder} is no folder. Expected an artifact, as python -m training export RUN FOLDER writes "
            "it; check the path."
        )
    content = _read(folder / MANIFEST)
    _check_checksum(folder, content)
    return _parse(folder / MANIFEST, content)


def digest(folder: Path) -> str:
    """Returns the SHA-256 of the manifest in `folder`: the identity of the model, as it covers all files.

    Raises:
        ArtifactError: If there is no manifest.
    """
    return hashlib.sha256(_read(folder / MANIFEST)).hexdigest()


def write_artifact(folder: Path, build: Callable[[Path], Manifest], *, overwrite: bool = False) -> Manifest:
    """Writes an artifact: `folder` appears complete, or stays as it was.

    Args:
        folder: Where the artifact shall lie.
        build: Writes the model's files into the empty folder it is given, and says what the artifact is;
            the manifest's `files` are filled here.
        overwrite: Whether to replace what lies at `folder`.

    Returns:
        The manifest with its files.

    Raises:
        ArtifactError: If `folder` exists and `overwrite` is false or it is no artifact, or if it
            cannot be written.
    """
    _check_target(folder, overwrite)
    with _explained(folder), new_folder(folder, overwrite=overwrite) as staged:
        complete = build(staged).model_copy(update={"files": _fingerprints(staged)})
        content = (complete.model_dump_json(indent=2) + "\n").encode()
        (staged / MANIFEST).write_bytes(content)
        (staged / CHECKSUM).write_text(f"{hashlib.sha256(content).hexdigest()}  {MANIFEST}\n")
    return complete


# === Reading ===


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ArtifactError(
            f"{path.parent} has no {path.name}. Expected a complete artifact; export or copy it again."
        ) from None
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {error.strerror}. Check its permissions.") from error


def _check_checksum(folder: Path, content: bytes) -> None:
    expected = _read(folder / CHECKSUM)
    found = f"{hashlib.sha256(content).hexdigest()}  {MANIFEST}"
    if expected.rstrip() != found.encode():
        raise ArtifactError(
            f"{folder / MANIFEST} and {CHECKSUM} beside it do not agree: one of them has changed since the "
            "export. Expected an untouched artifact; export or copy it again."
        )


def _parse(path: Path, content: bytes) -> Manifest:
    try:
        values: Any = json.loads(content)
        found = int(values["format_version"])
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"{path} is no manifest ({error!r}). Export the model again.") from error
    if found != FORMAT_VERSION:
        age = "a newer" if found > FORMAT_VERSION else "an older"
        raise ArtifactError(
            f"{path} has format_version {found}. Expected {FORMAT_VERSION}: {age} segdec "
            f"({values.get('segdec_version', 'unknown')}) wrote it; export the model again with this one "
            f"({__version__}), or install that one."
        )
    try:
        return Manifest.model_validate(values)
    except ValidationError as error:
        raise ArtifactError(f"{path} is no valid manifest. {explain(error, Manifest)}") from error


def _check_file(folder: Path, name: str, expected: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ArtifactError(f"{folder / MANIFEST} names {name!r}. Expected only files inside its folder.")
    found = hashlib.sha256(_read(folder / name)).hexdigest()
    if found != expected:
        raise ArtifactError(
            f"{folder / name} has changed since the export: its SHA-256 is {found[:12]}…, expected "
            f"{expected[:12]}…. Export or copy the artifact again."
        )


def _check_self_test(folder: Path, manifest: Manifest) -> None:
    """Its files must be among those with a checksum, which also keeps them inside the folder."""
    for name in (manifest.self_test.photograph, manifest.self_test.mask_scores):
        if name not in manifest.files:
            raise ArtifactError(
                f"{folder / MANIFEST} names {name!r} for the self-test but has no checksum of it. Expected "
                "one of its files; export the model again."
            )


def _check_variants(folder: Path, manifest: Manifest) -> None:
    for name in manifest.variants:
        if name not in ENGINES:
            raise ArtifactError(
                f"{folder / MANIFEST} has a variant for the engine {name!r}. Expected engines among "
                f"{', '.join(ENGINES)}: a newer segdec ({manifest.segdec_version}) wrote it; install that."
            )


# === Writing ===


def _check_target(folder: Path, overwrite: bool) -> None:
    if not folder.exists():
        return
    if not overwrite:
        raise ArtifactError(f"{folder} exists. Expected a new folder; choose another, or give --overwrite.")
    if not (folder / MANIFEST).is_file():
        raise ArtifactError(
            f"{folder} exists and is no artifact (it has no {MANIFEST}), so it is not overwritten. "
            "Choose another folder or remove it."
        )


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArtifactError(
            f"{folder} cannot be written ({error}). Check the path and the free space."
        ) from error


def _fingerprints(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }
