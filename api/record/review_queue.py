"""The queue of inspections that wait for a review."""

from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from typing import Any, cast

from sqlalchemy import Connection, SmallInteger, bindparam, case, delete, func, select

from api.record.inspection import Row
from api.record.queries import insert_into
from api.record.schemas import ReviewReason
from api.record.tables import inspections, pictures, review_queue, shadows
from segdec.runtime.identifiers import NOT_INSPECTED


class Priority(IntEnum):
    """Reasons for a review; the lowest is reviewed first. The database stores the numbers."""

    CANDIDATE_DIFFERS = 0
    CHANCE = 1
    DOUBTFUL = 2
    DEFECT = 3
    ASKED = 4

    @property
    def reason(self) -> ReviewReason:
        """Name of the reason in answers."""
        return cast("ReviewReason", self.name.lower())


PRIORITY_BY_REASON = {
    "chance": Priority.CHANCE,
    "near": Priority.DOUBTFUL,
    "tolerated": Priority.CHANCE,
    "review": Priority.DOUBTFUL,
    "defect": Priority.DEFECT,
}
"""By sampling reason. Random samples come early: they are few, and only they show what is missed."""


def enqueue(connection: Connection, priorities: Sequence[tuple[int, Priority]]) -> None:
    """Queues inspections by id; one already queued keeps the lower of its old and new priority.

    Reviewed inspections and those without a picture are skipped.
    """
    if not priorities:
        return
    rows = [{"queued_id": record_id, "queued_as": int(priority)} for record_id, priority in priorities]
    connection.execute(_enqueue(connection.dialect.name), rows)


@cache
def _enqueue(dialect: str) -> Any:
    table = inspections.c
    reviewable = (
        select(table.id, bindparam("queued_as", type_=SmallInteger), table.station)
        .join_from(inspections, pictures)
        .where(table.id == bindparam("queued_id"), table.reviewed_label.is_(None), pictures.c.state == "kept")
    )
    insert = insert_into(dialect, review_queue).from_select(["record_id", "priority", "station"], reviewable)
    new, old = insert.excluded, review_queue.c
    lower = case((old.priority < new.priority, old.priority), else_=new.priority)
    return insert.on_conflict_do_update(index_elements=[old.record_id], set_={"priority": lower})


def requeue(connection: Connection, row: Row) -> None:
    """Queues an inspection whose review was withdrawn, with its former priority."""
    differing = select(shadows.c.id).where(shadows.c.record_id == row["id"], shadows.c.differs).limit(1)
    if connection.execute(differing).first() is not None:
        priority = Priority.CANDIDATE_DIFFERS
    elif row["label"] == NOT_INSPECTED:
        priority = Priority.DOUBTFUL
    elif row["draw"] < row["draw_probability"]:
        priority = PRIORITY_BY_REASON[row["draw_reason"]]
    else:
        priority = Priority.ASKED
    enqueue(connection, [(row["id"], priority)])


def dequeue(connection: Connection, record_ids: Sequence[int]) -> None:
    """Removes inspections from the queue by id."""
    if record_ids:
        connection.execute(delete(review_queue).where(review_queue.c.record_id.in_(record_ids)))


def dequeue_pictures(connection: Connection, digests: Sequence[bytes]) -> None:
    """Removes every inspection of these pictures from the queue."""
    shown = select(inspections.c.id).where(inspections.c.picture.in_(digests))
    connection.execute(delete(review_queue).where(review_queue.c.record_id.in_(shown)))


def count_waiting(connection: Connection, station: str | None = None, limit: int | None = None) -> int:
    """Returns the length of the queue of a station (None = of all), counted up to `limit`."""
    counted = select(review_queue.c.record_id).limit(limit)
    if station is not None:
        counted = counted.where(review_queue.c.station == station)
    return connection.execute(select(func.count()).select_from(counted.subquery())).scalar_one()
