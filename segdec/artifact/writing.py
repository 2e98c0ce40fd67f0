"""Writes artifacts atomically."""

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from segdec.artifact.manifest import CHECKSUM, MANIFEST, Manifest
from segdec.errors import ArtifactError
from segdec.runtime.files import atomic_folder


def write_artifact(folder: Path, build: Callable[[Path], Manifest], *, overwrite: bool = False) -> Manifest:
    """Writes an artifact atomically and returns its manifest with `files`.

    `build` writes the model's files into the empty folder that it receives, and returns the manifest without
    `files`. With `overwrite`, an artifact at `folder` is replaced.

    Raises:
        ArtifactError: If `folder` exists, unless it is an artifact and `overwrite` is true; or if it cannot
            be written.
    """
    _check_replaceable(folder, overwrite)
    with _write_errors(folder), atomic_folder(folder, overwrite=overwrite) as staged:
        manifest = build(staged)
        files = {
            path.relative_to(staged).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(staged.rglob("*"))
            if path.is_file()
        }
        complete = manifest.model_copy(update={"files": files})
        content = (complete.model_dump_json(indent=2) + "\n").encode()
        (staged / MANIFEST).write_bytes(content)
        (staged / CHECKSUM).write_text(f"{hashlib.sha256(content).hexdigest()}  {MANIFEST}\n")
    return complete


def check_writable(folder: Path, overwrite: bool) -> None:
    """Raises ArtifactError if `folder` exists and may not be replaced, or cannot be written."""
    _check_replaceable(folder, overwrite)
    with _write_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent):
            pass


def _check_replaceable(folder: Path, overwrite: bool) -> None:
    if not folder.exists():
        return
    if not overwrite:
        raise ArtifactError(f"{folder} exists. Choose a new folder, or pass --overwrite.")
    if not (folder / MANIFEST).is_file():
        raise ArtifactError(
            f"{folder} exists and is not an artifact (it has no {MANIFEST}), so it is not overwritten. "
            "Choose another folder or remove it."
        )


@contextmanager
def _write_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArtifactError(f"{folder} cannot be written ({error}). Check path and free space.") from error
