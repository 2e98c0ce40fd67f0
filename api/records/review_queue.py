"""What waits for a person, and in which order."""

from collections.abc import Sequence
from enum import IntEnum

from sqlalchemy import Connection, case

from api.records.queries import insert_into
from api.records.tables import review_queue


class Priority(IntEnum):
    """What is lowest is shown first. The numbers stand in the database."""

    CANDIDATE_DIFFERS = 0
    CHANCE = 1
    DOUBTFUL = 2
    DEFECT = 3


PRIORITIES = {
    "chance": Priority.CHANCE,
    "near": Priority.DOUBTFUL,
    "review": Priority.DOUBTFUL,
    "defect": Priority.DEFECT,
}
"""By the reason for which an inspection is drawn. Those by chance are few; without them nothing is known
of what slips through."""


def put_up(connection: Connection, priorities: Sequence[tuple[int, Priority]]) -> None:
    """Puts inspections up, by id; one that waits already keeps the lower priority of the two."""
    if not priorities:
        return
    insert = insert_into(connection, review_queue)
    new, old = insert.excluded, review_queue.c
    lower = case((old.priority < new.priority, old.priority), else_=new.priority)
    statement = insert.on_conflict_do_update(index_elements=[old.record_id], set_={"priority": lower})
    rows = [{"record_id": record_id, "priority": int(priority)} for record_id, priority in priorities]
    connection.execute(statement, rows)
