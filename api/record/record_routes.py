"""Recorded inspections: rows, pictures and masks. Served if the service records."""

import io
from functools import partial
from typing import Annotated, Any, Literal

import segno
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from api.errors import RequestError, document_problems
from api.http.body_schemas import BINARY_SCHEMA
from api.http.caching import IMMUTABLE, PNG, REVALIDATED
from api.http.components import SettingsDep, component
from api.http.number_text import MAX_PAGE_SIZE, WHOLE_NUMBER
from api.http.request_params import Name
from api.http.roles import require_role
from api.models.registry import ModelRegistry
from api.record import record_view
from api.record.audit_view import list_changes
from api.record.inspection import Row
from api.record.outbox_queries import messages_of
from api.record.record_params import BeforeId, FiltersDep, PageSize, RecordDep, RowDep
from api.record.schemas import AuditPage, InspectionRecord, MessageList, MessageView, RecordNames, RecordPage
from segdec.imaging.white_level import FULL_RANGE

router = APIRouter(prefix="/v1/records", tags=["records"], dependencies=require_role("operator"))

MAX_SIDE = 2**14
ModelsDep = Annotated[ModelRegistry, component(ModelRegistry)]
PROBLEMS = document_problems(400, 404, 503)
FILE: dict[str, Any] = {
    "response_class": Response,
    "responses": {200: {"content": {"image/*": {"schema": BINARY_SCHEMA}}}, **PROBLEMS},
}


@router.get("", responses=PROBLEMS)
async def list_records(
    record: RecordDep, filters: FiltersDep, before: BeforeId = None, limit: PageSize = 50
) -> RecordPage:
    """Inspections, the newest first; pass `next_before` of a page to get the next one."""
    return await record.read(record_view.list_page, filters, before, limit)


@router.get("/names", responses=document_problems(400, 503))
async def list_names(
    record: RecordDep,
    station: Annotated[Name | None, Query(description="only stations whose name contains this text")] = None,
) -> RecordNames:
    """Names in the record, to choose from in a search."""
    return await record.read(record_view.list_names, station or "")


ETAG: dict[str, Any] = {
    "headers": {"ETag": {"description": "the revision, for If-Match", "schema": {"type": "string"}}}
}


@router.get("/{record_id}", response_model=InspectionRecord, responses={200: ETAG, **PROBLEMS})
async def show_record(row: RowDep) -> Response:
    """One inspection with its answer and review."""
    return answer_record(row)


def answer_record(row: Row) -> Response:
    """Returns the answer about one inspection, with its revision as ETag."""
    record = record_view.make_record(row)
    headers = {"ETag": f'"{record.revision}"'}
    return Response(record.model_dump_json(), headers=headers, media_type="application/json")


@router.get("/{record_id}/image", **FILE)
async def show_image(
    record: RecordDep,
    models: ModelsDep,
    row: RowDep,
    form: Annotated[
        Literal["sent", "png"], Query(description="as sent, or as the network saw it: upright, 8 bits")
    ] = "sent",
) -> Response:
    """The photograph."""
    picture = await record.read_picture(row)
    if form == "sent":
        return Response(picture, headers=IMMUTABLE, media_type=f"image/{row['picture_format']}")
    draw = partial(record_view.encode_picture, picture, _white_level(models, row))
    return Response(await record.run_in_thread(draw), headers=REVALIDATED, media_type=PNG)


def _white_level(models: ModelRegistry, row: Row) -> int | None:
    """Returns the white level of the model that answered, if it is still served."""
    model = models.versions(row["model"]).get(row["version"])
    return FULL_RANGE if model is None else model.config.input.white_level


@router.get("/{record_id}/mask", **FILE)
async def show_mask(
    record: RecordDep,
    row: RowDep,
    which: Annotated[
        Literal["predicted", "reviewed"], Query(description="the prediction, or as a reviewer corrected it")
    ] = "predicted",
    values: Annotated[
        Literal["defect", "class", "any"],
        Query(description="255 = defect, or the index of each pixel's class; any: see X-Segdec-Values"),
    ] = "defect",
) -> Response:
    """The mask as a grey PNG."""
    draw = partial(record_view.encode_mask, row, which, values)
    mask, sent_values = await record.run_in_thread(draw)
    headers = {**(IMMUTABLE if which == "predicted" else REVALIDATED), "X-Segdec-Values": sent_values}
    return Response(mask, headers=headers, media_type=PNG)


@router.get("/{record_id}/overlay", **FILE)
async def show_overlay(
    record: RecordDep,
    models: ModelsDep,
    row: RowDep,
    side: Annotated[
        int | None,
        WHOLE_NUMBER,
        Query(ge=16, le=MAX_SIDE, description="maximum length of the longest side, px"),
    ] = None,
) -> Response:
    """The photograph with the mask as an overlay, a PNG."""
    picture = await record.read_picture(row)
    draw = partial(record_view.draw_record, row, picture, _white_level(models, row), side)
    return Response(await record.run_in_thread(draw), headers=REVALIDATED, media_type=PNG)


@router.get("/{record_id}/heat-map", **FILE)
async def show_heat_map(row: RowDep) -> Response:
    """The mask scores × 255, a grey PNG that covers the photograph with one pixel for each network cell."""
    if row["heat_map"] is None:
        raise RequestError(
            404,
            "no_heat_map",
            f"Record {row['id']} has no heat map: it is stored for defective and sampled parts, and deleted "
            "with the photograph.",
        )
    return Response(bytes(row["heat_map"]), headers=IMMUTABLE, media_type=PNG)


@router.get("/{record_id}/qr-code", **FILE)
async def show_qr_code(request: Request, settings: SettingsDep, row: RowDep) -> Response:
    """A QR code with the address of the page of the part, an SVG; the setting `public_url` begins it."""
    pages = settings.public_url or str(request.base_url).rstrip("/")
    image = io.BytesIO()
    segno.make(f"{pages}/parts/{row['id']}", error="m", micro=False).save(image, kind="svg", scale=3)
    return Response(image.getvalue(), headers=REVALIDATED, media_type="image/svg+xml")


@router.get("/{record_id}/audit", responses=PROBLEMS)
async def show_audit(record: RecordDep, row: RowDep) -> AuditPage:
    """Who changed what about the inspection; its newest changes."""
    return await record.read(list_changes, None, MAX_PAGE_SIZE, None, row["id"])


@router.get("/{record_id}/messages", responses=PROBLEMS)
async def show_messages(record: RecordDep, row: RowDep) -> MessageList:
    """The messages about the inspection to other systems, in the order of their events."""
    messages = await record.read(messages_of, row["id"])
    names = MessageView.model_fields
    views = [MessageView(**{name: getattr(each, name) for name in names}) for each in messages]
    return MessageList(messages=views)
