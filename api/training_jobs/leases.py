"""Leases of training jobs: exactly one worker has a job, and a job whose worker is lost gets another one."""

import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, RowMapping, delete, or_, select, update

from api.data_sets.definitions import classes_of, find_data_set
from api.data_sets.names import printable
from api.data_sets.versions import find_version
from api.errors import RequestError
from api.records.queries import insert_into
from api.records.tables import training_jobs, training_workers
from api.training_jobs.file_sets import drop_files, list_files
from api.training_jobs.job_events import NewEvent, add_events, add_state_event
from api.training_jobs.jobs import ACTIVE, COLUMNS, change_job, find_job
from api.training_jobs.schemas import Command, JobSettings, LeasedJob
from segdec import __version__

LEASE_DURATION = timedelta(seconds=120)
"""Each heartbeat renews the lease."""
WORKER_RETENTION = timedelta(days=30)
"""Workers that were not heard of for longer are not listed any more."""
MAX_WORKERS = 500
"""Workers that are listed: those that were heard of last."""
MAX_ATTEMPTS = 3
"""Leases in a row without a new checkpoint after which a job has failed."""
table = training_jobs.c

Outcome = Literal["done", "failed", "crashed", "cancelled", "released"]
"""How a worker ends its lease: `failed`: something must be corrected; `crashed`: the training ended without
an explanation; `released`: the worker stops, another one may continue.
"""


@dataclass(frozen=True)
class Worker:
    """Who leases: the worker's name, the name of its key, its version and its description of the machine."""

    name: str
    key: str
    version: str
    machine: Mapping[str, Any]


class Refusal(NamedTuple):
    """Why a worker gets no job: a code for programs, a sentence for people."""

    code: Literal["worker_version", "worker_has_job"]
    text: str


@dataclass(frozen=True)
class Report:
    """What a heartbeat tells."""

    is_training: bool
    progress: Mapping[str, Any]
    events: Sequence[NewEvent] = ()


# === Begin ===


def lease_job(connection: Connection, worker: Worker, now: datetime) -> LeasedJob | Refusal | None:
    """Leases the oldest queued job to a worker; None if there is none.

    A worker of another version, or one that has a job, gets a refusal.

    Args:
        connection: In a writing transaction, of which there is one at a time: no other worker gets the job.
        worker: The worker.
        now: The time.
    """
    end_expired_leases(connection, now)
    refusal = _refuse(connection, worker)
    note_worker(connection, worker, now, None if refusal is None else refusal.text)
    _forget_workers(connection, now)
    if refusal is not None:
        return refusal
    queued = select(*COLUMNS).where(table.state == "queued").order_by(table.id).limit(1)
    row = connection.execute(queued).mappings().first()
    if row is None:
        return None
    lease, job_id = secrets.token_hex(16), row["id"]
    values = {"state": "leased", "lease": lease, "leased_until": now + LEASE_DURATION, "worker": worker.name}
    values |= {
        "worker_key": worker.key,
        "attempts": row["attempts"] + 1,
        "started_at": row["started_at"] or now,
        "reason": None,
    }
    change_job(connection, job_id, **values)
    add_state_event(connection, job_id, f"The worker {worker.name} has the job.", now, is_limited=True)
    return _describe_lease(connection, row, lease, now)


def _forget_workers(connection: Connection, now: datetime) -> None:
    """Removes workers that were not heard of for long, and the oldest above `MAX_WORKERS`."""
    seen_at = training_workers.c.seen_at
    connection.execute(delete(training_workers).where(seen_at < now - WORKER_RETENTION))
    latest = select(training_workers.c.name).order_by(seen_at.desc(), training_workers.c.name)
    others = connection.execute(latest.offset(MAX_WORKERS)).scalars().all()
    if others:
        connection.execute(delete(training_workers).where(training_workers.c.name.in_(others)))


