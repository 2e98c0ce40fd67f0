"""Training jobs and workers as JSON."""

import json
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, exists, select

from api.data_sets.tables import data_sets
from api.messages.causes import load_cause
from api.training import groups
from api.training.jobs import ACTIVE, COLUMNS, find_job
from api.training.schemas import JobState, TrainingJob, TrainingJobPage, TrainingWorker, TrainingWorkerList
from api.training.tables import proposal_orders, training_jobs, training_members, training_workers

table = training_jobs.c
NO_JOB = {"job": None, "rank": None}
JSON_COLUMNS = ("settings", "progress", "checkpoint", "outcome", "used")


def show_job(connection: Connection, job_id: int, now: datetime) -> TrainingJob:
    """Returns the answer about a job; raises a RequestError, 404, if it does not exist."""
    find_job(connection, job_id)
    row = connection.execute(_select().where(table.id == job_id)).mappings().one()
    return _make_job(connection, row, now)


def list_jobs(
    connection: Connection, state: JobState | None, before: int | None, limit: int, now: datetime
) -> TrainingJobPage:
    """Returns up to `limit` jobs with ids below `before`, the newest first; None = any."""
    statement = _select().order_by(table.id.desc()).limit(limit + 1)
    if state is not None:
        statement = statement.where(table.state == state)
    if before is not None:
        statement = statement.where(table.id < before)
    rows = connection.execute(statement).mappings().all()
    jobs = [_make_job(connection, row, now) for row in rows[:limit]]
    return TrainingJobPage(jobs=jobs, next_before=jobs[-1].id if len(rows) > limit else None)


def _select() -> Select[Any]:
    ordered = exists().where(proposal_orders.c.job_id == table.id).correlate(training_jobs)
    facts = (
        data_sets.c.name.label("data_set_name"),
        table.panel.is_not(None).label("has_panel"),
        ordered.label("for_proposals"),
    )
    return select(*COLUMNS, *facts).join_from(training_jobs, data_sets)


def _count_waiting(connection: Connection, row: RowMapping, now: datetime) -> int:
    """Returns how many workers wait to train a job together."""
    if row["machines"] == 1 or row["state"] != "queued":
        return 0
    joint = groups.find_joint_job(connection, now)
    is_collecting = joint is not None and joint["id"] == row["id"]
    return len(groups.find_waiting(connection, now)) if is_collecting else 0


def _make_job(connection: Connection, row: RowMapping, now: datetime) -> TrainingJob:
    until = row["leased_until"]
    parsed = {name: row[name] and json.loads(row[name]) for name in JSON_COLUMNS}
    others = {
        "data_set": row["data_set_id"],
        "waiting": _count_waiting(connection, row, now),
        "members": [] if row["machines"] == 1 else groups.list_members(connection, row["id"]),
        "is_silent": row["state"] in ACTIVE and until is not None and until <= now,
    }
    return TrainingJob.model_validate({**row, **parsed, **others})


def read_panel(connection: Connection, job_id: int) -> bytes | None:
    """Returns the picture of a job's predictions, a PNG; None if there is none yet. Raises as `find_job`."""
    find_job(connection, job_id)
    panel = connection.execute(select(table.panel).where(table.id == job_id)).scalar()
    return None if panel is None else bytes(panel)


def list_workers(connection: Connection) -> TrainingWorkerList:
    """Returns all workers, by name."""
    active = select(table.worker_key, table.worker, table.id).where(table.state.in_(ACTIVE))
    places: dict[tuple[str, str], dict[str, int]]
    places = {(key, worker): {"job": job_id} for key, worker, job_id in connection.execute(active)}
    member = training_members.c
    members = select(member.worker_key, member.worker, member.job_id, member.rank)
    for key, worker, job_id, rank in connection.execute(members):
        places[key, worker] = {"job": job_id, "rank": rank}
    by_name = select(training_workers).order_by(training_workers.c.name, training_workers.c.key)
    workers = []
    for row in connection.execute(by_name).mappings():
        others = {"problem_cause": load_cause(row["problem_cause"]), "machine": json.loads(row["machine"])}
        place = NO_JOB | places.get((row["key"], row["name"]), {})
        workers.append(TrainingWorker.model_validate({**row, **others, **place}))
    return TrainingWorkerList(workers=workers)
