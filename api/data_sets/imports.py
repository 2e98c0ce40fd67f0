"""Rows of imports: started, kept alive while the service runs them, finished."""

from datetime import datetime

from sqlalchemy import Connection, RowMapping, insert, select, update

from api.data_sets.definitions import find_data_set
from api.data_sets.job_schemas import DataSetImport, ImportList, ImportResult, JobState
from api.data_sets.job_states import job_state
from api.data_sets.tables import data_set_imports
from api.errors import RequestError
from api.messages.causes import Cause, Failure
from api.record.queries import add_audit_entry

MAX_LISTED = 100
INTERRUPTED = Failure(
    "The service was stopped during the import. Send the archive again: photographs stored before stay.",
    Cause(code="import_interrupted"),
)
table = data_set_imports.c


def start_import(connection: Connection, data_set_id: int, name: str, who: str, now: datetime) -> int:
    """Adds a running import; returns its id.

    Raises:
        RequestError: 404 if the data set does not exist.
    """
    data_set = find_data_set(connection, data_set_id)["name"]
    row = {
        "data_set_id": data_set_id,
        "name": name,
        "started_at": now,
        "started_by": who,
        "alive_at": now,
        "state": "running",
        "result": ImportResult().model_dump_json(),
    }
    number: int = connection.execute(insert(data_set_imports).returning(table.id), row).scalar_one()
    facts = {"data_set": data_set, "import": number, "name": name}
    add_audit_entry(connection, who, "import photographs", after=facts)
    return number


def keep_alive(connection: Connection, import_id: int, result: ImportResult, now: datetime) -> None:
    """States what a running import has done so far."""
    changed = update(data_set_imports).where(table.id == import_id, table.state == "running")
    connection.execute(changed.values(alive_at=now, result=result.model_dump_json()))


def finish_import(
    connection: Connection, import_id: int, state: JobState, result: ImportResult, now: datetime
) -> None:
    """States the end of an import."""
    values = {"state": state, "finished_at": now, "alive_at": now, "result": result.model_dump_json()}
    connection.execute(update(data_set_imports).where(table.id == import_id).values(values))


def list_imports(connection: Connection, data_set_id: int, now: datetime) -> ImportList:
    """Returns the newest imports of a data set.

    Raises:
        RequestError: 404 if the data set does not exist.
    """
    find_data_set(connection, data_set_id)
    statement = select(data_set_imports).where(table.data_set_id == data_set_id)
    rows = connection.execute(statement.order_by(table.id.desc()).limit(MAX_LISTED)).mappings()
    return ImportList(imports=[_make_import(row, now) for row in rows])


def show_import(connection: Connection, data_set_id: int, import_id: int, now: datetime) -> DataSetImport:
    """Returns the answer about an import.

    Raises:
        RequestError: 404 if the data set does not have it.
    """
    statement = select(data_set_imports).where(table.data_set_id == data_set_id, table.id == import_id)
    row = connection.execute(statement).mappings().first()
    if row is None:
        raise RequestError(
            404,
            "import_not_found",
            f"The data set {data_set_id} has no import {import_id}. See GET "
            f"/v1/data-sets/{data_set_id}/imports.",
        )
    return _make_import(row, now)


def _make_import(row: RowMapping, now: datetime) -> DataSetImport:
    names = ("id", "name", "started_at", "started_by", "finished_at", "state")
    values = {name: row[name] for name in names}
    result = ImportResult.model_validate_json(row["result"])
    if job_state(row, now) != row["state"]:
        values |= {"state": "failed", "finished_at": row["alive_at"]}
        result = result.with_failure(INTERRUPTED)
    return DataSetImport(**values, result=result)
