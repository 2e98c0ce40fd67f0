"""What people say of inspections: said, changed and taken back, each with its line in the audit."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, RowMapping, exists, select, update

from api.errors import RequestError
from api.records import queries
from api.records.inspection import Row
from api.records.review.leases import is_leased_to_another, lease_one
from api.records.review.review_queue import put_up_again, take_down
from api.records.storage.worth import Worth
from api.records.tables import audit, inspections, pictures
from segdec.config import GOOD

UNSURE = "unsure"
"""What a person says who cannot tell."""
REVIEW, UNDO = "review", "undo"
"""What the audit calls it."""


@dataclass(frozen=True)
class Verdict:
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
    def from_line(cls, told: Row) -> Self:
        """Reads it from a line of the audit."""
        at = told["reviewed_at"]
        return cls(**{**told, "reviewed_at": None if at is None else datetime.fromisoformat(at)})

    def for_line(self) -> dict[str, Any]:
        """Returns what a line of the audit says of it."""
        at = self.reviewed_at
        return {**asdict(self), "reviewed_at": None if at is None else at.isoformat()}


@dataclass(frozen=True)
class Change:
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


def review(connection: Connection, change: Change, verdict: Verdict) -> RowMapping:
    """Says something of an inspection, which then waits no more; returns it as it is now.

    Raises:
        RequestError: 404 without such an inspection, 412 if it has changed, 409 if another has it before him.
    """
    row = _find(connection, change)
    take_down(connection, [change.record_id])
    _value_picture(connection, row["picture"], Worth.REVIEWED)
    return _set(connection, change, REVIEW, row, verdict)


def undo(connection: Connection, change: Change) -> RowMapping:
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
        put_up_again(connection, row)
        if change.session is not None:
            lease_one(connection, change.session, change.record_id, change.now)
        _value_picture(connection, row["picture"], _worth(connection, row["picture"]))
    return changed


def _find(connection: Connection, change: Change) -> RowMapping:
    row = queries.find_inspection(connection, change.record_id)
    if row is None:
        raise no_record(change.record_id)
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


def no_record(record_id: int) -> RequestError:
    """Returns the 404 of an inspection that there is none of."""
    return RequestError(404, "record_not_found", f"There is no record {record_id}. See GET /v1/records.")


def _set(connection: Connection, change: Change, what: str, row: Row, verdict: Verdict) -> RowMapping:
    values = {**asdict(verdict), "revision": change.revision + 1}
    connection.execute(update(inspections).where(inspections.c.id == change.record_id).values(values))
    before, after = Verdict.of(row).for_line(), verdict.for_line()
    queries.add_audit(connection, change.who, what, record_id=change.record_id, before=before, after=after)
    changed = queries.find_inspection(connection, change.record_id)
    assert changed is not None
    return changed


def _earlier(connection: Connection, record_id: int) -> Verdict:
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
        return Verdict()
    told = connection.execute(select(audit.c.before).where(audit.c.id == standing[-1])).scalar_one()
    return Verdict.from_line(queries.read_told(told))


# === Pictures ===


def _value_picture(connection: Connection, sha256: bytes, worth: Worth) -> None:
    connection.execute(update(pictures).where(pictures.c.sha256 == sha256).values(worth=worth))


def _worth(connection: Connection, sha256: bytes) -> Worth:
    """Of a picture of which one inspection waits again; others may show it too."""

    def any_is(condition: ColumnElement[bool]) -> bool:
        shown = exists().where(inspections.c.picture == sha256, condition)
        return bool(connection.execute(select(shown)).scalar())

    if any_is(inspections.c.reviewed_label.is_not(None)):
        return Worth.REVIEWED
    return Worth.DEFECT if any_is(inspections.c.label != GOOD) else Worth.TO_REVIEW
