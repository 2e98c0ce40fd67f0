"""Checks of data sets: the kind of their jobs, and the answer about the latest one."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from api.data_sets.definitions import find_data_set
from api.data_sets.job_schemas import DataSetCheck, Finding, FoundPhotograph, StoredCheck
from api.data_sets.tables import data_set_photographs
from api.jobs.job_kind import JobKind
from api.jobs.stored_jobs import find_latest_job
from api.messages.causes import Cause, Failure

MAX_SHOWN = 500
"""Findings in an answer."""
CHECK_JOBS = JobKind(
    "check",
    StoredCheck,
    Failure("The service was stopped during the check. Start it again.", Cause(code="check_interrupted")),
    queue="programs",
    only_latest=True,
)
photographs = data_set_photographs.c


def show_check(connection: Connection, data_set_id: int, now: datetime) -> DataSetCheck | None:
    """Returns the latest check; None if there is none. Raises as `find_data_set`."""
    find_data_set(connection, data_set_id)
    check = find_latest_job(connection, CHECK_JOBS, data_set_id, now)
    if check is None:
        return None
    findings = _name(connection, data_set_id, check.findings[:MAX_SHOWN])
    return DataSetCheck(**{**dict(check), "findings": findings}, found=len(check.findings))


def _name(connection: Connection, data_set_id: int, findings: list[dict[str, Any]]) -> list[Finding]:
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
        for one in findings
    ]
