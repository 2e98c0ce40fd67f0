"""Review tasks as a reviewer gets them."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, select

from api.errors import RequestError
from api.record.inspection import Row
from api.record.inspection_rows import class_names
from api.record.queries import LISTED_COLUMNS, with_pictures
from api.record.record_view import make_record
from api.record.review_queue import Priority, count_waiting
from api.record.tables import inspections, review_queue, shadows
from api.review.leases import LEASE_DURATION, LeaseHolder, lease
from api.review.schemas import ReviewTask, ReviewTasks, ShadowVerdict
from segdec.runtime.identifiers import NOT_INSPECTED, UNSURE

MAX_COUNTED = 10_000
"""Maximum number of queue entries that are counted for an answer."""


def next_tasks(
    connection: Connection,
    holder: LeaseHolder,
    count: int,
    skip: Sequence[int],
    station: str | None,
    now: datetime,
) -> ReviewTasks:
    """Leases tasks and describes them; arguments as for `leases.lease`."""
    leased = lease(connection, holder, count, skip, station, now)
    tasks = _describe(connection, leased, now + LEASE_DURATION)
    return ReviewTasks(tasks=tasks, waiting=count_waiting(connection, station, MAX_COUNTED))


def _describe(connection: Connection, record_ids: Sequence[int], lease_until: datetime) -> list[ReviewTask]:
    joined = with_pictures(LISTED_COLUMNS).add_columns(review_queue.c.priority).join(review_queue)
    rows = connection.execute(joined.where(inspections.c.id.in_(record_ids))).mappings()
    by_id = {row["id"]: row for row in rows}
    predicted = select(shadows).where(shadows.c.record_id.in_(record_ids)).order_by(shadows.c.id)
    predictions: dict[int, list[ShadowVerdict]] = {number: [] for number in record_ids}
    for row in connection.execute(predicted).mappings():
        values = {name: row[name] for name in ShadowVerdict.model_fields}
        if row["label"] == NOT_INSPECTED:
            values["score"] = None
        predictions[row["record_id"]].append(ShadowVerdict(**values))
    return [_make_task(by_id[number], lease_until, verdicts) for number, verdicts in predictions.items()]


def _make_task(row: Row, lease_until: datetime, verdicts: list[ShadowVerdict]) -> ReviewTask:
    return ReviewTask(
        record=make_record(row),
        why=NOT_INSPECTED if row["label"] == NOT_INSPECTED else Priority(row["priority"]).reason,
        labels=class_names(row),
        lease_until=lease_until,
        shadows=verdicts,
    )


def check_label(label: str, row: Row) -> None:
    """Rejects a label that the model of an inspection does not have.

    Raises:
        RequestError: 400 with the possible labels.
    """
    known = [*class_names(row), UNSURE]
    if label not in known:
        raise RequestError(
            400,
            "unknown_label",
            "The label is '{label}'. Expected one of: {expected}.",
            label=label,
            expected=", ".join(known),
        )
