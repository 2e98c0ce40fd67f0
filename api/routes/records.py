"""What was inspected: rows, pictures and masks. Served where a record is kept."""

from datetime import UTC, date, datetime, time
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, Path, Query
from pydantic import AwareDatetime
from starlette.responses import Response, StreamingResponse

from api.dependencies import ServiceDep
from api.errors import RequestError, describe_problems
from api.raw_route import BINARY
from api.records import showing
from api.records.day_export import TableFormat, day_filters, export_day
from api.records.inspection import Row
from api.records.queries import Filters, find_inspection
from api.records.record import Record
from api.request_params import MAX_NAME, PRINTABLE
from segdec.images import encode_png
from segdec.schemas import InspectionRecord, RecordPage

router = APIRouter(prefix="/v1/records", tags=["records"])

MOST = 500
"""Inspections of a page."""
PNG = "image/png"
PROBLEMS = describe_problems(400, 404, 503)
FILE: dict[str, Any] = {
    "response_class": Response,
    "responses": {200: {"content": {"image/*": {"schema": BINARY}}}, **PROBLEMS},
}

TABLE_TYPES: dict[TableFormat, str] = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
TABLE: dict[str, Any] = {
    "response_class": Response,
    "responses": {200: {"content": {kind: {"schema": BINARY} for kind in TABLE_TYPES.values()}}, **PROBLEMS},
}

Word = Annotated[str | None, Query(max_length=MAX_NAME, pattern=PRINTABLE)]
FIRST_DAY, LAST_DAY = date(1970, 1, 2), date(2999, 12, 30)
"""Beyond them, a day has no midnight in some zone."""
Moment = Annotated[
    AwareDatetime | None,
    Query(
        description="ISO 8601, with its zone",
        ge=datetime.combine(FIRST_DAY, time(), UTC),
        le=datetime.combine(LAST_DAY, time(), UTC),
    ),
]
MOST_ID = 2**63 - 1
RecordId = Annotated[int, Path(gt=0, le=MOST_ID)]


async def get_record(service: ServiceDep) -> Record:
    """Returns the record."""
    record = service.recording.record
    assert record is not None, "these routes are served where there is one"
    return record


RecordDep = Annotated[Record, Depends(get_record)]


async def find_row(record: RecordDep, record_id: RecordId) -> Row:
    """Returns the row of the inspection in the path.

    Raises:
        RequestError: 404 if there is none.
    """
    row = await record.read(find_inspection, record_id)
    if row is None:
        raise RequestError(404, "record_not_found", f"There is no record {record_id}. See GET /v1/records.")
    return row


RowDep = Annotated[Row, Depends(find_row)]


@router.get("", responses=PROBLEMS)
async def list_records(
    record: RecordDep,
    station: Word = None,
    part_id: Word = None,
    label: Word = None,
    since: Moment = None,
    until: Moment = None,
    reviewed: bool | None = None,
    before: Annotated[int | None, Query(gt=0, le=MOST_ID, description="only what was kept before it")] = None,
    limit: Annotated[int, Query(gt=0, le=MOST)] = 50,
) -> RecordPage:
    """Inspections, the newest first; `next_before` of a page asks for the next one."""
    filters = Filters(station, part_id, label, since, until, reviewed)
    return await record.read(showing.list_page, filters, before, limit)


@router.get("/days/{day}", **TABLE)
async def export(
    record: RecordDep,
    day: Annotated[date, Path(ge=FIRST_DAY, le=LAST_DAY)],
    form: Annotated[TableFormat, Query(alias="format")] = "csv",
    zone: Annotated[str, Query(max_length=64, description="whose midnights begin and end the day")] = "UTC",
    station: Word = None,
) -> StreamingResponse:
    """The inspections of a day as one table, the newest first; without masks and regions."""
    filters = day_filters(day, _find_zone(zone), station)
    pieces = await record.stream(lambda engine: export_day(engine, filters, form))
    name = f"inspections-{day.isoformat()}.{form}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(pieces, headers=headers, media_type=TABLE_TYPES[form])


def _find_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # not known, no name of a file, or a folder
        raise RequestError(
            400, "bad_parameter", f"zone is {name!r}. Expected one such as 'Europe/Berlin'."
        ) from error


@router.get("/{record_id}", responses=PROBLEMS)
async def show_record(row: RowDep) -> InspectionRecord:
    """One inspection, with its answer and what people say of it."""
    return showing.make_record(row)


@router.get("/{record_id}/image", **FILE)
async def show_image(record: RecordDep, row: RowDep) -> Response:
    """The photograph as it was sent."""
    return Response(await record.picture(row), media_type=f"image/{row['picture_format']}")


@router.get("/{record_id}/mask", **FILE)
async def show_mask(record: RecordDep, row: RowDep) -> Response:
    """The mask that was answered, a grey PNG: 255 = defect."""
    return Response(await record.work(lambda: encode_png(showing.predicted_mask(row))), media_type=PNG)


@router.get("/{record_id}/overlay", **FILE)
async def show_overlay(record: RecordDep, row: RowDep) -> Response:
    """The photograph with the mask on it, a PNG."""
    picture = await record.picture(row)
    return Response(await record.work(lambda: showing.draw_record(row, picture)), media_type=PNG)
