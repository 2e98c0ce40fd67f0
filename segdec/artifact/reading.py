"""Opens artifacts and checks their files."""

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from segdec.artifact.manifest import CHECKSUM, MANIFEST, Manifest, parse_manifest
from segdec.artifact.signatures import TrustedKeys
from segdec.errors import ArtifactError

ALIASES, STABLE = "aliases.json", "stable"
"""File with the aliases of the versions of a model, and the alias of the version that answers."""
REPORT = "report.html"
"""Optional: the report of the training's evaluation, a page in one file."""
MAX_REPORT_BYTES = 20_000_000
RUN_FILE = "config.toml"
"""Present in the folder of a training run, but not in a model."""

MAX_FILE_BYTES = 2**32
"""The weights of the largest preset have 0.06 GB."""
MAX_MANIFEST_BYTES = 2**22


@dataclass(frozen=True)
class Artifact:
    """An artifact whose manifest was read and checked. Its files are checked when they are used.

    Attributes:
        folder: Its folder.
        manifest: The parsed manifest.
        content: The manifest file, which signatures cover.
        signed_by: Identifier of the trusted key that signed it; None if no signature was required.
    """

    folder: Path
    manifest: Manifest
    content: bytes = field(repr=False)
    signed_by: str | None = None

    @property
    def sha256(self) -> str:
        """SHA-256 of the manifest: identifies the model, because it covers all files."""
        return hashlib.sha256(self.content).hexdigest()

    def check_files(self, *, except_folder: str | None = None) -> None:
        """Compares every file with its checksum, except those below `except_folder`.

        Raises:
            ArtifactError: If a file is missing, has changed, is not a plain file or is not in the manifest.
        """
        _check_unlisted(self.folder, self.manifest)
        for name in self.manifest.files:
            if except_folder is None or not name.startswith(f"{except_folder}/"):
                _check_digest(self.folder, name, _digest(self.folder, name), self.manifest.files[name])

    @contextmanager
    def private_copy(self, part: str) -> Iterator[Path]:
        """Yields a checked copy of the folder `part` that nobody else can change, until the block ends.

        Raises:
            ArtifactError: As `check_files`, or if the disk is full. Errors in the block name the artifact
                instead of the copy.
        """
        with tempfile.TemporaryDirectory(prefix="segdec-") as place:
            private = Path(place)
            for name in self.manifest.files:
                if name.startswith(f"{part}/"):
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
                digest = _digest(self.folder, name, file.write)
        except OSError as error:
            raise ArtifactError(
                f"{self.folder / name} cannot be copied to {target.parent} ({error.strerror}). Expected "
                "space for the files of one engine; TMPDIR selects another folder."
            ) from error
        _check_digest(self.folder, name, digest, self.manifest.files[name])


