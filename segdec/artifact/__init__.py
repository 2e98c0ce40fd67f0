"""The artifact: a folder with a model's files, a manifest that says what it is, and checksums.

    model/
    ├── manifest.json      what the model is and the SHA-256 of every other file
    ├── manifest.sha256    the SHA-256 of the manifest; `sha256sum -c` checks it
    ├── signatures/        of the manifest, see `segdec.artifact.signatures`; they change nothing else
    ├── self_test/         a photograph and the mask scores it must get
    └── tensorflow/        files of one engine; a folder for each that it was exported for

It is written whole or not at all, and refused if anything in it has changed. What is read of it is what was
checked: an engine gets a private copy of its files, made while they are compared with their checksums.
"""

import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from pydantic import AfterValidator, Field, FiniteFloat, ValidationError

from segdec import __version__
from segdec.artifact.signatures import TrustedKeys
from segdec.artifact.variants import Speed, Variant, order_by_speed
from segdec.config import Config, EncoderWeights, Fraction, ModelConfig, config_error
from segdec.engines import ENGINES
from segdec.errors import ArtifactError
from segdec.runtime.files import atomic_folder

FORMAT_VERSION = 10
"""Of the folder, counted up whenever it changes."""
READ_VERSIONS = (5, 6, 7, 8, 9, FORMAT_VERSION)
"""No other ones are read. 5 knew of no encoders, 6 of no calibration and review, 7 of no part of a photograph
that is not inspected, 8 of no masks by class, 9 of no parent; else they are the same."""

MANIFEST = "manifest.json"
LABELS, STABLE = "labels.json", "stable"
"""Beside the versions of a model, the file that names them; and the name of the one that answers."""
RUN_FILE = "config.toml"
"""What a training run's folder has, and no model."""
CHECKSUM = "manifest.sha256"

MAX_FILE_BYTES = 2**32
"""In one file; the weights of the largest preset take 0.06 GB."""
MAX_MANIFEST_BYTES = 2**22

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
"""Of a file in a manifest: what every system reads alike, and nothing that leads out of the folder."""


def _check_printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it has control characters, which terminals obey; expected plain text")
    return text


Text = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_printable)]
"""What is shown to people."""


SCORE_TOLERANCE = 1e-3
"""Of an image score that is not calibrated: float32 on another CPU, TF32 on a GPU."""


class SelfTest(Config):
    """A stored photograph, its answer, and how far another machine's answer may be from it."""

    photograph: str = Field("self_test/photograph.png", description="path inside the folder")
    mask_scores: str = Field("self_test/mask_scores.png", description="path inside the folder; 255 = 1.0")
    height: int = Field(ge=1, description="of the photograph, px")
    width: int = Field(ge=1, description="of the photograph, px")
    label: Text = Field(description="class that the photograph must get")
    score: Fraction = Field(description="image score that the photograph must get")
    score_tolerance: Fraction = Field(
        SCORE_TOLERANCE, description="of the image score: float32 on another CPU, TF32 on a GPU"
    )
    mask_tolerance: Fraction = Field(0.03, description="of each mask score; they are stored in 8 bits")


class Parent(Config):
    """The model that another one was trained on from."""

    version: Text = Field(description="of the model; it has the same name")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="of its manifest")


class Manifest(ModelConfig):
    """What an artifact holds and where it comes from."""

    format_version: int = Field(FORMAT_VERSION, description="of the folder; others are refused")
    name: Text = Field(description="of the model")
    version: Text = Field(description="of the model")
    classes: Annotated[tuple[Text, ...], Field(min_length=2)]
    segdec_version: Text = Field(description="of the code that wrote the artifact")
    metrics: dict[str, FiniteFloat] = Field({}, description="measured on `metrics_split`")
    metrics_split: str = Field("", description="part of the data the metrics were measured on")
    data_fingerprint: str = Field("", description="of the data set the model was trained on")
    encoder: EncoderWeights | None = Field(
        None, description="where the weights that its encoder began with come from"
    )
    parent: Parent | None = Field(
        None, description="the version that it was trained on from; absent where it began anew"
    )
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


