"""Annotations of photographs of data sets, and who has which one open. Served if the service records."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import ConfigDict, Field
from sqlalchemy import Connection, RowMapping
from starlette.requests import Request
from starlette.responses import Response

from api.data_sets import photograph_leases, photographs
from api.data_sets.annotations import NewAnnotation, annotate, find_mask, list_annotations
from api.data_sets.class_masks import NAME, read_class_mask
from api.data_sets.data_set_params import (
    BODY_PROBLEMS,
    PROBLEMS,
    DataSetId,
    DataSetsDep,
    PhotographId,
    describe_file,
)
from api.data_sets.data_set_store import DataSetStore
from api.data_sets.definitions import classes_of, find_data_set
from api.data_sets.photograph_leases import Labeller, LeaseRequests
from api.data_sets.photographs import LABEL_DESCRIPTION, STATE_DESCRIPTION, LabelState, PhotographFilters
from api.data_sets.schemas import AnnotationPage, LeasedPhotographs, Source, StoredPhotograph
from api.errors import document_problems
from api.http.caching import PNG, REVALIDATED
from api.http.callers import author_of
from api.http.components import component
from api.http.json_body import json_body, largest_body
from api.http.json_files import decode_base64
from api.http.number_text import MAX_ID, WHOLE_NUMBER
from api.http.request_params import RequiredName
from api.http.roles import require_role
from api.http.sent_model import SentModel
from api.record.record_params import BeforeId, PageSize
from segdec.annotation_content import AnnotationContent

router = APIRouter(
    prefix="/v1/data-sets/{data_set_id}", tags=["data sets"], dependencies=require_role("reviewer")
)
MAX_SKIPPED = 1000
MAX_LEASED = 5
"""Photographs that a session gets at once."""
Session = Annotated[RequiredName, Field(description="random text, one for each tab")]
LeaseRequestsDep = Annotated[LeaseRequests, component(LeaseRequests)]
Id = Annotated[int, Field(gt=0, le=MAX_ID, strict=True)]


class SentAnnotation(AnnotationContent):
    """An annotation. A field that is left out is as in the annotation `based_on`; one about the mask, only
    with the same mask.
    """

    model_config = ConfigDict(extra="forbid")

    label: RequiredName | None = Field(
        description="`good`, a class of the data set, `ignore` (left out of versions), or null: not labelled"
    )
    mask: str | None = Field(
        None,
        description="base64 of a grey PNG of the photograph's upright size: 0 = good, 1 = the first class, "
        "…, 255 = ignored area; null or left out: no mask",
        json_schema_extra={"contentEncoding": "base64"},
    )
    source: Source = "drawn"
    based_on: Id | None = Field(
        description="`annotation_id` of the photograph as the author has seen it; null: none"
    )
    session: Session | None = None


class SessionBody(SentModel):
    """The session that labels."""

    session: Session


class AskedNext(SessionBody):
    """A request for photographs to label."""

    count: Annotated[int, Field(ge=1, le=MAX_LEASED, strict=True)] = 1
    skip: list[Id] = Field([], max_length=MAX_SKIPPED, description="are released and not offered now")
    state: LabelState = Field("unlabelled", description=STATE_DESCRIPTION)
    label: RequiredName | None = Field(None, description=LABEL_DESCRIPTION)


async def find_row(data_sets: DataSetsDep, data_set_id: DataSetId, photograph_id: PhotographId) -> RowMapping:
    """Returns the row of the photograph in the path; raises a RequestError, 404, if it does not exist."""
    return await data_sets.read(photographs.find_photograph, data_set_id, photograph_id)


@router.put("/photographs/{photograph_id}/annotation", responses={**BODY_PROBLEMS, **document_problems(422)})
async def put_annotation(
    row: Annotated[RowMapping, Depends(find_row)],  # before the body is read
    sent: Annotated[SentAnnotation, json_body(SentAnnotation, largest_body)],
    request: Request,
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
    photograph_id: PhotographId,
) -> StoredPhotograph:
    """Adds an annotation, which is the latest one then; earlier ones stay."""
    mask = None
    if sent.mask is not None:
        classes = classes_of(await data_sets.read(find_data_set, data_set_id))
        data = decode_base64(sent.mask, NAME)
        read = partial(read_class_mask, data, row["height"], row["width"], sent.label, classes)
        mask = await data_sets.decode(read)
    now = datetime.now(UTC)
    content = AnnotationContent.model_validate(sent.model_dump(exclude_unset=True))
    new = NewAnnotation(content, None if mask is None else mask.sha256, sent.source, author_of(request), now)
    await data_sets.write(
        annotate,
        data_set_id,
        photograph_id,
        new,
        sent.based_on,
        sent.session,
        request.state.user,
        files=[] if mask is None else [mask],
    )
    return await data_sets.read(photographs.show_photograph, data_set_id, photograph_id, now)


@router.get("/photographs/{photograph_id}/annotations", responses=PROBLEMS)
async def list_history(
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
    photograph_id: PhotographId,
    before: BeforeId = None,
    limit: PageSize = 100,
) -> AnnotationPage:
    """Annotations of a photograph, the newest first; pass `next_before` of a page to get the next one."""
    return await data_sets.read(list_annotations, data_set_id, photograph_id, before, limit)


@router.get("/photographs/{photograph_id}/mask", **describe_file(PNG))
async def show_mask(
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
    photograph_id: PhotographId,
    annotation: Annotated[
        int | None, WHOLE_NUMBER, Query(gt=0, le=MAX_ID, description="without it, the latest one")
    ] = None,
) -> Response:
    """The mask of an annotation, a grey PNG: 1 = the first class, …, 255 = ignored area."""
    sha256 = await data_sets.read(find_mask, data_set_id, photograph_id, annotation)
    return Response(await data_sets.read_file(sha256), headers=REVALIDATED, media_type=PNG)


# === Leases ===


@router.post("/next", responses=BODY_PROBLEMS)
async def lease_next(
    asked: Annotated[AskedNext, json_body(AskedNext)],
    request: Request,
    data_sets: DataSetsDep,
    requests: LeaseRequestsDep,
    data_set_id: DataSetId,
) -> LeasedPhotographs:
    """The next photographs to label that nobody has open, leased to this session for five minutes.

    Unlabelled ones come in the order of their proposals, of others the oldest annotation first. If there is
    none, a user who has logged in gets one that is open in another tab of the same user.
    """
    filters = PhotographFilters(asked.state, asked.label)

    def lease(connection: Connection, labeller: Labeller, now: datetime) -> LeasedPhotographs:
        return photograph_leases.lease_next(
            connection, data_set_id, labeller, asked.count, asked.skip, now, filters
        )

    return await _lease(data_sets, requests, data_set_id, asked.session, request, lease)


@router.post("/photographs/{photograph_id}/lease", responses=BODY_PROBLEMS)
async def lease_photograph(
    asked: Annotated[SessionBody, json_body(SessionBody)],
    request: Request,
    data_sets: DataSetsDep,
    requests: LeaseRequestsDep,
    data_set_id: DataSetId,
    photograph_id: PhotographId,
) -> LeasedPhotographs:
    """Leases a photograph to this session for five minutes, or renews its lease."""

    def lease(connection: Connection, labeller: Labeller, now: datetime) -> LeasedPhotographs:
        return photograph_leases.lease_photograph(connection, data_set_id, photograph_id, labeller, now)

    return await _lease(data_sets, requests, data_set_id, asked.session, request, lease)


@router.delete("/photographs/{photograph_id}/lease", status_code=204, responses=PROBLEMS)
async def release_photograph(
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
    photograph_id: PhotographId,
    session: Annotated[RequiredName, Query()],
) -> None:
    """Ends the lease of this session, so that others get the photograph."""
    await data_sets.write(photograph_leases.release_photograph, data_set_id, photograph_id, session)


@router.delete("/leases", status_code=204, responses=PROBLEMS)
async def release_all(
    data_sets: DataSetsDep,
    requests: LeaseRequestsDep,
    data_set_id: DataSetId,
    session: Annotated[RequiredName, Query()],
) -> None:
    """Ends all leases of this session, so that others get its photographs."""
    requests.end(session)
    await data_sets.write(photograph_leases.release_all, data_set_id, session)


async def _lease(
    data_sets: DataSetStore,
    requests: LeaseRequests,
    data_set_id: int,
    session: str,
    request: Request,
    lease: Callable[[Connection, Labeller, datetime], LeasedPhotographs],
) -> LeasedPhotographs:
    """Leases photographs, and releases them if the session has ended meanwhile."""
    labeller = Labeller(session, author_of(request), request.state.user)
    with requests.add(session) as ended:
        leased = await data_sets.write(lease, labeller, datetime.now(UTC))
        if ended.is_set():
            await data_sets.write(photograph_leases.release_all, data_set_id, session)
    return leased
