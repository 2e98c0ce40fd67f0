"""Recorded inspections: rows, pictures and masks. Served if the service records."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, time
from functools import partial
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, Path, Query
from pydantic import AwareDatetime
from starlette.responses import Response, StreamingResponse

from api.errors import RequestError, document_problems
from api.records import record_view
from api.records.day_export import TableFormat, day_filters, export_day
from api.records.filters import Filters
from api.records.inspection import Row
from api.records.queries import find_inspection
from api.records.record import Record
from api.records.review.reviews import record_not_found
from api.records.schemas import InspectionRecord, RecordPage
from api.records.tables import UNUSUAL_DISTANCE
from api.routes.body_schemas import BINARY_SCHEMA
from api.routes.dependencies import ServiceDep
from api.routes.number_text import DATE, DECIMAL_NUMBER, ISO_TIME, WHOLE_NUMBER
from api.routes.request_params import Name
from api.routes.roles import require_role
from api.service import Service
from segdec.imaging.white_level import FULL_RANGE

router = APIRouter(prefix="/v1/records", tags=["records"], dependencies=require_role("review"))

MAX_PAGE_SIZE = 500
"""Inspections per page."""
PNG = "image/png"
PROBLEMS = document_problems(400, 404, 503)
FILE: dict[str, Any] = {
    "response_class": Response,
    "responses": {200: {"content": {"image/*": {"schema": BINARY_SCHEMA}}}, **PROBLEMS},
}

VARY_BY_KEY = {"Vary": "Authorization, X-API-Key"}
IMMUTABLE = {"Cache-Control": "private, max-age=86400, immutable", **VARY_BY_KEY}
"""For files of a record that never change; for a day only, because a picture can be deleted."""
REVALIDATED = {"Cache-Control": "private, no-cache", **VARY_BY_KEY}
"""For files that change with reviews and with the model that is served."""

TABLE_TYPES: dict[TableFormat, str] = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
TABLE: dict[str, Any] = {
    "response_class": Response,
    "responses": {
        200: {"content": {kind: {"schema": BINARY_SCHEMA} for kind in TABLE_TYPES.values()}},
        **PROBLEMS,
    },
}

TextFilter = Annotated[Name | None, Query()]
FIRST_DAY, LAST_DAY = date(1970, 1, 2), date(2999, 12, 30)
"""Outside this range, a day has no midnight in some zone."""
Timestamp = Annotated[
    AwareDatetime | None,
    ISO_TIME,
    Query(
        description="ISO 8601 with a zone",
        ge=datetime.combine(FIRST_DAY, time(), UTC),
        le=datetime.combine(LAST_DAY, time(), UTC),
    ),
]
MAX_ID = 2**63 - 1
MAX_SIDE = 2**14
RecordId = Annotated[int, WHOLE_NUMBER, Path(gt=0, le=MAX_ID)]


async def get_record(service: ServiceDep) -> Record:
    """Returns the record."""
    record = service.recording.record
    assert record is not None, "these routes are served only with a record"
    return record


RecordDep = Annotated[Record, Depends(get_record)]


async def find_row(record: RecordDep, record_id: RecordId) -> Row:
    """Returns the row of the inspection in the path.

    Raises:
        RequestError: 404 if it does not exist.
    """
    row = await record.read(find_inspection, record_id)
    if row is None:
        raise record_not_found(record_id)
    return row


RowDep = Annotated[Row, Depends(find_row)]


@router.get("", responses=PROBLEMS)
async def list_records(
    record: RecordDep,
    station: TextFilter = None,
    part_id: TextFilter = None,
    label: TextFilter = None,
    since: Timestamp = None,
    until: Timestamp = None,
    reviewed: bool | None = None,
    min_distance: Annotated[
        float | None,
        DECIMAL_NUMBER,
        Query(ge=UNUSUAL_DISTANCE, allow_inf_nan=False, description="only if one of `distances` reaches it"),
    ] = None,
    before: Annotated[
        int | None, WHOLE_NUMBER, Query(gt=0, le=MAX_ID, description="only ids below it")
    ] = None,
    limit: Annotated[int, WHOLE_NUMBER, Query(gt=0, le=MAX_PAGE_SIZE)] = 50,
) -> RecordPage:
    """Inspections, the newest first; pass `next_before` of a page to get the next one."""
    filters = Filters(station, part_id, label, since, until, reviewed, min_distance=min_distance)
    return await record.read(record_view.list_page, filters, before, limit)


async def take_export_slot(service: ServiceDep) -> AsyncIterator[None]:
    """Counts an export until its last byte is sent, or its client is gone.

    Raises:
        RequestError: 503 if too many exports are running.
    """
    with service.exports:
        yield


@router.get("/days/{day}", dependencies=[Depends(take_export_slot)], **TABLE)
async def export(
    record: RecordDep,
    day: Annotated[date, DATE, Path(ge=FIRST_DAY, le=LAST_DAY)],
    form: Annotated[TableFormat, Query(alias="format")] = "csv",
    zone: Annotated[str, Query(max_length=64, description="time zone of the day")] = "UTC",
    station: TextFilter = None,
) -> StreamingResponse:
    """The inspections of a day as a table, the newest first, without masks and regions."""
    filters = day_filters(day, _find_zone(zone), station)
    pieces = await record.stream(lambda engine: export_day(engine, filters, form))
    name = f"inspections-{day.isoformat()}.{form}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(pieces, headers=headers, media_type=TABLE_TYPES[form])


def _find_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # unknown, not a file name, or a folder
        raise RequestError(
            400, "bad_parameter", f"zone is {name!r}. Expected a time zone such as 'Europe/Berlin'."
        ) from error


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
    service: ServiceDep,
    row: RowDep,
    form: Annotated[
        Literal["sent", "png"], Query(description="as sent, or as the network saw it: upright, 8 bits")
    ] = "sent",
) -> Response:
    """The photograph."""
    picture = await record.read_picture(row)
    if form == "sent":
        return Response(picture, headers=IMMUTABLE, media_type=f"image/{row['picture_format']}")
    draw = partial(record_view.encode_picture, picture, _white_level(service, row))
    return Response(await record.run_in_thread(draw), headers=REVALIDATED, media_type=PNG)


def _white_level(service: Service, row: Row) -> int | None:
    """Returns the white level of the model that answered, if it is still served."""
    model = service.models.versions(row["model"]).get(row["version"])
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
    service: ServiceDep,
    row: RowDep,
    side: Annotated[
        int | None,
        WHOLE_NUMBER,
        Query(ge=16, le=MAX_SIDE, description="maximum length of the longest side, px"),
    ] = None,
) -> Response:
    """The photograph with the mask as an overlay, a PNG."""
    picture = await record.read_picture(row)
    draw = partial(record_view.draw_record, row, picture, _white_level(service, row), side)
    return Response(await record.run_in_thread(draw), headers=REVALIDATED, media_type=PNG)