def _refuse(connection: Connection, worker: Worker) -> Refusal | None:
    """Returns why a worker gets no job; None if it may have one."""
    if worker.version != __version__:
        text = (
            f"The worker has version {worker.version[:40]!r}, the service {__version__}. Install the "
            "version of the service on the machine of the worker."
        )
        return Refusal("worker_version", text)
    of_worker = (table.worker == worker.name, table.worker_key == worker.key)
    held = connection.execute(select(table.id).where(table.state.in_(ACTIVE), *of_worker)).scalar()
    if held is None:
        return None
    text = (
        f"The worker {worker.name} has the training job {held} already, and a worker has one job at a time. "
        f"After a restart it waits until that lease has ended, {LEASE_DURATION.total_seconds():.0f} s after "
        "its last report. Start a second worker with another --name."
    )
    return Refusal("worker_has_job", text)


def _describe_lease(connection: Connection, row: RowMapping, lease: str, now: datetime) -> LeasedJob:
    version = find_version(connection, row["data_set_id"], row["data_set_version"])
    checkpoint = None if row["checkpoint"] is None else json.loads(row["checkpoint"])
    if checkpoint is not None and checkpoint["version"] != __version__:
        text = f"Its checkpoint is of version {checkpoint['version']}, so that the training starts again."
        add_state_event(connection, row["id"], text, now)
        drop_files(connection, row["id"], "checkpoint")
        change_job(connection, row["id"], checkpoint=None)
        checkpoint = None
    return LeasedJob(
        id=row["id"],
        lease=lease,
        lease_s=LEASE_DURATION.total_seconds(),
        model=row["model"],
        version=row["version"],
        settings=JobSettings.model_validate_json(row["settings"]),
        data_set_name=find_data_set(connection, row["data_set_id"])["name"],
        data_set_version=row["data_set_version"],
        digest=bytes(version["digest"]).hex(),
        classes=classes_of(version),
        checkpoint=None if checkpoint is None else list_files(connection, row["id"], "checkpoint"),
        checkpoint_position=None if checkpoint is None else checkpoint["position"],
    )


def note_worker(connection: Connection, worker: Worker, now: datetime, problem: str | None = None) -> None:
    """Stores when a worker was seen, and why it got no job."""
    values = {
        "key": worker.key,
        "version": worker.version,
        "machine": json.dumps(dict(worker.machine)),
        "seen_at": now,
        "problem": problem,
    }
    statement = insert_into(connection.dialect.name, training_workers)
    statement = statement.on_conflict_do_update(index_elements=["name"], set_=values)
    connection.execute(statement, {"name": worker.name, "first_seen_at": now, **values})


# === Renewal ===


def renew_lease(connection: Connection, job_id: int, lease: str, report: Report, now: datetime) -> Command:
    """Renews a lease and stores what the worker reports; returns what it must do.

    A lease that has expired is renewed too, as long as no other worker has got the job.

    Raises:
        RequestError: 404 if the job does not exist, 409 `lease_lost` if the lease is not that of the job.
    """
    row = find_leased(connection, job_id, lease)
    state = "running" if report.is_training else row["state"]
    progress = json.dumps(dict(report.progress))
    change_job(connection, job_id, state=state, leased_until=now + LEASE_DURATION, progress=progress)
    add_events(connection, job_id, report.events, now)
    seen = update(training_workers).where(training_workers.c.name == row["worker"])
    connection.execute(seen.values(seen_at=now))
    command: Command = row["request"] or "continue"
    return command


def find_leased(connection: Connection, job_id: int, lease: str) -> RowMapping:
    """Returns the row of a job that a worker has leased; raises as `renew_lease`."""
    row = find_job(connection, job_id)
    if row["state"] not in ACTIVE or not _is_same(row["lease"], lease):
        raise _lease_lost(row)
    return row


def _is_same(known: str | None, sent: str) -> bool:
    return known is not None and hmac.compare_digest(known.encode(), sent.encode())


def _lease_lost(row: RowMapping) -> RequestError:
    reasons = {
        "queued": "it waits for a worker again, because nothing was heard for too long",
        "leased": f"the worker {row['worker']} has it",
        "running": f"the worker {row['worker']} has it",
    }
    reason = reasons.get(row["state"], f"it is {row['state']}")
    detail = f"This lease of the training job {row['id']} has ended: {reason}. Stop working on it."
    return RequestError(409, "lease_lost", detail)


