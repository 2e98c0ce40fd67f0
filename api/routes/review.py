"""What people say of what was inspected. Served where a record is kept."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Concatenate, ParamSpec

from fastapi import APIRouter, Header, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from sqlalchemy import Connection, RowMapping
from starlette.requests import Request
from starlette.responses import Response

from api.errors import RequestError, document_problems
from api.records.queries import Filters
from api.records.record import Record
from api.records.review import review_tasks
from api.records.review.corrected_masks import parse_corrected_mask
from api.records.review.review_statistics import query_statistics
from api.records.review.reviews import ReviewChange, ReviewDecision, review, undo
from api.records.schemas import InspectionRecord, ReviewStatistics, ReviewTasks
from api.routes.body_schemas import inline_schema
from api.routes.dependencies import ServiceDep
from api.routes.json_body import MAX_JSON_BYTES, read_json_body
from api.routes.records import ETAG, RecordDep, RecordId, RowDep, TextFilter, Timestamp, answer_record
from api.routes.request_params import MAX_NAME, PRINTABLE, DeadlineDep, Name
from api.routes.roles import require_role
from api.routes.uploads import JSON_TYPE

P = ParamSpec("P")

router = APIRouter(tags=["review"], dependencies=require_role("review"))

MAX_TASKS = 5
"""Tasks that a page has at once: the one that is shown, and those that it loads meanwhile."""
MAX_SKIPPED = 1000
MAX_REASON = 2000
"""Letters."""
TEXT = r"^[^\x00-\x08\x0b-\x1f\x7f]*$"
"""With tabs and ends of lines."""
MAX_REVISION = 2**31 - 2

Session = Annotated[Name, Field(min_length=1, description="random text made by the page, one for each tab")]
Label = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)]


class NextTasks(BaseModel):
    """Asks for what is to be looked at."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    session: Session
    count: int = Field(1, ge=1, le=MAX_TASKS)
    skip: list[Annotated[int, Field(gt=0, le=2**63 - 1)]] = Field(
        [], max_length=MAX_SKIPPED, description="records that are given back, and not offered now"
    )
    station: Name | None = Field(None, description="only of this one")


class SentMask(BaseModel):
    """A mask that was mended."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    png: str = Field(
        description="base64 of an 8-bit grey PNG of the photograph's upright size: 255 = defect; of a model "
        "with classes of pixels, the place of each pixel's class",
        json_schema_extra={"contentEncoding": "base64"},
    )


class SentReview(BaseModel):
    """What a person says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    label: Label = Field(description="`good`, a class of defects of the model, or `unsure`")
    reason: Annotated[str, Field(max_length=MAX_REASON, pattern=TEXT)] | None = None
    reviewer: Name | None = Field(None, description="who says so, beside the name of the key")
    session: Session | None = None
    mask: SentMask | None = Field(None, description="null: not touched")


def _describe_body(body: type[BaseModel]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {JSON_TYPE: {"schema": inline_schema(body)}}}}


BODY_PROBLEMS = (400, 408, 413, 415, 503, 504)


def _describe_change(*problems: int) -> dict[str, Any]:
    answers = {200: ETAG, **document_problems(404, 409, 412, 428, *problems)}
    return {"response_model": InspectionRecord, "responses": answers}


IfMatch = Annotated[str | None, Header(description='the ETag that was seen last: "REVISION"')]


@router.post(
    "/v1/review/next",
    responses=document_problems(*BODY_PROBLEMS),
    openapi_extra=_describe_body(NextTasks),
)
async def next_tasks(
    request: Request, service: ServiceDep, record: RecordDep, deadline: DeadlineDep
) -> ReviewTasks:
    """What is to be looked at next, kept for this session for five minutes from now."""
    asked = await read_json_body(request, service, NextTasks, deadline)
    return await record.write(
        review_tasks.next_tasks, asked.session, asked.count, asked.skip, asked.station, datetime.now(UTC)
    )


@router.put(
    "/v1/records/{record_id}/review",
    **_describe_change(422, *BODY_PROBLEMS),
    openapi_extra=_describe_body(SentReview),
)
async def put_review(
    request: Request,
    service: ServiceDep,
    record: RecordDep,
    row: RowDep,
    deadline: DeadlineDep,
    if_match: IfMatch = None,
) -> Response:
    """Says what a photograph shows; it waits no more."""
    revision = _read_revision(if_match)
    limit = max(service.settings.max_body_bytes, MAX_JSON_BYTES)
    sent = await read_json_body(request, service, SentReview, deadline, limit)
    review_tasks.check_label(sent.label, row)
    mask = None
    if sent.mask is not None:
        mask = await record.work(partial(parse_corrected_mask, sent.mask.png, row, sent.label))
    who = "/".join(filter(None, (request.state.key, sent.reviewer)))
    now = datetime.now(UTC)
    verdict = ReviewDecision(sent.label, now, who, sent.reason, mask)
    changed = await _write(record, review, ReviewChange(row["id"], revision, sent.session, who, now), verdict)
    record.metrics.count_review(sent.label)
    return answer_record(changed)


@router.delete("/v1/records/{record_id}/review", **_describe_change(400, 503))
async def delete_review(
    request: Request,
    record: RecordDep,
    record_id: RecordId,
    if_match: IfMatch = None,
    session: Annotated[str | None, Query(min_length=1, max_length=MAX_NAME, pattern=PRINTABLE)] = None,
) -> Response:
    """Takes the last word back: what was said before counts again; without that, the record waits again."""
    change = ReviewChange(
        record_id, _read_revision(if_match), session, request.state.key or "", datetime.now(UTC)
    )
    changed = await _write(record, undo, change)
    record.metrics.count_undone()
    return answer_record(changed)


async def _write(
    record: Record,
    change: Callable[Concatenate[Connection, P], RowMapping],
    *args: P.args,
    **kwargs: P.kwargs,
) -> RowMapping:
    """Makes a change and tells others of it, in one transaction."""

    def make(connection: Connection) -> RowMapping:
        changed = change(connection, *args, **kwargs)
        record.outbox.enqueue_reviewed(connection, changed)
        return changed

    return await record.write(make)


def _read_revision(if_match: str | None) -> int:
    """Takes a weak one too: proxies make the ETags of what they compress weak."""
    if if_match is None:
        raise RequestError(
            428,
            "precondition_required",
            'No If-Match arrived. Expected the ETag of the record as it was looked at, for example "0".',
        )
    match = re.fullmatch(r'(?:W/)?"([0-9]{1,10})"', if_match.strip())
    if match is None or int(match[1]) > MAX_REVISION:
        raise RequestError(
            400, "bad_parameter", f'If-Match is {if_match[:80]!r}. Expected an ETag such as "0".'
        )
    return int(match[1])


@router.get("/v1/review/statistics", responses=document_problems(400, 503))
async def show_statistics(
    record: RecordDep, since: Timestamp = None, until: Timestamp = None, station: TextFilter = None
) -> ReviewStatistics:
    """What slips through and how many alarms are false, reckoned from what was reviewed of what was drawn."""
    filters = Filters(station=station, since=since, until=until)
    return await record.read(query_statistics, filters)
