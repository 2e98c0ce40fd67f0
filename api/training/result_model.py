"""The model in the result of a finished training job: found, written to a folder, checked."""

import asyncio
from hashlib import sha256
from pathlib import Path

from sqlalchemy import Connection, RowMapping, select

from api.data_sets.definitions import find_data_set
from api.errors import RequestError
from api.training.file_sets import list_files
from api.training.jobs import COLUMNS, find_job
from api.training.tables import training_jobs
from api.training.training_store import TrainingStore
from segdec.artifact import MANIFEST, open_artifact
from segdec.errors import ArtifactError
from segdec.runtime.files import atomic_folder

MODEL = "model/"
"""Folder of the model in a result."""


def find_done_job(connection: Connection, job_id: int) -> RowMapping:
    """Returns the row of a finished job.

    Raises:
        RequestError: 404 if it does not exist, 409 if it is not done.
    """
    row = find_job(connection, job_id)
    if row["state"] != "done":
        detail = f"The training job {job_id} is {row['state']}. Expected one that is done."
        raise RequestError(409, "job_not_done", detail)
    return row


def list_done_jobs(connection: Connection, data_set_id: int, limit: int) -> list[RowMapping]:
    """Returns the rows of up to `limit` finished jobs of a data set, the newest first.

    Raises:
        RequestError: 404 if the data set does not exist.
    """
    find_data_set(connection, data_set_id)
    jobs = training_jobs.c
    statement = select(*COLUMNS).where(jobs.state == "done", jobs.data_set_id == data_set_id)
    return list(connection.execute(statement.order_by(jobs.id.desc()).limit(limit)).mappings())


async def find_model_digest(training: TrainingStore, job_id: int) -> str | None:
    """Returns the SHA-256 of the model's manifest, which identifies the model; None if it has several chunks.

    Raises:
        RequestError: 404 `file_lost` if the store does not have it any more.
    """
    files = {file.path: file for file in await training.read(list_files, job_id, "result")}
    chunks = files[MODEL + MANIFEST].chunks
    if len(chunks) > 1:  # no manifest is so large
        return None
    return sha256(await training.read_chunk(bytes.fromhex(chunks[0]))).hexdigest()


async def write_model(training: TrainingStore, row: RowMapping, folder: Path) -> None:
    """Writes the model of the finished job in `row` as a new folder, which never has an unusable one.

    Raises:
        RequestError: 404 `file_lost` if the store does not have a file any more; as `check_model`.
        OSError: If the folder exists or cannot be written.
    """
    files = await training.read(list_files, row["id"], "result")
    with atomic_folder(folder) as staged:
        for file in files:
            if file.path.startswith(MODEL):
                target = staged / file.path.removeprefix(MODEL)
                target.parent.mkdir(parents=True, exist_ok=True)
                for chunk in file.chunks:
                    data = await training.read_chunk(bytes.fromhex(chunk))
                    await asyncio.to_thread(_append, target, data)
        await asyncio.to_thread(check_model, staged, row)


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def check_model(folder: Path, row: RowMapping) -> None:
    """Checks all files of a model, and that it has the name and version of the job in `row`.

    Raises:
        RequestError: 422 `unusable_model`.
    """
    try:
        artifact = open_artifact(folder)
        artifact.check_files()
    except ArtifactError as error:
        raise RequestError(422, "unusable_model", f"{error} The worker sent a damaged model.") from error
    identity = artifact.manifest.name, artifact.manifest.version
    if identity != (row["model"], row["version"]):
        detail = f"The model is {identity[0]} {identity[1]}; the job ordered {row['model']} {row['version']}."
        raise RequestError(422, "unusable_model", detail)
