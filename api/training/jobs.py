"""What engineers do with training jobs: order, cancel, stop early, continue after a failure."""

import json
import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update

from api.data_sets.definitions import classes_of
from api.data_sets.versions import find_version
from api.errors import RequestError
from api.record.queries import add_audit_entry
from api.training.job_events import add_state_event
from api.training.schemas import NewTrainingJob
from api.training.tables import deleted_model_versions, training_jobs
from segdec.config import GOOD
from segdec.encoders import ENCODERS
from segdec.runtime.identifiers import is_reserved_folder
from segdec.runtime.suggestions import nearest_name
from segdec.training_schemas import JobSettings

MODEL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
"""Of a run, of folders and in addresses."""
MIN_GOOD = 3
"""Good photographs that a training needs: to train, to validate and to test."""
MAX_NAMED = 3
"""Trainings that an error names."""
ACTIVE = ("leased", "running")
ENDED = ("done", "failed", "cancelled")
table = training_jobs.c
COLUMNS = [column for column in training_jobs.c if column.name != "panel"]


DEFAULT_MINUTES, ALL_STEPS_MINUTES = 30.0, 720.0
"""Time limits without one in the order; the second for trainings that take all steps."""


def is_model_name(name: str) -> bool:
    """Returns whether the model of a job may have this name."""
    return MODEL_NAME.fullmatch(name) is not None and not is_reserved_folder(name)


def check_version(connection: Connection, data_set_id: int, number: int) -> None:
    """Checks that a version of a data set has enough photographs to train.

    Raises:
        RequestError: 404 if the data set or its version does not exist, 409 if too few photographs are good.
    """
    labels = json.loads(find_version(connection, data_set_id, number)["counts"])["labels"]
    if (good := labels.get(GOOD, 0)) < MIN_GOOD:
        text = (
            f"Version {{version}} has {{good}} good photograph{'s' * (good != 1)}. Expected at least "
            "{needed}: label more good photographs, and train with a new version."
        )
        raise RequestError(409, "too_few_good", text, version=number, good=good, needed=MIN_GOOD)


def create_job(
    connection: Connection, new: NewTrainingJob, used: Collection[str], who: str, now: datetime
) -> int:
    """Queues a job; returns its id. Its model gets the next free version.

    Needs a writing transaction. `used` are the versions of this model that are on disk.

    Raises:
        RequestError: 404 if the data set, its version or the earlier job does not exist, 400 if the name, the
            encoder or a class is invalid.
    """
    if not is_model_name(new.model):
        detail = (
            f"The name of the model is {new.model[:80]!r}. Expected A-Z, a-z, 0-9, '_', '-' and '.', not the "
            "name of a file or a device such as 'aliases.json' and 'NUL', for example 'brackets'."
        )
        raise RequestError(400, "bad_model_name", detail)
    version = find_version(connection, new.data_set, new.data_set_version)
    settings = _complete_settings(connection, new)
    _check_settings(settings, classes_of(version))
    row = {
        "model": new.model,
        "version": _next_version(connection, new.model, used),
        "data_set_id": new.data_set,
        "data_set_version": new.data_set_version,
        "settings": settings.model_dump_json(),
        "retrain_of": new.retrain_of,
        "machines": new.machines,
        "created_at": now,
        "created_by": who,
        "state": "queued",
        "attempts": 0,
    }
    number: int = connection.execute(insert(training_jobs).returning(table.id), row).scalar_one()
    facts = {"job": number, "model": new.model, "version": row["version"], "data_set": new.data_set}
    add_audit_entry(connection, who, "order a training", after=facts)
    add_state_event(connection, number, f"Ordered by {who}.", now)
    return number


def _complete_settings(connection: Connection, new: NewTrainingJob) -> JobSettings:
    earlier = {} if new.retrain_of is None else json.loads(find_job(connection, new.retrain_of)["settings"])
    given = {name: value for name in JobSettings.model_fields if (value := getattr(new, name)) is not None}
    if new.all_steps is not None and new.all_steps != bool(earlier.get("all_steps")):
        earlier.pop("minutes", None)  # the time limit of the other kind of training
    settings = {**earlier, **given}
    minutes = ALL_STEPS_MINUTES if settings.get("all_steps") else DEFAULT_MINUTES
    return JobSettings(**{"minutes": minutes, **settings})


def _check_settings(settings: JobSettings, classes: Sequence[str]) -> None:
    if settings.encoder is not None and settings.encoder not in ENCODERS:
        meant = nearest_name(settings.encoder, ENCODERS)
        text = "The encoder is '{name}'; did you mean '{meant}'? Expected one of {expected}."
        values = {"name": settings.encoder[:80], "meant": meant, "expected": ", ".join(ENCODERS)}
        raise RequestError(400, "unknown_encoder", text, **values)
    unknown = [name for name in settings.classes or () if name not in classes]
    if unknown or settings.classes == []:
        named = "The class '{name}' is not in this version" if unknown else "No class is named"
        text = f"{named}. Expected some of {{expected}}, or null for all; '{GOOD}' is always learned."
        values = {"name": "".join(unknown[:1])[:80], "expected": ", ".join(classes)}
        raise RequestError(400, "unknown_class", text, **values)