@dataclass(frozen=True)
class Artifact:
    """An artifact whose manifest was read; its files are checked whenever one of them is.

    Attributes:
        folder: Where it lies.
        manifest: What it says of itself.
        content: The manifest as it was read, which is what a signature covers.
        signed_by: Identifies the trusted key that signed it; None where no signature was asked for.
    """

    folder: Path
    manifest: Manifest
    content: bytes = field(repr=False)
    signed_by: str | None = None

    @property
    def sha256(self) -> str:
        """Of the manifest: the identity of the model, as it covers all files."""
        return hashlib.sha256(self.content).hexdigest()

    def check_files(self, *, except_folder: str | None = None) -> None:
        """Compares every file with its checksum, but for those below the folder `except_folder`.

        Raises:
            ArtifactError: If one is missing, has changed or is no plain file, or there are further ones
                among them.
        """
        _check_unlisted(self.folder, self.manifest)
        for name in self.manifest.files:
            if not _is_below(name, except_folder):
                _check_digest(self.folder, name, _digest(self.folder, name), self.manifest.files[name])

    @contextmanager
    def private_copy(self, part: str) -> Iterator[Path]:
        """Copies the files below the folder `part` to where nobody else can change them, and checks them.

        Yields the copy of that folder, which is there until the block ends.

        Raises:
            ArtifactError: As `check_files`, or if there is no room for the copy. What is raised in the block
                names the artifact instead of the copy.
        """
        with tempfile.TemporaryDirectory(prefix="segdec-") as place:
            private = Path(place)
            for name in self.manifest.files:
                if _is_below(name, part):
                    self._copy(name, private / name)
            (private / part).mkdir(exist_ok=True)
            try:
                yield private / part
            except ArtifactError as error:
                raise ArtifactError(str(error).replace(place, str(self.folder))) from error

    def _copy(self, name: str, target: Path) -> None:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                found = _digest(self.folder, name, file.write)
        except OSError as error:
            raise ArtifactError(
                f"{self.folder / name} cannot be copied to {target.parent} ({error.strerror}). Expected room "
                "for the files of one engine; TMPDIR names another place."
            ) from error
        _check_digest(self.folder, name, found, self.manifest.files[name])


