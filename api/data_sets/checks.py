"""Rows of checks: the latest one of each data set."""

import json
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from api.data_sets.definitions import find_data_set
from api.data_sets.job_schemas import DataSetCheck, Finding, FoundPhotograph, JobState
from api.data_sets.job_states import job_state
from api.data_sets.tables import data_set_checks, data_set_photographs
from api.errors import RequestError
from api.messages.causes import Cause, Failure, failure_columns, read_failure

MAX_SHOWN = 500
"""Findings in an answer."""
INTERRUPTED = Failure(
    "The service was stopped during the check. Start it again.", Cause(code="check_interrupted")
)
table, photographs = data_set_checks.c, data_set_photographs.c
ReadFinding = dict[str, Any]
"""A line that `python -m datasets findings` writes: kind, names, text, cause."""


def start_check(connection: Connection, data_set_id: int, checked: int, who: str, now: datetime) -> int:
    """Replaces the latest check of a data set by a running one; returns its id, that of the data set.

    Raises:
        RequestError: 404 if the data set does not exist, 409 if a check is running.
    """
    find_data_set(connection, data_set_id)
    row = _find(connection, data_set_id)
    if row is not None and job_state(row, now) == "running":
        raise RequestError(409, "check_running", "The data set is being checked. Wait for the result.")
    connection.execute(delete(data_set_checks).where(table.data_set_id == data_set_id))
    values = {"started_at": now, "started_by": who, "alive_at": now, "state": "running", "checked": checked}
    connection.execute(insert(data_set_checks), {"data_set_id": data_set_id, "findings": "[]", **values})
    return data_set_id


def keep_check_alive(connection: Connection, data_set_id: int, now: datetime) -> None:
    """States that a check is running."""
    running = update(data_set_checks).where(table.data_set_id == data_set_id, table.state == "running")
    connection.execute(running.values(alive_at=now))


def finish_check(
    connection: Connection,
    data_set_id: int,
    state: JobState,
    findings: list[ReadFinding],
    failure: Failure | None,
    now: datetime,
) -> None:
    """States the end of a check."""
    values = {
        "state": state,
        "finished_at": now,
        "findings": json.dumps(findings),
        **failure_columns(failure),
    }
    connection.execute(update(data_set_checks).where(table.data_set_id == data_set_id).values(values))


def show_check(connection: Connection, data_set_id: int, now: datetime) -> DataSetCheck | None:
    """Returns the latest check; None if there is none.

    Raises:
        RequestError: 404 if the data set does not exist.
    """
    find_data_set(connection, data_set_id)
    row = _find(connection, data_set_id)
    if row is None:
        return None
    state = job_state(row, now)
    is_interrupted = state != row["state"]
    failure = INTERRUPTED if is_interrupted else read_failure(row)
    found: list[ReadFinding] = json.loads(row["findings"])
    return DataSetCheck(
        **{name: row[name] for name in ("started_at", "started_by", "checked")},
        state=state,
        finished_at=row["alive_at"] if is_interrupted else row["finished_at"],
        findings=_name(connection, data_set_id, found[:MAX_SHOWN]),
        found=len(found),
        error=failure and failure.text,
        error_cause=failure and failure.cause,
    )


def _find(connection: Connection, data_set_id: int) -> RowMapping | None:
    statement = select(data_set_checks).where(table.data_set_id == data_set_id)
    return connection.execute(statement).mappings().first()


def _name(connection: Connection, data_set_id: int, found: list[ReadFinding]) -> list[Finding]:
    """Returns the findings with the photographs that the data set still has."""
    statement = select(photographs.name, photographs.id).where(
        photographs.data_set_id == data_set_id, photographs.removed_at.is_(None)
    )
    ids = dict(map(tuple, connection.execute(statement)))
    return [
        Finding(
            kind=one["kind"],
            photographs=[FoundPhotograph(id=ids[name], name=name) for name in one["names"] if name in ids],
            text=one["text"],
            cause=one.get("cause"),
        )
        for one in found
    ]