# === End ===


def end_expired_leases(connection: Connection, now: datetime) -> None:
    """Queues jobs again whose workers have not been heard of for longer than their lease.

    A lease that ends far in the future was made before the clock was set back.
    """
    expired = or_(table.leased_until <= now, table.leased_until > now + 2 * LEASE_DURATION)
    statement = select(*COLUMNS).where(table.state.in_(ACTIVE), expired).order_by(table.id)
    for row in connection.execute(statement).mappings().all():
        why = f"Nothing was heard of the worker {row['worker']} for {LEASE_DURATION.total_seconds():.0f} s."
        _end_attempt(connection, row, why, now)


def end_lease(
    connection: Connection,
    job_id: int,
    lease: str,
    outcome: Outcome,
    reason: str,
    now: datetime,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Ends a lease as its worker reports; a repeated report changes nothing.

    Args:
        connection: In a writing transaction.
        job_id: The job.
        lease: Of the worker.
        outcome: How it ended.
        reason: A sentence for people.
        now: The time.
        facts: Of a finished training: rating, metrics.

    Raises:
        RequestError: As `renew_lease`; 409 `no_result` if a finished job has no uploaded model.
    """
    row, reason = find_job(connection, job_id), printable(reason)
    if row["state"] == outcome and _is_same(row["lease"], lease):
        return
    row = find_leased(connection, job_id, lease)
    if outcome == "crashed":
        _end_attempt(connection, row, reason, now)
    elif outcome == "released":
        _queue_again(connection, row, reason, now, attempts=max(0, row["attempts"] - 1))
    else:
        if outcome == "done":
            _check_result(connection, job_id)
        outcome_json = None if facts is None else json.dumps(dict(facts))
        _finish(connection, row, outcome, reason, now, outcome_json)


def _check_result(connection: Connection, job_id: int) -> None:
    paths = {file.path for file in list_files(connection, job_id, "result")}
    if "model/manifest.json" not in paths:
        detail = f"The result of the training job {job_id} has no model/manifest.json. Upload it first."
        raise RequestError(409, "no_result", detail)


def _end_attempt(connection: Connection, row: RowMapping, why: str, now: datetime) -> None:
    if row["request"] == "cancel":
        _finish(connection, row, "cancelled", why, now)
    elif row["attempts"] >= MAX_ATTEMPTS:
        text = f"{MAX_ATTEMPTS} attempts in a row ended without a new checkpoint. The last one: {why}"
        _finish(connection, row, "failed", text, now)
    else:
        _queue_again(connection, row, why, now, attempts=row["attempts"])


def _queue_again(connection: Connection, row: RowMapping, why: str, now: datetime, *, attempts: int) -> None:
    if row["request"] == "cancel":
        _finish(connection, row, "cancelled", why, now)
        return
    values = {"state": "queued", "lease": None, "leased_until": None, "attempts": attempts, "reason": why}
    change_job(connection, row["id"], **values)
    follows = "continues from its last checkpoint" if row["checkpoint"] else "starts again"
    text = f"{why} The job waits for a worker and {follows}."
    add_state_event(connection, row["id"], text, now, is_limited=True)


def _finish(
    connection: Connection,
    row: RowMapping,
    state: Literal["done", "failed", "cancelled"],
    reason: str,
    now: datetime,
    outcome_json: str | None = None,
) -> None:
    """Ends a job; the checkpoint of a failed one stays, so that it can be continued."""
    values = {
        "state": state,
        "leased_until": None,
        "ended_at": now,
        "request": None,
        "reason": reason or None,
    }
    change_job(connection, row["id"], **values, outcome=outcome_json)
    if state != "failed":
        drop_files(connection, row["id"], "checkpoint")
        change_job(connection, row["id"], checkpoint=None)
    add_state_event(connection, row["id"], f"The job is {state}.{f' {reason}' if reason else ''}", now)
