"""Data sets: created, found, renamed, given further classes, counted."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, func, insert, select, update

from api.data_sets.names import IGNORE, add_clear_classes, extend_classes, printable
from api.data_sets.schemas import DataSet, DataSetCounts, DataSetList
from api.data_sets.tables import data_set_photographs, data_set_versions, data_sets
from api.errors import RequestError
from api.record.queries import add_audit_entry

MAX_DATA_SETS = 1000
table, photographs = data_sets.c, data_set_photographs.c


def create_data_set(
    connection: Connection, name: str, classes: Sequence[str], who: str, now: datetime
) -> int:
    """Creates an empty data set; returns its id.

    Raises:
        RequestError: 409 if there is one with this name, or too many; 400 for an invalid class.
    """
    values = {"name": _free_name(connection, name), "classes": add_clear_classes((), classes)}
    if connection.execute(select(func.count()).select_from(data_sets)).scalar_one() >= MAX_DATA_SETS:
        detail = "There are {limit} data sets already. Expected fewer: use one of them."
        raise RequestError(409, "too_many_data_sets", detail, limit=MAX_DATA_SETS)
    row = {"created_at": now, "created_by": who, **values, "classes": _to_json(values["classes"])}
    number: int = connection.execute(insert(data_sets).returning(table.id), row).scalar_one()
    add_audit_entry(connection, who, "create a data set", after=values)
    return number


def change_data_set(
    connection: Connection,
    data_set_id: int,
    name: str | None,
    added_classes: Sequence[str],
    unclear_are_defects: bool,
    who: str,
) -> None:
    """Renames a data set and adds classes at the end of its list; None, or an empty list: no change.

    `unclear_are_defects`: somebody has said that names which may mean a good part are classes of defects.

    Raises:
        RequestError: 404 if it does not exist, 409 if another one has this name, 400 for an invalid class.
    """
    row = find_data_set(connection, data_set_id)
    add = extend_classes if unclear_are_defects else add_clear_classes
    classes, new_name = add(classes_of(row), added_classes), row["name"]
    if name is not None and printable(name) != row["name"]:
        new_name = _free_name(connection, name)
    _change(connection, row, new_name, classes, who)


def set_classes(connection: Connection, row: RowMapping, classes: list[str], who: str) -> None:
    """Replaces the classes of a data set, the row of `find_data_set`; see `api.data_sets.names`."""
    _change(connection, row, row["name"], classes, who)


def _change(connection: Connection, row: RowMapping, name: str, classes: list[str], who: str) -> None:
    before, after = {"name": row["name"], "classes": classes_of(row)}, {"name": name, "classes": classes}
    if after != before:
        values = {"name": name, "classes": _to_json(classes)}
        connection.execute(update(data_sets).where(table.id == row["id"]).values(values))
        add_audit_entry(connection, who, "change a data set", before=before, after=after)


def find_data_set(connection: Connection, data_set_id: int) -> RowMapping:
    """Returns the row of a data set; raises a RequestError, 404, if it does not exist."""
    row = connection.execute(select(data_sets).where(table.id == data_set_id)).mappings().first()
    if row is None:
        detail = f"There is no data set {data_set_id}. It was deleted, or the number is wrong."
        raise RequestError(404, "data_set_not_found", detail)
    return row


def classes_of(row: Mapping[Any, Any]) -> list[str]:
    """Returns the classes of defects in a row of a data set or a version; their mask values begin at 1."""
    return list(json.loads(row["classes"]))


def show_data_set(connection: Connection, data_set_id: int) -> DataSet:
    """Returns a data set with its counts; raises as `find_data_set`."""
    row = find_data_set(connection, data_set_id)
    return _describe(connection, [row], photographs.data_set_id == data_set_id)[0]


def list_data_sets(connection: Connection) -> DataSetList:
    """Returns all data sets with their counts, by name."""
    rows = connection.execute(select(data_sets)).mappings().all()
    rows = sorted(rows, key=lambda row: row["name"].casefold())
    return DataSetList(data_sets=_describe(connection, rows, photographs.id > 0))


def _describe(
    connection: Connection, rows: Sequence[RowMapping], chosen: ColumnElement[bool]
) -> list[DataSet]:
    """Returns the answers about data sets; `chosen` is true for their photographs."""
    counts = _count(connection, chosen)
    of_set = data_set_versions.c.data_set_id
    newest = select(of_set, func.max(data_set_versions.c.number)).group_by(of_set)
    newest = newest.where(of_set.in_([row["id"] for row in rows]))
    versions = dict(map(tuple, connection.execute(newest)))
    return [
        DataSet(
            **{name: row[name] for name in ("id", "name", "created_at", "created_by")},
            classes=classes_of(row),
            counts=counts.get(row["id"], DataSetCounts()),
            latest_version=versions.get(row["id"]),
        )
        for row in rows
    ]


def count_unlabelled(connection: Connection, data_set_id: int) -> int:
    """Returns the number of photographs without a label."""
    counts = _count(connection, photographs.data_set_id == data_set_id)
    return counts.get(data_set_id, DataSetCounts()).unlabelled


def _count(connection: Connection, chosen: ColumnElement[bool]) -> dict[int, DataSetCounts]:
    """Counts photographs from an index, without reading their rows."""
    is_removed = photographs.removed_at.is_not(None).label("is_removed")
    columns = (photographs.data_set_id, is_removed, photographs.label)
    statement = select(*columns, func.count()).where(chosen).group_by(*columns)
    labels: dict[int, Counter[str]] = {}
    for data_set_id, removed, label, count in connection.execute(statement):
        key = "\0removed" if removed else "\0unlabelled" if label is None else label
        labels.setdefault(data_set_id, Counter())[key] += count
    return {number: _make_counts(by_label) for number, by_label in labels.items()}


def _make_counts(by_label: Counter[str]) -> DataSetCounts:
    removed, unlabelled = by_label.pop("\0removed", 0), by_label.pop("\0unlabelled", 0)
    labels = dict(sorted(by_label.items(), key=lambda item: (item[0] == IGNORE, -item[1], item[0])))
    return DataSetCounts(
        photographs=unlabelled + by_label.total(),
        unlabelled=unlabelled,
        labelled=by_label.total(),
        removed=removed,
        labels=labels,
    )


def _free_name(connection: Connection, name: str) -> str:
    wanted = printable(name)
    if not wanted:
        detail = "The name of the data set is empty. Expected for example 'Brackets'."
        raise RequestError(400, "bad_name", detail)
    if connection.execute(select(table.id).where(table.name == wanted)).first() is not None:
        detail = "There is already a data set '{name}'. Choose another name, or use that one."
        raise RequestError(409, "name_taken", detail, name=wanted)
    return wanted


def _to_json(classes: Sequence[str]) -> str:
    return json.dumps(list(classes), ensure_ascii=False)
