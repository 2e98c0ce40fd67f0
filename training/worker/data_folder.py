"""The data of a job as a folder of layout `manifest`; files are downloaded once for all versions."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from segdec.config import GOOD
from segdec.errors import DatasetError, RunError
from segdec.images import decode_mask_values, encode_png
from segdec.runtime.class_list import format_class_list
from segdec.runtime.files import atomic_folder, write_bytes_atomic
from segdec.training_schemas import LeasedJob
from training.worker.service_connection import ServiceConnection

MANIFEST, CLASSES = "manifest.jsonl", "classes.txt"
IGNORED = 255
"""Mask value of an ignored area."""
KEYS = ("image", "class_mask")

Progress = Callable[[int, int], None]
"""Is called after each photograph with the number of those that are here and that of all."""


def fetch_data(
    service: ServiceConnection, job: LeasedJob, files: Path, folder: Path, progress: Progress
) -> None:
    """Writes the job's version of its data set to `folder`, which is replaced.

    Files are downloaded to `files`, each named by its SHA-256; those that are there stay.

    Raises:
        RunError: If a file arrives damaged.
        DatasetError: If no photograph is left for the classes of the job.
        ServiceError: See `ServiceConnection`.
    """
    manifest = service.read_manifest(job)
    _check(manifest, job.digest)
    lines = [json.loads(line) for line in manifest.decode("utf-8").split("\n") if line]
    learned = job.settings.classes or job.classes
    kept = [line for line in lines if line["label"] == GOOD or line["label"] in learned]
    if not kept:
        raise DatasetError(f"No photograph is good or one of {', '.join(learned)}. Choose other classes.")
    files.mkdir(parents=True, exist_ok=True)
    for number, line in enumerate(kept, start=1):
        for path in (line[key] for key in KEYS if key in line):
            _download(service, job, files, _name(path))
        progress(number, len(kept))
    with atomic_folder(folder, overwrite=True) as staged:
        for line in kept:
            for path in (line[key] for key in KEYS if key in line):
                target = path_inside(staged, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                if not target.exists():
                    link_or_copy(files / _name(path), target)
        if set(learned) != set(job.classes):
            _ignore_others(staged, kept, job.classes, learned)
        names = [name for name in job.classes if name in learned]
        (staged / CLASSES).write_text(format_class_list(names), encoding="utf-8")
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept)
        (staged / MANIFEST).write_text(text, encoding="utf-8")


def remove_unused(files: Path) -> None:
    """Deletes downloaded files that no folder of a job has any more."""
    for path in files.iterdir() if files.exists() else ():
        if path.stat().st_nlink == 1:
            path.unlink()


def _download(service: ServiceConnection, job: LeasedJob, files: Path, sha256: str) -> None:
    path = files / sha256
    if not path.exists():
        content = service.read_data_file(job, sha256)
        _check(content, sha256)
        write_bytes_atomic(path, content)


def _check(content: bytes, sha256: str) -> None:
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise RunError(f"A file of the data set arrived damaged: its SHA-256 is {digest}, expected {sha256}.")


def _name(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


def path_inside(folder: Path, path: str) -> Path:
    """Returns a path below a folder; RunError if it leads outside."""
    if not (folder / path).resolve().is_relative_to(folder.resolve()):
        raise RunError(f"The service sent the path {path[:80]!r}. Expected one inside the folder of the job.")
    return folder / path


def link_or_copy(source: Path, target: Path) -> None:
    """Makes a hard link, or a copy where the file system has none."""
    try:
        target.hardlink_to(source)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)


def _ignore_others(
    folder: Path, lines: Sequence[Mapping[str, str]], classes: Sequence[str], learned: Sequence[str]
) -> None:
    """Rewrites masks: areas of classes that are not learned are ignored, the others get their new values."""
    values = np.full(256, IGNORED, np.uint8)
    values[0], left = 0, [name for name in classes if name in learned]
    for number, name in enumerate(classes, start=1):
        if name in left:
            values[number] = left.index(name) + 1
    for path in {folder / line["class_mask"] for line in lines if "class_mask" in line}:
        mask = decode_mask_values(path.read_bytes(), str(path), classes=range(1, len(classes) + 1))
        path.unlink()  # a hard link: the downloaded file must not change
        path.write_bytes(encode_png(values[mask][..., np.newaxis]))