def _next_version(connection: Connection, model: str, used: Collection[str]) -> str:
    ordered = connection.execute(select(table.version).where(table.model == model)).scalars()
    of_model = deleted_model_versions.c.model == model
    deleted = connection.execute(select(deleted_model_versions.c.version).where(of_model)).scalar()
    numbers = [int(text) for text in (*used, *ordered) if re.fullmatch("[0-9]{1,9}", text)]
    return str(max([*numbers, deleted or 0]) + 1)


def find_job(connection: Connection, job_id: int) -> RowMapping:
    """Returns the row of a job, without its picture; raises a RequestError, 404, if it does not exist."""
    row = connection.execute(select(*COLUMNS).where(table.id == job_id)).mappings().first()
    if row is None:
        detail = f"There is no training job {job_id}. It was deleted, or the number is wrong."
        raise RequestError(404, "job_not_found", detail)
    return row


def change_job(connection: Connection, job_id: int, **values: Any) -> None:
    """Changes columns of a job."""
    connection.execute(update(training_jobs).where(table.id == job_id).values(values))


# === Requests of people ===


def cancel_job(connection: Connection, job_id: int, who: str, now: datetime) -> None:
    """Cancels a job: at once if no worker has it, otherwise the worker's next heartbeat ends it.

    Raises:
        RequestError: 404 if it does not exist, 409 if it has ended.
    """
    row = _find_open(connection, job_id)
    if row["state"] == "queued":
        change_job(connection, job_id, state="cancelled", ended_at=now, request=None)
        add_state_event(connection, job_id, f"Cancelled by {who}.", now)
    else:
        _request(connection, job_id, "cancel", f"{who} cancels the job.", now)
    add_audit_entry(connection, who, "cancel a training", after={"job": job_id})


def stop_job(connection: Connection, job_id: int, who: str, now: datetime) -> None:
    """Ends the training of a job with the best weights so far, which the worker's next heartbeat starts.

    Raises:
        RequestError: 404 if it does not exist, 409 if it has ended, or is queued without a checkpoint.
    """
    row = _find_open(connection, job_id)
    if row["state"] == "queued" and row["checkpoint"] is None:
        detail = f"The training job {job_id} has not started, so it has no weights. Cancel it instead."
        raise RequestError(409, "job_not_started", detail)
    if row["request"] != "cancel":
        text = f"{who} ends the training with the best weights so far."
        _request(connection, job_id, "stop", text, now)
        add_audit_entry(connection, who, "stop a training", after={"job": job_id})


def continue_job(connection: Connection, job_id: int, who: str, now: datetime) -> None:
    """Queues a failed job again; it continues from its last checkpoint.

    Raises:
        RequestError: 404 if it does not exist, 409 if it has not failed.
    """
    row = find_job(connection, job_id)
    if row["state"] != "failed":
        detail = (
            f"The training job {job_id} is {row['state']}. Expected a failed one; order a new job instead."
        )
        raise RequestError(409, "job_not_failed", detail)
    change_job(connection, job_id, state="queued", attempts=0, lease=None, ended_at=None, request=None)
    add_state_event(connection, job_id, f"Queued again by {who}.", now)
    add_audit_entry(connection, who, "continue a training", after={"job": job_id})


def _find_open(connection: Connection, job_id: int) -> RowMapping:
    row = find_job(connection, job_id)
    if row["state"] in ENDED:
        detail = (
            f"The training job {job_id} has ended: it is {row['state']}. Expected one that waits or runs."
        )
        raise RequestError(409, "job_ended", detail)
    return row


def _request(connection: Connection, job_id: int, request: str, text: str, now: datetime) -> None:
    change_job(connection, job_id, request=request)
    add_state_event(connection, job_id, text, now)


def check_no_training(connection: Connection, data_set_id: int) -> None:
    """Raises a RequestError if trainings name the data set: they show what a model was trained on."""
    named = select(table.id, table.model, table.version).where(table.data_set_id == data_set_id)
    rows = connection.execute(named.order_by(table.id)).all()
    if rows:
        shown = [f"{model} {version} (training {job_id})" for job_id, model, version in rows[:MAX_NAMED]]
        more = f" and {len(rows) - MAX_NAMED} more" if len(rows) > MAX_NAMED else ""
        text = (
            "Trainings of models use this data set: {trainings}. Delete the trainings first; that of a model "
            "that is served cannot be deleted."
        )
        raise RequestError(409, "data_set_used", text, trainings=f"{', '.join(shown)}{more}")