def open_artifact(folder: Path, trusted: TrustedKeys | None = None) -> Artifact:
    """Reads the manifest in `folder`; its files are checked when they are read.

    Args:
        folder: The artifact.
        trusted: Keys of which one must have signed the manifest; None if nobody need.

    Raises:
        ArtifactError: If the folder or the manifest is missing, has changed, is of another format, or is not
            signed by a trusted key.
        MissingExtraError: If a signature is asked for and what checks it is not installed.
    """
    if not folder.is_dir():
        raise ArtifactError(
            f"{folder} is no folder. Expected an artifact, as python -m training export RUN FOLDER writes "
            "it; check the path."
        )
    _check_is_model(folder)
    content = _read_small(folder, MANIFEST)
    _check_checksum(folder, content)
    signed_by = None if trusted is None else trusted.check(folder, content)
    manifest = _parse(folder / MANIFEST, content)
    _check_self_test(folder, manifest)
    _check_variants(folder, manifest)
    return Artifact(folder, manifest, content, signed_by)


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest in `folder` and checks every file that it names.

    Raises:
        ArtifactError: If the folder or a file is missing, a file has changed since the export, or
            the format is another than this code's; the message says which.
    """
    artifact = open_artifact(folder)
    artifact.check_files()
    return artifact.manifest


def manifest_sha256(folder: Path) -> str:
    """Returns the SHA-256 of the manifest in `folder`: the identity of the model, as it covers all files.

    Raises:
        ArtifactError: If there is no manifest.
    """
    return hashlib.sha256(_read_small(folder, MANIFEST)).hexdigest()


def read_file(folder: Path, manifest: Manifest, name: str) -> bytes:
    """Reads one of an artifact's files.

    Args:
        folder: The artifact.
        manifest: Its manifest; while an artifact is being written it knows no checksums yet.
        name: Path inside the folder.

    Raises:
        ArtifactError: If the file is missing, is no plain file, or has changed since the export.
    """
    content = bytearray()
    found = _digest(folder, name, content.extend)
    expected = manifest.files.get(name, found)
    _check_digest(folder, name, found, expected)
    return bytes(content)


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
    _check_replaceable(folder, overwrite)
    with _explained(folder), atomic_folder(folder, overwrite=overwrite) as staged:
        complete = build(staged).model_copy(update={"files": _fingerprints(staged)})
        content = (complete.model_dump_json(indent=2) + "\n").encode()
        (staged / MANIFEST).write_bytes(content)
        (staged / CHECKSUM).write_text(f"{hashlib.sha256(content).hexdigest()}  {MANIFEST}\n")
    return complete


# === Reading ===


def _check_is_model(folder: Path) -> None:
    """Refuses a folder that is something else, which people give in place of a model."""
    if os.path.lexists(folder / MANIFEST):
        return
    if (folder / RUN_FILE).is_file():
        raise ArtifactError(
            f"{folder} is a run, not a model. Export it: python -m training export {folder} FOLDER."
        )
    for pattern in ("*", "*/*"):
        model = next((path.parent for path in sorted(folder.glob(f"{pattern}/{MANIFEST}"))), None)
        if model is not None:
            several = "" if pattern == "*" else f" A service takes all of them by --models {folder}."
            raise ArtifactError(
                f"{folder} is no model, it holds some. Expected one of them, for example {model}.{several}"
            )


def _read_small(folder: Path, name: str) -> bytes:
    content = bytearray()
    _digest(folder, name, content.extend, most=MAX_MANIFEST_BYTES)
    return bytes(content)


def _digest(
    folder: Path, name: str, take: Callable[[bytes], object] | None = None, *, most: int | None = None
) -> str:
    """Reads a file once and returns its SHA-256; `take` gets its content piece by piece."""
    sha256, taken, most = hashlib.sha256(), 0, most or MAX_FILE_BYTES
    with _open_plain(folder, name) as file:
        while piece := file.read(2**20):
            taken += len(piece)
            if taken > most:
                raise ArtifactError(
                    f"{folder / name} is larger than {most} bytes. No model is; check the file."
                )
            sha256.update(piece)
            if take is not None:
                take(piece)
    return sha256.hexdigest()


def _open_plain(folder: Path, name: str) -> BinaryIO:
    """Opens a file that lies in the folder itself: no link out of it, no device, nothing that would wait."""
    path = folder / name
    inside = [folder.joinpath(*Path(name).parts[:depth]) for depth in range(1, len(Path(name).parts) + 1)]
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        link = next((one for one in inside if one.is_symlink()), None)
        file = None if link else os.fdopen(os.open(path, flags), "rb")
    except FileNotFoundError:
        raise ArtifactError(
            f"{path.parent} has no {path.name}. Expected a complete artifact; export or copy it again."
        ) from None
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {error.strerror}. Check its permissions.") from error
    if file is None or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        if file is not None:
            file.close()
        raise ArtifactError(
            f"{link or path} is {'a link' if link else 'no plain file'}. Expected the files themselves: copy "
            "the artifact with cp --recursive --dereference."
        )
    return file


def _check_checksum(folder: Path, content: bytes) -> None:
    expected = _read_small(folder, CHECKSUM)
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
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ArtifactError(f"{path} is no manifest ({error!r:.200}). Export the model again.") from error
    if found not in READ_VERSIONS:
        age = "a newer" if found > FORMAT_VERSION else "an older"
        *earlier, last = map(str, READ_VERSIONS)
        read = f"{', '.join(earlier)} or {last}"
        wrote = str(values.get("segdec_version", "unknown")).encode("unicode_escape").decode()[:40]
        raise ArtifactError(
            f"{path} has format_version {found}. Expected {read}: {age} segdec "
            f"({wrote}) wrote it; export the model again with this one "
            f"({__version__}), or install that one."
        )
    try:
        manifest = Manifest.model_validate(values)
    except ValidationError as error:
        raise ArtifactError(f"{path} is no valid manifest. {config_error(error, Manifest)}") from error
    _check_names(path, manifest)
    return manifest


def _check_names(path: Path, manifest: Manifest) -> None:
    for name in manifest.files:
        if not _NAME.fullmatch(name):
            raise ArtifactError(
                f"{path} names {name!r:.200}. Expected only files inside its folder, named by letters, "
                "digits, '.', '_' and '-'; export the model again."
            )


def _is_below(name: str, part: str | None) -> bool:
    return part is not None and name.startswith(f"{part}/")


def _check_digest(folder: Path, name: str, found: str, expected: str) -> None:
    if found != expected:
        raise ArtifactError(
            f"{folder / name} has changed since the export: its SHA-256 is {found[:12]}…, expected "
            f"{expected[:12]}…. Export or copy the artifact again."
        )


def _check_unlisted(folder: Path, manifest: Manifest) -> None:
    """Refuses further files among those with a checksum; beside their folders, notes may lie."""
    for top in sorted({name.split("/")[0] for name in manifest.files if "/" in name}):
        for place, folders, files in os.walk(folder / top):
            links = [one for one in folders if (Path(place) / one).is_symlink()]
            for name in (*links, *files):
                found = (Path(place) / name).relative_to(folder).as_posix()
                if found not in manifest.files:
                    raise ArtifactError(
                        f"{folder / found} is none of the artifact's files: it came after the export. "
                        "Expected an untouched artifact; remove it, or export or copy the artifact again."
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


def check_writable(folder: Path, overwrite: bool) -> None:
    """Checks that an artifact can be written to a folder.

    Raises:
        ArtifactError: If it exists and may not be replaced, or cannot be written.
    """
    _check_replaceable(folder, overwrite)
    with _explained(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent):
            pass


def _check_replaceable(folder: Path, overwrite: bool) -> None:
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
