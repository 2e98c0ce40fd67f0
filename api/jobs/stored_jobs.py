"""Rows of jobs: started, kept alive while the service runs them, finished."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, delete, insert, select, update

from api.errors import RequestError
from api.jobs.job_kind import A, JobKind
from api.jobs.schemas import JobState
from api.jobs.tables import jobs
from api.messages.causes import Failure, failure_columns, read_failure
from segdec.schemas import AnswerPart

KEEP_ALIVE_TIMEOUT_S = 60.0
"""A job of another process that was not kept alive for so long has ended with its service."""
table = jobs.c
jobs_of_this_process: set[tuple[int, datetime]] = set()
"""Ids and starts of the jobs that this process runs: they are running also after a jump of the clock."""


def start_job(
    connection: Connection,
    kind: JobKind[Any],
    data_set_id: int,
    progress: AnswerPart,
    who: str,
    now: datetime,
) -> int:
    """Adds a running job; returns its id.

    Raises:
        RequestError: 409 if one is running, and the kind allows only one.
    """
    if kind.only_latest:
        if kind.name in list_running(connection, data_set_id, now):
            detail = f"A job of the data set is running: {kind.name}. Wait for the result."
            raise RequestError(409, "job_running", detail)
        connection.execute(delete(jobs).where(_is_of(kind, data_set_id)))
    started = {"started_at": now, "started_by": who, "alive_at": now, "state": "running"}
    row = {"kind": kind.name, "data_set_id": data_set_id, "progress": progress.model_dump_json(), **started}
    number: int = connection.execute(insert(jobs).returning(table.id), row).scalar_one()
    return number


def save_progress(connection: Connection, job_id: int, progress: AnswerPart, now: datetime) -> None:
    """States that a job is running, and what it has done.

    Raises:
        RequestError: 409 if another job has replaced it.
    """
    if not _change(connection, job_id, progress, alive_at=now):
        raise RequestError(409, "job_replaced", "Another job has replaced this one.")


def finish_job(
    connection: Connection,
    job_id: int,
    state: JobState,
    progress: AnswerPart,
    failure: Failure | None,
    now: datetime,
) -> None:
    """States the end of a job, unless another one has replaced it."""
    _change(connection, job_id, progress, state=state, finished_at=now, **failure_columns(failure))


def interrupt_jobs(connection: Connection, job_ids: Sequence[int]) -> None:
    """States that the service of running jobs has ended."""
    running = update(jobs).where(table.id.in_(job_ids), table.state == "running")
    connection.execute(running.values(state="failed", finished_at=table.alive_at))


def _change(connection: Connection, job_id: int, progress: AnswerPart, **values: Any) -> bool:
    """Changes a running job; returns whether there is one."""
    running = update(jobs).where(table.id == job_id, table.state == "running")
    return connection.execute(running.values(progress=progress.model_dump_json(), **values)).rowcount > 0


# === Answers ===


def list_running(connection: Connection, data_set_id: int, now: datetime) -> Sequence[str]:
    """Returns the kinds of the running jobs of a data set."""
    running = select(table.id, table.kind, table.started_at, table.alive_at).where(
        table.data_set_id == data_set_id, table.state == "running"
    )
    return [row["kind"] for row in connection.execute(running).mappings() if _is_alive(row, now)]


def list_jobs(
    connection: Connection, kind: JobKind[A], data_set_id: int, now: datetime, limit: int
) -> list[A]:
    """Returns the newest jobs of a data set, the newest first."""
    newest = select(jobs).where(_is_of(kind, data_set_id)).order_by(table.id.desc()).limit(limit)
    return [_make_answer(kind, row, now) for row in connection.execute(newest).mappings()]


def find_latest_job(connection: Connection, kind: JobKind[A], data_set_id: int, now: datetime) -> A | None:
    """Returns the latest job of a data set; None if there is none."""
    return next(iter(list_jobs(connection, kind, data_set_id, now, 1)), None)


def find_job(
    connection: Connection, kind: JobKind[A], data_set_id: int, job_id: int, now: datetime
) -> A | None:
    """Returns a job; None if the data set does not have it."""
    one = select(jobs).where(_is_of(kind, data_set_id), table.id == job_id)
    row = connection.execute(one).mappings().first()
    return None if row is None else _make_answer(kind, row, now)


def _is_of(kind: JobKind[Any], data_set_id: int) -> ColumnElement[bool]:
    return and_(table.data_set_id == data_set_id, table.kind == kind.name)


def _is_alive(row: RowMapping, now: datetime) -> bool:
    """A job that another process kept alive in the future ended before the clock was set back."""
    is_recent = abs(now - row["alive_at"]) <= timedelta(seconds=KEEP_ALIVE_TIMEOUT_S)
    return is_recent or (row["id"], row["started_at"]) in jobs_of_this_process


def _make_answer(kind: JobKind[A], row: RowMapping, now: datetime) -> A:
    state, finished_at = row["state"], row["finished_at"]
    if state == "running" and not _is_alive(row, now):
        state, finished_at = "failed", row["alive_at"]
    failure = read_failure(row) or (kind.interrupted if state == "failed" else None)
    return kind.answer(
        **json.loads(row["progress"]),
        **{name: row[name] for name in ("id", "started_at", "started_by")},
        state=state,
        finished_at=finished_at,
        error=failure and failure.text,
        error_cause=failure and failure.cause,
    )
