"""What people say of inspections: said, changed and taken back, each with its line in the audit."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, RowMapping, exists, select, update

from api.errors import RequestError
from api.records import queries
from api.records.inspection import Row
from api.records.review.leases import is_leased_to_another, lease_one
from api.records.review.review_queue import dequeue, requeue
from api.records.storage.retention_class import RetentionClass
from api.records.tables import audit, inspections, pictures
from segdec.config import GOOD

UNSURE = "unsure"
"""What a person says who cannot tell."""
REVIEW, UNDO = "review", "undo"
"""What the audit calls it."""


@dataclass(frozen=True)
class ReviewDecision:
    """What a person says of an inspection, by the columns of `tables.inspections`; None = nobody does.

    Attributes:
        reviewed_label: `good`, a class of defects, or `unsure`.
        reviewed_at: When.
        reviewer: Who says so; empty where nobody knows.
        review_reason: Why; None where none is given.
        reviewed_mask: The mask as it should be, JSON; None = not touched.
    """

    reviewed_label: str | None = None
    reviewed_at: datetime | None = None
    reviewer: str | None = None
    review_reason: str | None = None
    reviewed_mask: str | None = None

    @classmethod
    def of(cls, row: Row) -> Self:
        """Reads it from an inspection."""
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})

    @classmethod
    def from_audit(cls, told: Row) -> Self:
        """Reads it from a line of the audit."""
        at = told["reviewed_at"]
        return cls(**{**told, "reviewed_at": None if at is None else datetime.fromisoformat(at)})

    def to_audit(self) -> dict[str, Any]:
        """Returns what a line of the audit says of it."""
        at = self.reviewed_at
        return {**asdict(self), "reviewed_at": None if at is None else at.isoformat()}


@dataclass(frozen=True)
class ReviewChange:
    """Who wants to change what is said of an inspection.

    Attributes:
        record_id: Which one.
        revision: That he has seen.
        session: Of his page; None without one.
        who: For the audit.
        now: The time.
    """

    record_id: int
    revision: int
    session: str | None
    who: str
    now: datetime


def review(connection: Connection, change: ReviewChange, verdict: ReviewDecision) -> RowMapping:
    """Says something of an inspection, which then waits no more; returns it as it is now.

    Raises:
        RequestError: 404 without such an inspection, 412 if it has changed, 409 if another has it before him.
    """
    row = _find(connection, change)
    dequeue(connection, [change.record_id])
    _value_picture(connection, row["picture"], RetentionClass.REVIEWED)
    return _set(connection, change, REVIEW, row, verdict)


def undo(connection: Connection, change: ReviewChange) -> RowMapping:
    """Takes the last word back; without an earlier one, the inspection waits again, for who took it back.

    Raises:
        RequestError: As `review`, and 409 if nobody has said anything.
    """
    row = _find(connection, change)
    if row["reviewed_label"] is None:
        raise RequestError(
            409, "not_reviewed", f"Record {change.record_id} has no review. There is nothing to take back."
        )
    earlier = _earlier(connection, change.record_id)
    changed = _set(connection, change, UNDO, row, earlier)
    if earlier.reviewed_label is None:
        requeue(connection, row)
        if change.session is not None:
            lease_one(connection, change.session, change.record_id, change.now)
        _value_picture(connection, row["picture"], _worth(connection, row["picture"]))
    return changed


def _find(connection: Connection, change: ReviewChange) -> RowMapping:
    row = queries.find_inspection(connection, change.record_id)
    if row is None:
        raise record_not_found(change.record_id)
    if row["revision"] != change.revision:
        raise RequestError(
            412,
            "changed_meanwhile",
            f"The review of record {change.record_id} has revision {row['revision']}; If-Match says "
            f"{change.revision}. Somebody has changed it: look at it again, and send the ETag of then.",
        )
    if is_leased_to_another(connection, change.record_id, change.session, change.now):
        raise RequestError(
            409,
            "leased",
            f"Somebody else has record {change.record_id} before him now. Take another one, or wait some "
            "minutes.",
        )
    return row


def record_not_found(record_id: int) -> RequestError:
    """Returns the 404 of an inspection that there is none of."""
    return RequestError(404, "record_not_found", f"There is no record {record_id}. See GET /v1/records.")


def _set(
    connection: Connection, change: ReviewChange, what: str, row: Row, verdict: ReviewDecision
) -> RowMapping:
    values = {**asdict(verdict), "revision": change.revision + 1}
    connection.execute(update(inspections).where(inspections.c.id == change.record_id).values(values))
    before, after = ReviewDecision.of(row).to_audit(), verdict.to_audit()
    queries.add_audit_entry(
        connection, change.who, what, record_id=change.record_id, before=before, after=after
    )
    changed = queries.find_inspection(connection, change.record_id)
    assert changed is not None
    return changed


def _earlier(connection: Connection, record_id: int) -> ReviewDecision:
    """What was said before the last word that was not taken back."""
    mine = audit.c.record_id == record_id, audit.c.what.in_((REVIEW, UNDO))
    lines = connection.execute(select(audit.c.id, audit.c.what).where(*mine).order_by(audit.c.id)).all()
    standing: list[int] = []
    for number, what in lines:
        if what == REVIEW:
            standing.append(number)
        elif standing:
            standing.pop()
    if not standing:
        return ReviewDecision()
    told = connection.execute(select(audit.c.before).where(audit.c.id == standing[-1])).scalar_one()
    return ReviewDecision.from_audit(queries.parse_audit_values(told))


# === Pictures ===


def _value_picture(connection: Connection, sha256: bytes, worth: RetentionClass) -> None:
    connection.execute(update(pictures).where(pictures.c.sha256 == sha256).values(worth=worth))


def _worth(connection: Connection, sha256: bytes) -> RetentionClass:
    """Of a picture of which one inspection waits again; others may show it too."""

    def any_is(condition: ColumnElement[bool]) -> bool:
        shown = exists().where(inspections.c.picture == sha256, condition)
        return bool(connection.execute(select(shown)).scalar())

    if any_is(inspections.c.reviewed_label.is_not(None)):
        return RetentionClass.REVIEWED
    return RetentionClass.DEFECT if any_is(inspections.c.label != GOOD) else RetentionClass.TO_REVIEW
