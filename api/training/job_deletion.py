"""Deletion of training jobs that have ended, with all that belongs to them."""

from collections.abc import Collection

from sqlalchemy import Connection, RowMapping, delete, select

from api.errors import RequestError
from api.record.queries import add_audit_entry, insert_into
from api.training.jobs import ENDED, find_job
from api.training.tables import (
    deleted_model_versions,
    proposal_orders,
    training_events,
    training_files,
    training_jobs,
    training_uploads,
)

versions = deleted_model_versions.c


def delete_job(connection: Connection, job_id: int, served: Collection[str], who: str) -> None:
    """Deletes a job with its events, checkpoint and result; `delete_unused_chunks` deletes the chunks.

    Its version of the model is not given to another job. A model in the folder of models stays. Needs a
    writing transaction. `served` are the versions of its model that the service serves now.

    Raises:
        RequestError: 404 if it does not exist, 409 if it has not ended, or if its model is served.
    """
    row = find_job(connection, job_id)
    if row["state"] not in ENDED:
        detail = f"The training job {job_id} is {row['state']}. Expected one that has ended: cancel it first."
        raise RequestError(409, "job_not_ended", detail)
    if row["used"] is not None and row["version"] in served:
        detail = (
            f"{row['model']} {row['version']} is served, and this job says what it was trained on. Take the "
            "version out of the folder of models and reload it, then delete the job."
        )
        raise RequestError(409, "model_served", detail)
    _keep_version(connection, row)
    for table in (proposal_orders, training_events, training_files, training_uploads):
        connection.execute(delete(table).where(table.c.job_id == job_id))
    connection.execute(delete(training_jobs).where(training_jobs.c.id == job_id))
    facts = {name: row[name] for name in ("model", "version", "data_set_id", "data_set_version", "state")}
    before = {"job": job_id, **facts, "ended_at": row["ended_at"] and row["ended_at"].isoformat()}
    add_audit_entry(connection, who, "delete a training", before=before)


def _keep_version(connection: Connection, row: RowMapping) -> None:
    """Remembers the highest version of a deleted job."""
    known = connection.execute(select(versions.version).where(versions.model == row["model"])).scalar()
    version = max(int(row["version"]), known or 0)
    statement = insert_into(connection.dialect.name, deleted_model_versions)
    statement = statement.on_conflict_do_update(index_elements=["model"], set_={"version": version})
    connection.execute(statement, {"model": row["model"], "version": version})
