"""Workers that ask for training jobs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, select, update

from api.record.queries import insert_into
from api.training.tables import training_workers

LEASE_DURATION = timedelta(seconds=120)
"""A worker that was not heard of for longer has lost its job. Each heartbeat renews the lease."""
WORKER_RETENTION = timedelta(days=30)
"""Workers that were not heard of for longer are not listed any more."""
MAX_WORKERS_OF_KEY = 64
"""Workers of a key that are listed, those that were heard of last; as many jobs can it have at a time."""
table = training_workers.c


@dataclass(frozen=True)
class Worker:
    """Who leases: the worker's name, the name of its key, its version and its description of the machine.

    With an address, `host:port`, other workers reach its trainings there: it can take part in joint jobs.
    """

    name: str
    key: str
    version: str
    machine: Mapping[str, Any]
    address: str | None = None


class SentLease(NamedTuple):
    """The lease that a request names, and the name of the request's key: one without the other is useless."""

    lease: str
    key: str


def note_worker(connection: Connection, worker: Worker, now: datetime) -> None:
    """Stores that a worker asks for a job."""
    values = {
        "version": worker.version,
        "machine": json.dumps(dict(worker.machine)),
        "address": worker.address,
        "seen_at": now,
        "waits_until": None,
        "problem": None,
        "problem_cause": None,
    }
    statement = insert_into(connection.dialect.name, training_workers)
    statement = statement.on_conflict_do_update(index_elements=["key", "name"], set_=values)
    connection.execute(statement, {"key": worker.key, "name": worker.name, "first_seen_at": now, **values})
    _forget_workers(connection, worker.key, now)


def _forget_workers(connection: Connection, key: str, now: datetime) -> None:
    """Removes workers that were not heard of for long, and the oldest of a key above `MAX_WORKERS_OF_KEY`."""
    connection.execute(delete(training_workers).where(table.seen_at < now - WORKER_RETENTION))
    latest = select(table.name).where(table.key == key).order_by(table.seen_at.desc(), table.name)
    others = connection.execute(latest.offset(MAX_WORKERS_OF_KEY)).scalars().all()
    if others:
        connection.execute(delete(training_workers).where(table.key == key, table.name.in_(others)))


def change_worker(connection: Connection, key: str, name: str, **values: Any) -> None:
    """Changes columns of a worker."""
    of_worker = (table.key == key, table.name == name)
    connection.execute(update(training_workers).where(*of_worker).values(values))
