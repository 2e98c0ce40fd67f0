"""Leases of training jobs: exactly one worker or group has a job; if it is lost, another one gets the job."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, RowMapping, func, or_, select

from api.data_sets.definitions import classes_of, find_data_set
from api.data_sets.names import printable
from api.data_sets.versions import find_version
from api.errors import RequestError
from api.messages.causes import Cause, dump_cause
from api.training import groups
from api.training.file_sets import drop_files, list_files
from api.training.job_events import add_events, add_state_event
from api.training.jobs import ACTIVE, COLUMNS, change_job, find_job
from api.training.schemas import Heartbeat
from api.training.tables import training_jobs
from api.training.workers import (
    LEASE_DURATION,
    MAX_WORKERS_OF_KEY,
    SentLease,
    Worker,
    change_worker,
    note_worker,
)
from segdec import __version__
from segdec.training_schemas import HeartbeatAnswer, JobSettings, LeasedJob

MAX_ATTEMPTS = 3
"""Leases in a row without a new checkpoint after which a job has failed."""
table = training_jobs.c

Outcome = Literal["done", "failed", "crashed", "cancelled", "released"]
"""How a worker ends its lease: `failed`: something must be corrected; `crashed`: the training ended without
an explanation; `released`: the worker stops, another one may continue.
"""


class Refusal(NamedTuple):
    """Why a worker gets no job: a code for programs, a sentence for people, its cause for other languages.

    Without a code the worker did nothing wrong: a job waits, but not for it alone.
    """

    code: Literal["worker_version", "worker_has_job"] | None
    text: str
    cause: Cause


# === Begin ===


def lease_job(connection: Connection, worker: Worker, now: datetime) -> LeasedJob | Refusal | None:
    """Leases the oldest queued job to a worker; None if there is none.

    A joint job, for several machines, gets a worker only together with others, see `groups`: until then the
    worker waits. It passes to later jobs if too few workers with an address are known. A worker of another
    version, or one that has a job, gets a refusal. The address of a known worker of another key counts as
    none. There is one writing transaction at a time, so that no other worker gets the job.
    """
    end_expired_leases(connection, now)
    address = worker.address
    if groups.is_address_taken(connection, worker, now):
        worker = replace(worker, address=None)
    note_worker(connection, worker, now)
    leased = _refuse_version(worker) or _lease_next(connection, worker, now)
    if isinstance(leased, Refusal) and leased.cause.code == "worker_without_address" and address is not None:
        leased = _refuse_address(address)
    if isinstance(leased, Refusal):
        values = {"problem": leased.text, "problem_cause": dump_cause(leased.cause)}
        change_worker(connection, worker.key, worker.name, **values)
    return leased


def _lease_next(connection: Connection, worker: Worker, now: datetime) -> LeasedJob | Refusal | None:
    if (member := groups.find_member_without_lease(connection, worker)) is not None:
        return _lease_to_member(connection, member, now)
    refusal = _refuse_second_job(connection, worker) or _refuse_many_jobs(connection, worker.key)
    if refusal is not None:
        return refusal
    single, joint = _find_queued(connection, table.machines == 1), groups.find_joint_job(connection, now)
    is_first = joint is not None and (single is None or joint["id"] < single["id"])
    if worker.address is not None and joint is not None and is_first:
        return _wait_for_others(connection, worker, joint, now)
    if single is not None:
        lease = _begin_attempt(connection, single, worker.name, worker.key, now)
        text = f"The worker {worker.name} has the job."
        add_state_event(connection, single["id"], text, now, is_limited=True)
        return _describe_lease(connection, single, lease, 0, now)
    return _refuse_joint_job(connection, worker, now)


def _find_queued(connection: Connection, condition: ColumnElement[bool]) -> RowMapping | None:
    """Returns the oldest queued job for which the condition holds."""
    queued = select(*COLUMNS).where(table.state == "queued", condition).order_by(table.id).limit(1)
    return connection.execute(queued).mappings().first()


def _begin_attempt(connection: Connection, row: RowMapping, worker: str, key: str, now: datetime) -> str:
    """Gives a queued job to a worker; returns its lease."""
    lease = secrets.token_hex(16)
    values = {
        "state": "leased",
        "lease": lease,
        "leased_until": now + LEASE_DURATION,
        "worker": worker,
        "worker_key": key,
        "attempts": row["attempts"] + 1,
        "started_at": row["started_at"] or now,
        "reason": None,
        "progress": None,
    }
    change_job(connection, row["id"], **values)
    return lease


# === Joint jobs ===


def _wait_for_others(
    connection: Connection, worker: Worker, joint: RowMapping, now: datetime
) -> LeasedJob | Refusal | None:
    """Lets a worker wait for a joint job, which begins if it was the last one that was missing."""
    change_worker(connection, worker.key, worker.name, waits_until=now + groups.WAIT_DURATION)
    waiting = groups.find_waiting(connection, now)
    if len(waiting) >= joint["machines"]:
        chosen = waiting[: joint["machines"]]
        groups.form_group(connection, joint["id"], chosen, now)
        _begin_attempt(connection, joint, chosen[0]["name"], chosen[0]["key"], now)
        text = f"The workers {', '.join(row['name'] for row in chosen)} have the job."
        add_state_event(connection, joint["id"], text, now, is_limited=True)
        member = groups.find_member_without_lease(connection, worker)
        return None if member is None else _lease_to_member(connection, member, now)
    text = f"The training job {joint['id']} is for {joint['machines']} machines; waiting now: {len(waiting)}."
    values = {"job": joint["id"], "machines": joint["machines"], "count": len(waiting)}
    return Refusal(None, text, Cause(code="worker_waits", values=values))


def _lease_to_member(connection: Connection, member: RowMapping, now: datetime) -> LeasedJob:
    """Leases a joint job to a member of its group."""
    row = find_job(connection, member["job_id"])
    lease = groups.create_member_lease(connection, member, row["lease"])
    return _describe_lease(connection, row, lease, member["rank"], now)


def _refuse_joint_job(connection: Connection, worker: Worker, now: datetime) -> Refusal | None:
    """Returns why a worker does not get the oldest joint job; None if there is none."""
    row = _find_queued(connection, table.machines > 1)
    if row is None:
        return None
    text = f"The training job {row['id']} is for {row['machines']} machines"
    if worker.address is None:
        text += ", and this worker has no address: start it with --address HOST:PORT."
        values = {"job": row["id"], "machines": row["machines"]}
        return Refusal(None, text, Cause(code="worker_without_address", values=values))
    known = groups.count_known(connection, now)
    text += f"; workers with an address that were heard of lately: {known}."
    values = {"job": row["id"], "machines": row["machines"], "count": known}
    return Refusal(None, text, Cause(code="too_few_workers", values=values))


# === Refusals ===


def _refuse_version(worker: Worker) -> Refusal | None:
    if worker.version == __version__:
        return None
    text = (
        f"The worker has version {worker.version[:40]!r}, the service {__version__}. Install the "
        "version of the service on the machine of the worker."
    )
    values = {"version": worker.version[:40], "service": __version__}
    return Refusal("worker_version", text, Cause(code="worker_version", values=values))


def _refuse_address(address: str) -> Refusal:
    text = (
        f"The address {address!r} of the worker is that of a worker with another key. Start it with the "
        "--address of its own machine, or with the key of the other worker."
    )
    return Refusal(None, text, Cause(code="worker_address_taken", values={"address": address}))


def _refuse_second_job(connection: Connection, worker: Worker) -> Refusal | None:
    of_worker = (table.worker == worker.name, table.worker_key == worker.key)
    held = connection.execute(select(table.id).where(table.state.in_(ACTIVE), *of_worker)).scalar()
    held = held or groups.find_joint_job_of(connection, worker)
    if held is None:
        return None
    text = (
        f"The worker {worker.name} has the training job {held} already, and a worker has one job at a time. "
        f"After a restart it waits until that lease has ended, {LEASE_DURATION.total_seconds():.0f} s after "
        "its last report. Start a second worker with another --name."
    )
    values = {"worker": worker.name, "job": held, "seconds": round(LEASE_DURATION.total_seconds())}
    return Refusal("worker_has_job", text, Cause(code="worker_has_job", values=values))


def _refuse_many_jobs(connection: Connection, key: str) -> Refusal | None:
    """Returns why workers with this key get no further job; None if they may."""
    held = select(func.count()).where(table.state.in_(ACTIVE), table.worker_key == key)
    if connection.execute(held).scalar_one() < MAX_WORKERS_OF_KEY:
        return None
    text = (
        f"Workers with the key {key!r} have {MAX_WORKERS_OF_KEY} training jobs, the most at a time. Give "
        "further workers another key."
    )
    values = {"key": key, "limit": MAX_WORKERS_OF_KEY}
    return Refusal(None, text, Cause(code="key_has_many_jobs", values=values))


def _describe_lease(
    connection: Connection, row: RowMapping, lease: str, rank: int, now: datetime
) -> LeasedJob:
    version = find_version(connection, row["data_set_id"], row["data_set_version"])
    checkpoint = None if row["checkpoint"] is None else json.loads(row["checkpoint"])
    if checkpoint is not None and checkpoint["version"] != __version__:
        text = f"Its checkpoint is of version {checkpoint['version']}, so that the training starts again."
        add_state_event(connection, row["id"], text, now)
        drop_files(connection, row["id"], "checkpoint")
        change_job(connection, row["id"], checkpoint=None)
        checkpoint = None
    if rank > 0:
        checkpoint = None  # only the chief continues from it
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
        rank=rank,
        addresses=[member.address for member in groups.list_members(connection, row["id"])],
    )


# === Renewal ===


def renew_lease(
    connection: Connection, job_id: int, sent: SentLease, report: Heartbeat, now: datetime
) -> HeartbeatAnswer:
    """Renews a lease and stores what the worker reports; returns what it must do.

    A lease that has expired is renewed too, as long as no other worker has got the job. If another member of
    a group is lost, the attempt ends, and the next report is rejected.

    Raises:
        RequestError: 404 if the job does not exist, 409 `lease_lost` if the lease is not that of the job, or
            another key took it.
    """
    row, member = find_held(connection, job_id, sent)
    has_steps = "step" in json.loads(row["progress"] or "{}")
    if _is_chief(member):
        state = "running" if report.is_training else row["state"]
        progress = json.dumps(report.progress)
        change_job(connection, job_id, state=state, leased_until=now + LEASE_DURATION, progress=progress)
    add_events(connection, job_id, report.events, now)
    worker = row if member is None else member
    change_worker(connection, worker["worker_key"], worker["worker"], seen_at=now)
    lost = None if member is None else groups.renew_member(connection, member, now)
    if lost is not None:
        _end_attempt(connection, row, _describe_silence(lost), now)
    return HeartbeatAnswer(command=row["request"] or "continue", has_steps=has_steps)


def find_held(connection: Connection, job_id: int, sent: SentLease) -> tuple[RowMapping, RowMapping | None]:
    """Returns the row of a job that a worker, or a member of its group, has leased, and that of the member;
    raises as `renew_lease`.
    """
    row = find_job(connection, job_id)
    member = groups.find_member(connection, job_id, sent)
    if row["state"] not in ACTIVE or (member is None and not groups.is_same_lease(row, sent)):
        raise _lease_lost(row)
    return row, member


def _is_chief(member: RowMapping | None) -> bool:
    return member is None or member["rank"] == 0


def find_leased(connection: Connection, job_id: int, sent: SentLease) -> RowMapping:
    """Returns the row of a job that a worker or the chief of a group has leased; raises as `renew_lease`."""
    row, member = find_held(connection, job_id, sent)
    if not _is_chief(member):
        raise _lease_lost(row)
    return row


def _lease_lost(row: RowMapping) -> RequestError:
    reasons = {
        "queued": "it waits for a worker again",
        "leased": f"the worker {row['worker']} has it",
        "running": f"the worker {row['worker']} has it",
    }
    reason = reasons.get(row["state"], f"it is {row['state']}")
    detail = (
        f"This lease of the training job {row['id']} has ended, or another key took it: {reason}. Stop "
        "working on it."
    )
    return RequestError(409, "lease_lost", detail)


# === End ===


def end_expired_leases(connection: Connection, now: datetime) -> None:
    """Queues jobs again whose workers have not been heard of for longer than their lease.

    A lease that ends far in the future was made before the clock was set back.
    """
    lost = groups.find_lost(connection, now)
    expired = or_(
        table.leased_until <= now, table.leased_until > now + 2 * LEASE_DURATION, table.id.in_(lost)
    )
    statement = select(*COLUMNS).where(table.state.in_(ACTIVE), expired).order_by(table.id)
    for row in connection.execute(statement).mappings().all():
        why = _describe_silence(lost.get(row["id"], row["worker"]))
        _end_attempt(connection, row, why, now)


def _describe_silence(worker: str) -> str:
    return f"Nothing was heard of the worker {worker} for {LEASE_DURATION.total_seconds():.0f} s."


def end_lease(
    connection: Connection,
    job_id: int,
    sent: SentLease,
    outcome: Outcome,
    reason: str,
    now: datetime,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Ends a lease as its worker reports; a repeated report changes nothing.

    A member of a group that is not its chief ends the attempt for all, except with `done`: its part is done.
    `facts` are those of a finished training: rating, metrics.

    Raises:
        RequestError: As `renew_lease`; 409 `no_result` if a finished job has no uploaded model.
    """
    row, reason = find_job(connection, job_id), printable(reason)
    if row["state"] == outcome and groups.is_same_lease(row, sent):
        return
    row, member = find_held(connection, job_id, sent)
    if member is not None and not _is_chief(member):
        if outcome == "done":
            groups.leave_group(connection, member)
            return
        reason = f"The worker {member['worker']}: {reason}"
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
    groups.end_group(connection, row["id"])
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
    groups.end_group(connection, row["id"])
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