def open_artifact(folder: Path, trusted: TrustedKeys | None = None) -> Artifact:
    """Reads the manifest in `folder`, which one of the `trusted` keys must have signed if they are given.

    Raises:
        ArtifactError: If the folder or the manifest is missing, has changed, has another format, or is not
            signed by a trusted key.
        MissingExtraError: If a signature is required and the extra `sign` is not installed.
    """
    if not folder.is_dir():
        raise ArtifactError(
            f"{folder} is not a folder. Expected an artifact, as python -m training export RUN FOLDER writes "
            "it; check the path."
        )
    _check_is_model(folder)
    content = _read_small(folder, MANIFEST)
    _check_checksum(folder, content)
    signed_by = None if trusted is None else trusted.check(folder, content)
    return Artifact(folder, parse_manifest(folder / MANIFEST, content), content, signed_by)


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest in `folder` and checks all files, see `open_artifact` and `Artifact.check_files`."""
    artifact = open_artifact(folder)
    artifact.check_files()
    return artifact.manifest


def manifest_sha256(folder: Path) -> str:
    """Returns the SHA-256 of the manifest in `folder`, which identifies the model."""
    return hashlib.sha256(_read_small(folder, MANIFEST)).hexdigest()


def read_file(folder: Path, manifest: Manifest, name: str, max_bytes: int | None = None) -> bytes:
    """Reads the file `name` of the artifact in `folder`; `max_bytes` limits its size.

    The file is not checked while the artifact is being written: the manifest has no checksums yet.

    Raises:
        ArtifactError: If the file is missing, not a plain file, too large, or has changed since the export.
    """
    content = bytearray()
    digest = _digest(folder, name, content.extend, max_bytes)
    _check_digest(folder, name, digest, manifest.files.get(name, digest))
    return bytes(content)


def _check_is_model(folder: Path) -> None:
    """Explains common mistakes: the folder of a run, or a folder that contains models."""
    if os.path.lexists(folder / MANIFEST):
        return
    if (folder / RUN_FILE).is_file():
        raise ArtifactError(
            f"{folder} is a run, not a model. Export it: python -m training export {folder} FOLDER."
        )
    for pattern in (f"*/{MANIFEST}", f"*/*/{MANIFEST}"):
        if models := sorted(folder.glob(pattern)):
            several = f" A service takes all of them by --models {folder}." if pattern[2] == "*" else ""
            raise ArtifactError(
                f"{folder} is not a model, but contains some. Expected one of them, for example "
                f"{models[0].parent}.{several}"
            )


def _read_small(folder: Path, name: str) -> bytes:
    content = bytearray()
    _digest(folder, name, content.extend, max_bytes=MAX_MANIFEST_BYTES)
    return bytes(content)


def _digest(
    folder: Path, name: str, take: Callable[[bytes], object] | None = None, max_bytes: int | None = None
) -> str:
    """Reads a file once and returns its SHA-256; passes its content to `take` piece by piece."""
    sha256, size, limit = hashlib.sha256(), 0, max_bytes or MAX_FILE_BYTES
    with _open_plain(folder, name) as file:
        while piece := file.read(2**20):
            size += len(piece)
            if size > limit:
                raise ArtifactError(f"{folder / name} is larger than {limit} bytes. Expected a model's file.")
            sha256.update(piece)
            if take is not None:
                take(piece)
    return sha256.hexdigest()


def _open_plain(folder: Path, name: str) -> BinaryIO:
    """Opens a plain file inside the folder: no link, no device, nothing that blocks."""
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
            f"{link or path} is {'a link' if link else 'not a plain file'}. Expected the files themselves: "
            "copy the artifact with cp --recursive --dereference."
        )
    return file


def _check_checksum(folder: Path, content: bytes) -> None:
    expected = _read_small(folder, CHECKSUM)
    actual = f"{hashlib.sha256(content).hexdigest()}  {MANIFEST}"
    if expected.rstrip() != actual.encode():
        raise ArtifactError(
            f"{folder / MANIFEST} does not match {CHECKSUM}: one of them has changed since the export. "
            "Expected an unchanged artifact; export or copy it again."
        )


def _check_digest(folder: Path, name: str, digest: str, expected: str) -> None:
    if digest != expected:
        raise ArtifactError(
            f"{folder / name} has changed since the export: its SHA-256 is {digest[:12]}…, expected "
            f"{expected[:12]}…. Export or copy the artifact again."
        )


def _check_unlisted(folder: Path, manifest: Manifest) -> None:
    """Rejects unknown files in the folders of listed files; the top folder may contain notes."""
    for top in sorted({name.split("/")[0] for name in manifest.files if "/" in name}):
        for place, folders, files in os.walk(folder / top):
            links = [one for one in folders if (Path(place) / one).is_symlink()]
            for name in (*links, *files):
                file = (Path(place) / name).relative_to(folder).as_posix()
                if file not in manifest.files:
                    raise ArtifactError(
                        f"{folder / file} is not one of the artifact's files: it was added after the "
                        "export. Expected an unchanged artifact; remove it, or export or copy the artifact "
                        "again."
                    )
