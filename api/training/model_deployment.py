"""Puts the model of a finished job into the folder of models."""

import asyncio
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, RowMapping

from api.errors import RequestError
from api.inspecting.service import InspectionService
from api.models.aliases import set_candidate
from api.record.queries import add_audit_entry
from api.training.job_events import add_state_event
from api.training.jobs import change_job
from api.training.result_model import check_model, find_done_job, find_model_digest, write_model
from api.training.training_store import TrainingStore
from segdec.artifact import ALIASES, MANIFEST, STABLE, manifest_sha256
from segdec.runtime.files import write_text_atomic
from segdec.schemas import ReloadAnswer


async def deploy_model(
    service: InspectionService, training: TrainingStore, job_id: int, who: str, caller: Mapping[str, str]
) -> ReloadAnswer:
    """Writes the model of a job as a version of its name and makes it the candidate; the first version of a
    new name becomes stable. If it cannot be served, nothing changes.

    `who` is for the audit log, `caller` for the log of reloads.

    Raises:
        RequestError: 404 if the job does not exist, 409 if it is not done, if the folder of models cannot be
            written or has this version already, 422 if the model cannot be served.
    """
    row = await training.read(find_done_job, job_id)
    folder = _find_folder(service, row)
    is_written = row["used"] is None and await _is_written(training, job_id, folder)
    if folder.exists() and not is_written:
        detail = f"{folder} exists already. Is the model in use? Delete the folder, or order a new training."
        raise RequestError(409, "version_exists", detail)
    is_new_name = not service.models.versions(row["model"])
    with _without_empty_folder(folder.parent):
        with _explained_errors(folder):
            if not is_new_name:
                await asyncio.to_thread(_keep_stable, service, row["model"], folder.parent)
            if not is_written:
                await write_model(training, row, folder)
        try:
            if is_written:
                await asyncio.to_thread(check_model, folder, row)
            if is_new_name:
                answer = await service.reload(row["model"], caller)
            else:
                answer = await service.change_model(row["model"], set_candidate(row["version"]), caller)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise
    await training.write(_note_use, job_id, row, who, is_new_name, datetime.now(UTC))
    return answer


def _find_folder(service: InspectionService, row: RowMapping) -> Path:
    """Returns the folder of the version; raises a RequestError, 409, if it cannot be created."""
    models = service.settings.models
    if models is None or service.loader is None:
        detail = "A single model is served (--model). Serve a folder of models: --models FOLDER."
        raise RequestError(409, "models_fixed", detail)
    if not os.access(models, os.W_OK):
        detail = f"{models} is read-only. Copy the model there by other means, or mount it writable."
        raise RequestError(409, "models_fixed", detail)
    return Path(models / row["model"] / row["version"])


async def _is_written(training: TrainingStore, job_id: int, folder: Path) -> bool:
    """Returns whether the folder has the model of the job: a service was killed before it used the model."""
    if not (folder / MANIFEST).is_file():
        return False
    return await asyncio.to_thread(manifest_sha256, folder) == await find_model_digest(training, job_id)


@contextmanager
def _without_empty_folder(folder: Path) -> Iterator[None]:
    """Removes the folder of a model at the end if no version has been written."""
    try:
        yield
    finally:
        with suppress(OSError):  # it has a version
            folder.rmdir()


@contextmanager
def _explained_errors(folder: Path) -> Iterator[None]:
    """Raises a RequestError, 409, if the folder cannot be written."""
    try:
        yield
    except FileExistsError as error:
        raise RequestError(409, "version_exists", f"{folder} was created meanwhile.") from error
    except OSError as error:
        detail = f"{folder} cannot be written: {error.strerror or error}. Nothing was changed."
        raise RequestError(409, "models_fixed", detail) from error


def _keep_stable(service: InspectionService, name: str, folder: Path) -> None:
    """Makes the version that answers now stable: without aliases the next start would serve the newest."""
    aliases, stable = folder / ALIASES, service.find_model(name).identity.version
    if not aliases.exists():
        write_text_atomic(aliases, json.dumps({STABLE: stable}, indent=2) + "\n")


def _note_use(
    connection: Connection, job_id: int, row: RowMapping, who: str, is_new_name: bool, now: datetime
) -> None:
    change_job(connection, job_id, used=json.dumps({"who": who, "at": now.isoformat()}))
    alias = "stable" if is_new_name else "candidate"
    facts = {"job": job_id, "model": row["model"], "version": row["version"], "alias": alias}
    add_audit_entry(connection, who, "use a trained model", after=facts)
    add_state_event(connection, job_id, f"{who} put the model into use, as {alias}.", now)
