"""Reviews of recorded inspections. Served if the service records."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, TypeVarTuple

from fastapi import APIRouter, Query
from pydantic import Field
from sqlalchemy import Connection, RowMapping
from starlette.requests import Request
from starlette.responses import Response

from api.errors import document_problems
from api.http.callers import client_of, unknown_person
from api.http.if_match import SeenRevisions
from api.http.json_body import json_body, largest_body
from api.http.request_params import Name, RequiredName
from api.http.roles import require_role
from api.http.sent_model import SentModel
from api.record.filters import Filters
from api.record.record import Record
from api.record.record_params import LanguageDep, RecordDep, RecordId, RowDep, TextFilter, Timestamp
from api.record.record_routes import ETAG, answer_record
from api.record.schemas import InspectionRecord
from api.review import review_tasks
from api.review.corrected_masks import parse_corrected_mask
from api.review.leases import LeaseHolder
from api.review.review_statistics import query_statistics
from api.review.reviewer_agreement import query_agreement
from api.review.reviews import ReviewChange, ReviewDecision, set_review, undo_review
from api.review.schemas import ReviewerAgreement, ReviewStatistics, ReviewTasks
from segdec.runtime.identifiers import SCHEMA_PATTERN

Args = TypeVarTuple("Args")

router = APIRouter(tags=["review"], dependencies=require_role("reviewer"))

MAX_TASKS = 5
"""Tasks that a page holds: the visible one, and those that it loads ahead."""
MAX_SKIPPED = 1000
MAX_REASON = 2000
"""Characters."""
TEXT_PATTERN = SCHEMA_PATTERN.replace(r"\u0000-\u001F", r"\u0000-\u0008\u000B-\u001F")
"""Allows tabs and line breaks."""

Session = Annotated[RequiredName, Field(description="random text, one for each tab")]
QueryName = Annotated[RequiredName | None, Query()]


class NextTasks(SentModel):
    """A request for tasks."""

    session: Session
    count: int = Field(1, ge=1, le=MAX_TASKS, strict=True)
    skip: list[Annotated[int, Field(gt=0, le=2**63 - 1, strict=True)]] = Field(
        [], max_length=MAX_SKIPPED, description="records that are released and not offered now"
    )
    station: Name | None = Field(None, description="only of this station")
    reviewer: Name | None = Field(None, description="name of the reviewer")


class SentMask(SentModel):
    """A corrected mask."""

    png: str = Field(
        description="base64 of an 8-bit grey PNG with the photograph's upright size: 255 = defect; for a "
        "model with pixel classes, the index of each pixel's class",
        json_schema_extra={"contentEncoding": "base64"},
    )


class SentReview(SentModel):
    """A review."""

    label: RequiredName = Field(description="`good`, a defect class of the model, or `unsure`")
    reason: Annotated[str, Field(max_length=MAX_REASON, pattern=TEXT_PATTERN)] | None = None
    reviewer: Name | None = Field(
        None, description="name of the reviewer, in addition to that of the key; ignored of a logged-in user"
    )
    session: Session | None = None
    mask: SentMask | None = Field(None, description="null: not changed")


BODY_PROBLEMS = (400, 408, 413, 415, 503, 504)


def _describe_change(*problems: int) -> dict[str, Any]:
    answers = {200: ETAG, **document_problems(404, 409, 412, 428, *problems)}
    return {"response_model": InspectionRecord, "responses": answers}


@router.post("/v1/review/next", responses=document_problems(*BODY_PROBLEMS))
async def next_tasks(
    asked: Annotated[NextTasks, json_body(NextTasks)], request: Request, record: RecordDep
) -> ReviewTasks:
    """The next tasks, leased to this session for five minutes."""
    who = _name(request, asked.reviewer) or unknown_person(request)
    holder = LeaseHolder(asked.session, client_of(request), who)
    return await record.write(
        review_tasks.next_tasks, holder, asked.count, asked.skip, asked.station, datetime.now(UTC)
    )


@router.put("/v1/records/{record_id}/review", **_describe_change(422, *BODY_PROBLEMS))
async def put_review(
    row: RowDep,  # before the body is read
    sent: Annotated[SentReview, json_body(SentReview, largest_body)],
    request: Request,
    record: RecordDep,
    seen: SeenRevisions,
) -> Response:
    """Sets the review of an inspection and removes it from the queue."""
    review_tasks.check_label(sent.label, row)
    request.app.state.keyring.check_is_no_key("reason", sent.reason)
    mask = None
    if sent.mask is not None:
        mask = await record.run_in_thread(partial(parse_corrected_mask, sent.mask.png, row, sent.label))
    now, reviewer = datetime.now(UTC), _name(request, sent.reviewer)
    change = ReviewChange(row["id"], seen, sent.session, reviewer or unknown_person(request), now)
    changed = await _write(
        record, set_review, change, ReviewDecision(sent.label, now, reviewer, sent.reason, mask)
    )
    record.metrics.reviews.labels(sent.label).inc()
    return answer_record(changed)


@router.delete("/v1/records/{record_id}/review", **_describe_change(400, 503))
async def delete_review(
    request: Request,
    record: RecordDep,
    record_id: RecordId,
    seen: SeenRevisions,
    session: QueryName = None,
    reviewer: QueryName = None,
) -> Response:
    """Undoes the last review: the one before is restored, or the record is queued again."""
    who = _name(request, reviewer) or unknown_person(request)
    change = ReviewChange(record_id, seen, session, who, datetime.now(UTC), client_of(request))
    changed = await _write(record, undo_review, change)
    record.metrics.undone.inc()
    return answer_record(changed)


def _name(request: Request, reviewer: str | None) -> str:
    """Returns the name of the user who is logged in, or those of the key and the reviewer; empty if unknown.

    Raises:
        RequestError: 400 if the name of the reviewer is a key.
    """
    request.app.state.keyring.check_is_no_key("name of the reviewer", reviewer)
    if request.state.user:
        return str(request.state.user)
    return "/".join(filter(None, (request.state.key, (reviewer or "").strip())))


async def _write(
    record: Record, change: Callable[[Connection, *Args], RowMapping], *args: *Args
) -> RowMapping:
    """Makes a change and queues its event, in one transaction."""

    def make(connection: Connection) -> RowMapping:
        changed = change(connection, *args)
        record.outbox.enqueue_reviewed(connection, changed)
        return changed

    return await record.write(make)


@router.get("/v1/review/agreement", responses=document_problems(400, 503))
async def show_agreement(
    record: RecordDep, since: Timestamp = None, until: Timestamp = None, station: TextFilter = None
) -> ReviewerAgreement:
    """How often two people who reviewed the same photograph decided alike."""
    return await record.read(query_agreement, Filters(station=station, since=since, until=until))


@router.get("/v1/review/statistics", responses=document_problems(400, 503))
async def show_statistics(
    record: RecordDep,
    language: LanguageDep,
    since: Timestamp = None,
    until: Timestamp = None,
    station: TextFilter = None,
) -> ReviewStatistics:
    """Miss rate and false alarms, estimated from reviews of sampled inspections."""
    filters = Filters(station=station, since=since, until=until)
    return await record.read(query_statistics, filters, language)
