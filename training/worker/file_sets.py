"""Files as chunks: what a worker uploads of a run and a model, and how it restores them."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from segdec.errors import RunError, ServiceError
from segdec.runtime.files import atomic_folder
from segdec.training_schemas import LeasedJob, SentFile
from training.run.checkpoint_folder import CheckpointFolder
from training.worker.data_folder import link_or_copy, path_inside
from training.worker.service_connection import MISSING_CHUNKS, ServiceConnection

MAX_UPLOADS = 3
"""Uploads of a checkpoint or a result until the service has all of its chunks."""
CHUNK_BYTES = 4 * 1024**2
RUNS, MODEL = "runs", "model"
"""Folders of a job."""
LOG = "log.jsonl"

Beat = Callable[[], None]
"""Is called between two chunks, so that the lease is renewed."""


def upload_and_report(
    service: ServiceConnection,
    job: LeasedJob,
    root: Path,
    paths: Sequence[Path],
    report: Callable[[list[SentFile]], None],
    beat: Beat,
) -> None:
    """Uploads files below `root` and reports them, again if chunks were deleted between both requests.

    A chunk of a former checkpoint of any job is deleted as soon as no other checkpoint names it.

    Raises:
        OSError: If a file was deleted or cannot be read.
        ServiceError: See `ServiceConnection`; `missing_chunks` if chunks were deleted each time.
    """
    for remaining in reversed(range(MAX_UPLOADS)):
        files = upload_files(service, job, root, paths, beat)
        try:
            report(files)
        except ServiceError as error:
            if error.code != MISSING_CHUNKS or not remaining:
                raise
        else:
            return


def upload_files(
    service: ServiceConnection, job: LeasedJob, root: Path, paths: Iterable[Path], beat: Beat
) -> list[SentFile]:
    """Uploads the chunks of files below `root` that the service does not have; returns their description.

    Raises:
        OSError: If a file was deleted or cannot be read.
        ServiceError: See `ServiceConnection`.
    """
    files = [
        SentFile(path=path.relative_to(root).as_posix(), chunks=[_digest(chunk) for chunk in _chunks(path)])
        for path in paths
    ]
    beat()
    missing = set(service.find_missing(job, sorted({chunk for file in files for chunk in file.chunks})))
    for file in files:
        for chunk, name in zip(_chunks(root / file.path), file.chunks, strict=True):
            if name in missing:
                service.send_chunk(job, name, chunk)
                missing.remove(name)
                beat()
    return files


def download_files(
    service: ServiceConnection, job: LeasedJob, files: Sequence[SentFile], folder: Path, beat: Beat
) -> None:
    """Writes files of a checkpoint to `folder`, which is replaced.

    Raises:
        RunError: If a chunk does not have its digest, or a path leads outside.
        ServiceError: See `ServiceConnection`.
    """
    with atomic_folder(folder, overwrite=True) as staged:
        for file in files:
            path = path_inside(staged, file.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as written:
                for name in file.chunks:
                    chunk = service.read_chunk(job, name)
                    if _digest(chunk) != name:
                        raise RunError(f"The chunk {name} of the checkpoint arrived damaged.")
                    written.write(chunk)
                    beat()


@contextmanager
def frozen_copy(root: Path, paths: Iterable[Path]) -> Iterator[tuple[Path, list[Path]]]:
    """Yields a folder with copies of files below `root`, and their paths: the training continues meanwhile.

    It appends only to the log, and deletes whole checkpoints, so all but the log can be hard links. Raises a
    `FileNotFoundError` if a file was deleted.
    """
    with tempfile.TemporaryDirectory(dir=root, prefix=".", suffix=".tmp") as folder:
        copies = []
        for path in paths:
            copy = Path(folder) / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if path.name == LOG:
                shutil.copyfile(path, copy)
            else:
                link_or_copy(path, copy)
            copies.append(copy)
        yield Path(folder), copies


def list_checkpoint(folder: Path, name: str) -> tuple[str, list[Path]] | None:
    """Returns the name of the newest checkpoint of the run `name` in the folder of a job, and the files that
    the run needs to continue from it; None without a checkpoint.
    """
    runs, run = folder / RUNS, folder / RUNS / name
    newest = CheckpointFolder(run / "checkpoints", keep=1).newest_first()[:1]
    if not newest:
        return None
    states = ["config.toml", "splits.txt", "encoder.json", "environment.json", "ignored.txt", LOG]
    own = [runs / f"{name}.toml", runs / f"{name}.splits.txt", *(run / state for state in states)]
    return newest[0].name, [*(path for path in own if path.exists()), *_files_of(newest[0])]


def list_result(folder: Path, name: str) -> list[Path]:
    """Returns the files of a finished job: the model, report, metrics and predictions."""
    run = folder / RUNS / name
    reports = [
        path for file in ("report.html", "metrics.json", "predictions.csv") if (path := run / file).exists()
    ]
    return [*_files_of(folder / MODEL), *reports]


def result_names(files: Sequence[SentFile], name: str) -> list[SentFile]:
    """Returns the files of a result with those of the run at the top."""
    prefix = f"{RUNS}/{name}/"
    return [SentFile(path=file.path.removeprefix(prefix), chunks=file.chunks) for file in files]


def describe_position(checkpoint: str, stages: Mapping[int, str]) -> str:
    """Returns the position of `ckpt-STAGE-STEP` as text; `stages` are those that have begun, by index."""
    _, stage, step = checkpoint.split("-")
    if (name := stages.get(int(stage))) is not None:
        return f"stage {name}, step {step}"
    return f"end of stage {stages[max(stages)]}" if stages else "start of the training"


def _files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _chunks(path: Path) -> Iterator[bytes]:
    """Yields the content in chunks; an empty file has one empty chunk."""
    with path.open("rb") as file:
        yield file.read(CHUNK_BYTES)
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def _digest(chunk: bytes) -> str:
    return hashlib.sha256(chunk).hexdigest()
