"""Imports of archives: the kind of their jobs, and the answers about them."""

from datetime import datetime

from sqlalchemy import Connection

from api.data_sets.definitions import find_data_set
from api.data_sets.job_schemas import DataSetImport, ImportAnswers, ImportList
from api.errors import RequestError
from api.jobs.job_kind import JobKind
from api.jobs.stored_jobs import find_job, list_jobs
from api.messages.causes import Cause, Failure

MAX_LISTED = 100
IMPORT_JOBS = JobKind(
    "import",
    DataSetImport,
    Failure(
        "The service was stopped during the import. Send the archive again: photographs stored before stay.",
        Cause(code="import_interrupted"),
    ),
    queue="programs",
)


def list_imports(connection: Connection, data_set_id: int, now: datetime) -> ImportList:
    """Returns the newest imports of a data set; raises as `find_data_set`."""
    find_data_set(connection, data_set_id)
    return ImportList(imports=list_jobs(connection, IMPORT_JOBS, data_set_id, now, MAX_LISTED))


def show_import(connection: Connection, data_set_id: int, import_id: int, now: datetime) -> DataSetImport:
    """Returns the answer about an import; raises a RequestError, 404, if the data set does not have it."""
    job = find_job(connection, IMPORT_JOBS, data_set_id, import_id, now)
    if job is None:
        detail = f"The data set {data_set_id} has no import {import_id}. Check the number."
        raise RequestError(404, "import_not_found", detail)
    return job


def combine_answers(earlier: DataSetImport, sent: ImportAnswers) -> ImportAnswers:
    """Returns the answers with which an archive is imported again, those of the earlier import included.

    Raises:
        RequestError: 400 if nothing is answered, or a label that the import does not ask about, or one twice.
    """
    labels = [*sent.good_labels, *sent.defect_labels]
    unclear = earlier.result.unclear_labels
    if sent == ImportAnswers() or len(set(labels)) < len(labels) or not set(labels).issubset(unclear):
        raise RequestError(
            400,
            "bad_answers",
            "Expected an answer to a question of the import: each of its unclear_labels ({labels}) at most "
            "once, in good_labels or defect_labels; or annotations_before_rotation.",
            labels=", ".join(unclear) or "–",
        )
    before = earlier.answers
    return ImportAnswers(
        good_labels=(*before.good_labels, *sent.good_labels),
        defect_labels=(*before.defect_labels, *sent.defect_labels),
        annotations_before_rotation=before.annotations_before_rotation
        if sent.annotations_before_rotation is None
        else sent.annotations_before_rotation,
    )
