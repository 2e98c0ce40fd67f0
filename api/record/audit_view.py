"""Answers about the audit log."""

import json
from collections.abc import Sequence

from sqlalchemy import Connection, select

from api.record.inspection import Row
from api.record.schemas import AuditChange, AuditPage
from api.record.tables import audit, inspections


def list_changes(
    connection: Connection,
    before: int | None,
    limit: int,
    who: str | None = None,
    record_id: int | None = None,
    what: Sequence[str] | None = None,
) -> AuditPage:
    """Returns up to `limit` changes with ids below `before`, the newest first, without pixels of masks.

    `who` and `record_id` restrict them; `what` to these kinds, of changes that are not of a record.
    """
    statement = select(audit, inspections.c.part_id).outerjoin(
        inspections, inspections.c.id == audit.c.record_id
    )
    for column, value in ((audit.c.who, who), (audit.c.record_id, record_id)):
        if value is not None:
            statement = statement.where(column == value)
    if what is not None:  # the index of record ids finds the few changes without one
        statement = statement.where(audit.c.record_id.is_(None), audit.c.what.in_(what))
    if before is not None:
        statement = statement.where(audit.c.id < before)
    rows = connection.execute(statement.order_by(audit.c.id.desc()).limit(limit + 1)).mappings().all()
    changes = [_make_change(row) for row in rows[:limit]]
    return AuditPage(changes=changes, next_before=changes[-1].id if len(rows) > limit else None)


def _make_change(row: Row) -> AuditChange:
    states = {name: None if row[name] is None else json.loads(row[name]) for name in ("before", "after")}
    for state in states.values():
        if state is not None and "reviewed_mask" in state:
            state["reviewed_mask"] = state["reviewed_mask"] is not None
    return AuditChange(
        **{name: row[name] for name in ("id", "at", "who", "what", "record_id", "part_id")}, **states
    )
