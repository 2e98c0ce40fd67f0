"""Reviews of inspections: created, changed and withdrawn, each with an entry in the audit log."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, RowMapping, exists, func, select, update

from api.errors import RequestError
from api.record import queries
from api.record.inspection import Row
from api.record.record_view import record_not_found
from api.record.review_queue import dequeue, requeue
from api.record.storage.retention_class import RetentionClass
from api.record.tables import audit, inspections, pictures
from api.review.leases import LeaseHolder, is_leased_to_another, renew
from segdec.config import GOOD
from segdec.runtime.identifiers import NOT_INSPECTED, UNSURE

REVIEW, UNDO = "review", "undo"
"""Actions in the audit log."""


@dataclass(frozen=True)
class ReviewDecision:
    """A review, with the names of the columns of `tables.inspections`; all None = no review.

    Attributes:
        reviewed_label: `good`, a defect class, or `unsure`.
        reviewed_at: Time of the review.
        reviewer: Name; empty if unknown.
        review_reason: Comment.
        reviewed_mask: The corrected mask as JSON; None = not changed.
    """

    reviewed_label: str | None = None
    reviewed_at: datetime | None = None
    reviewer: str | None = None
    review_reason: str | None = None
    reviewed_mask: str | None = None

    @classmethod
    def from_row(cls, row: Row) -> Self:
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})

    @classmethod
    def from_audit(cls, values: Row) -> Self:
        at = values["reviewed_at"]
        return cls(**{**values, "reviewed_at": None if at is None else datetime.fromisoformat(at)})

    def to_audit(self) -> dict[str, Any]:
        at = self.reviewed_at
        return {**asdict(self), "reviewed_at": None if at is None else at.isoformat()}


@dataclass(frozen=True)
class ReviewChange:
    """A request to change the review of an inspection.

    Attributes:
        record_id: Id of the inspection.
        seen: The revisions that the reviewer has seen, as their ETags; None: any.
        session: Id of the review session.
        who: For the audit log.
        now: The time.
        client: Key or address of the reviewer.
    """

    record_id: int
    seen: frozenset[str] | None
    session: str | None
    who: str
    now: datetime
    client: str = ""


def set_review(connection: Connection, change: ReviewChange, decision: ReviewDecision) -> RowMapping:
    """Sets the review of an inspection and removes it from the queue; returns its new row.

    A picture without a verdict that nobody can judge is not kept longer.

    Raises:
        RequestError: 404 if the inspection does not exist, 412 if its revision differs, 409 if another
            session holds it.
    """
    row = _find(connection, change)
    dequeue(connection, [change.record_id])
    if row["label"] != NOT_INSPECTED or decision.reviewed_label != UNSURE:
        _set_retention_class(connection, row["picture"], RetentionClass.REVIEWED)
    return _write(connection, change, REVIEW, row, decision)


def undo_review(connection: Connection, change: ReviewChange) -> RowMapping:
    """Restores the review before the last one; without one, queues the inspection for the same session.

    Raises:
        RequestError: As `set_review`, and 409 if there is no review.
    """
    row = _find(connection, change)
    if row["reviewed_label"] is None:
        raise RequestError(
            409, "not_reviewed", f"Record {change.record_id} has no review. There is nothing to undo."
        )
    earlier = _earlier(connection, change.record_id)
    changed = _write(connection, change, UNDO, row, earlier)
    if earlier.reviewed_label is None:
        requeue(connection, row)
        if change.session is not None:
            holder = LeaseHolder(change.session, change.client, change.who)
            renew(connection, holder, [change.record_id], change.now)
        _set_retention_class(connection, row["picture"], _retention_class(connection, row["picture"]))
    return changed


def _find(connection: Connection, change: ReviewChange) -> RowMapping:
    row = queries.find_inspection(connection, change.record_id)
    if row is None:
        raise record_not_found(change.record_id)
    if change.seen is not None and str(row["revision"]) not in change.seen:
        raise RequestError(
            412,
            "changed_meanwhile",
            f"The review of record {change.record_id} has revision {row['revision']}, but If-Match says "
            f"{', '.join(sorted(change.seen))[:80]}. Somebody has changed it: fetch it again and send its "
            "current ETag.",
        )
    if is_leased_to_another(connection, change.record_id, change.session, change.now):
        raise RequestError(
            409,
            "leased",
            f"Another session is reviewing record {change.record_id}. Take another record, or wait some "
            "minutes.",
        )
    return row


def _write(
    connection: Connection, change: ReviewChange, what: str, row: Row, decision: ReviewDecision
) -> RowMapping:
    values = {**asdict(decision), "revision": row["revision"] + 1}
    connection.execute(update(inspections).where(inspections.c.id == change.record_id).values(values))
    before, after = ReviewDecision.from_row(row).to_audit(), decision.to_audit()
    queries.add_audit_entry(
        connection, change.who, what, record_id=change.record_id, before=before, after=after
    )
    changed = queries.find_inspection(connection, change.record_id)
    assert changed is not None
    return changed


def _earlier(connection: Connection, record_id: int) -> ReviewDecision:
    """Returns the review before the last one that is not undone."""
    mine = audit.c.record_id == record_id, audit.c.what.in_((REVIEW, UNDO))
    entries = connection.execute(select(audit.c.id, audit.c.what).where(*mine).order_by(audit.c.id)).all()
    active: list[int] = []
    for number, what in entries:
        if what == REVIEW:
            active.append(number)
        elif active:
            active.pop()
    if not active:
        return ReviewDecision()
    before = connection.execute(select(audit.c.before).where(audit.c.id == active[-1])).scalar_one()
    return ReviewDecision.from_audit(json.loads(before))


# === Pictures ===


def _set_retention_class(connection: Connection, sha256: bytes, retention_class: RetentionClass) -> None:
    statement = update(pictures).where(pictures.c.sha256 == sha256)
    connection.execute(statement.values(worth=retention_class))


def _retention_class(connection: Connection, sha256: bytes) -> RetentionClass:
    """Returns the class of a picture without this review; other inspections may have the same picture."""

    def any_is(condition: ColumnElement[bool]) -> bool:
        match = exists().where(inspections.c.picture == sha256, condition)
        return bool(connection.execute(select(match)).scalar())

    if any_is(inspections.c.reviewed_label.is_not(None)):
        return RetentionClass.REVIEWED
    label = func.coalesce(inspections.c.model_label, inspections.c.label)
    is_defect = label.not_in((GOOD, NOT_INSPECTED))
    return RetentionClass.DEFECT if any_is(is_defect) else RetentionClass.TO_REVIEW
