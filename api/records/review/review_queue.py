"""What waits for a person, and in which order."""

from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from typing import Any

from sqlalchemy import Connection, SmallInteger, bindparam, case, delete, func, select

from api.records.inspection import Row
from api.records.queries import insert_into
from api.records.tables import inspections, pictures, review_queue, shadows


class Priority(IntEnum):
    """What is lowest is shown first. The numbers stand in the database."""

    CANDIDATE_DIFFERS = 0
    CHANCE = 1
    DOUBTFUL = 2
    DEFECT = 3
    ASKED = 4


PRIORITIES = {
    "chance": Priority.CHANCE,
    "near": Priority.DOUBTFUL,
    "review": Priority.DOUBTFUL,
    "defect": Priority.DEFECT,
}
"""By the reason for which an inspection is drawn. Those by chance are few; without them nothing is known
of what slips through."""


def enqueue(connection: Connection, priorities: Sequence[tuple[int, Priority]]) -> None:
    """Puts inspections up, by id; one that waits already keeps the lower priority of the two.

    Those that are reviewed already, or whose picture is gone, are left out.
    """
    if not priorities:
        return
    rows = [{"put_up": record_id, "put_up_as": int(priority)} for record_id, priority in priorities]
    connection.execute(_put_up(connection.dialect.name), rows)


@cache
def _put_up(dialect: str) -> Any:
    table = inspections.c
    waiting = (
        select(table.id, bindparam("put_up_as", type_=SmallInteger), table.station)
        .join_from(inspections, pictures)
        .where(table.id == bindparam("put_up"), table.reviewed_label.is_(None), pictures.c.state == "kept")
    )
    insert = insert_into(dialect, review_queue).from_select(["record_id", "priority", "station"], waiting)
    new, old = insert.excluded, review_queue.c
    lower = case((old.priority < new.priority, old.priority), else_=new.priority)
    return insert.on_conflict_do_update(index_elements=[old.record_id], set_={"priority": lower})


def requeue(connection: Connection, row: Row) -> None:
    """Puts up an inspection that is not reviewed any more, as it was before."""
    differing = select(shadows.c.id).where(shadows.c.record_id == row["id"], shadows.c.differs).limit(1)
    if connection.execute(differing).first() is not None:
        priority = Priority.CANDIDATE_DIFFERS
    elif row["draw"] < row["draw_probability"]:
        priority = PRIORITIES[row["draw_reason"]]
    else:
        priority = Priority.ASKED
    enqueue(connection, [(row["id"], priority)])


def dequeue(connection: Connection, record_ids: Sequence[int]) -> None:
    """Takes inspections out of the queue, by id."""
    if record_ids:
        connection.execute(delete(review_queue).where(review_queue.c.record_id.in_(record_ids)))


def dequeue_pictures(connection: Connection, digests: Sequence[bytes]) -> None:
    """Takes every inspection of these pictures out of the queue: there is nothing left to look at."""
    shown = select(inspections.c.id).where(inspections.c.picture.in_(digests))
    connection.execute(delete(review_queue).where(review_queue.c.record_id.in_(shown)))


def count_waiting(connection: Connection, station: str | None = None, limit: int | None = None) -> int:
    """Returns how many inspections wait.

    Args:
        connection: To the database.
        station: Only of this one; None = of all.
        most: No more are counted, so that a long queue takes no longer; None = all are.
    """
    counted = select(review_queue.c.record_id).limit(limit)
    if station is not None:
        counted = counted.where(review_queue.c.station == station)
    return connection.execute(select(func.count()).select_from(counted.subquery())).scalar_one()
