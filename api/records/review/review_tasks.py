"""Review tasks as a reviewer gets them."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from api.errors import RequestError
from api.records.inspection import Row
from api.records.record_view import make_record
from api.records.review.leases import Task, lease
from api.records.review.review_queue import count_waiting
from api.records.review.reviews import UNSURE
from api.records.schemas import ReviewTask, ReviewTasks, ShadowVerdict

MAX_COUNTED = 10_000
"""Maximum number of queue entries that are counted for an answer."""


def next_tasks(
    connection: Connection, session: str, count: int, skip: Sequence[int], station: str | None, now: datetime
) -> ReviewTasks:
    """Leases tasks and describes them; arguments as for `leases.lease`."""
    tasks = [_make_task(task) for task in lease(connection, session, count, skip, station, now)]
    return ReviewTasks(tasks=tasks, waiting=count_waiting(connection, station, MAX_COUNTED))


def _make_task(task: Task) -> ReviewTask:
    record = make_record(task.row)
    return ReviewTask(
        record=record,
        why=task.priority.reason,
        labels=list(record.answer.decision.probabilities),
        lease_until=task.lease_until,
        shadows=[
            ShadowVerdict(**{name: shadow[name] for name in ShadowVerdict.model_fields})
            for shadow in task.shadows
        ],
    )


def check_label(label: str, row: Row) -> None:
    """Rejects a label that the model of an inspection does not have.

    Raises:
        RequestError: 400 with the possible labels.
    """
    known = [*make_record(row).answer.decision.probabilities, UNSURE]
    if label not in known:
        raise RequestError(
            400, "unknown_label", f"The label is '{label}'. Expected one of: {', '.join(known)}."
        )
