"""Exports of recorded inspections. Served if the service records."""

from collections.abc import AsyncIterator, Iterable
from datetime import date
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response, StreamingResponse

from api.errors import RequestError, document_problems
from api.records.coco_export import export_coco
from api.records.table_export import TableFormat, day_filters, export_table
from api.routes.body_schemas import BINARY_SCHEMA
from api.routes.dependencies import take_export_slot
from api.routes.number_text import DATE
from api.routes.record_filters import FIRST_DAY, LAST_DAY, FiltersDep, RecordDep, TextFilter
from api.routes.roles import require_role

router = APIRouter(prefix="/v1/records", tags=["records"], dependencies=require_role("quality"))

TABLE_TYPES: dict[TableFormat, str] = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
ZIP = "application/zip"


def _describe_files(kinds: Iterable[str]) -> dict[str, Any]:
    content = {kind: {"schema": BINARY_SCHEMA} for kind in kinds}
    return {
        "response_class": Response,
        "responses": {200: {"content": content}, **document_problems(400, 503)},
    }


@router.get(
    "/export", dependencies=[Depends(take_export_slot)], **_describe_files((*TABLE_TYPES.values(), ZIP))
)
async def export(
    record: RecordDep,
    filters: FiltersDep,
    form: Annotated[Literal["csv", "parquet", "coco"], Query(alias="format")] = "csv",
) -> StreamingResponse:
    """The inspections that a search finds: a table without masks, or photographs and masks."""
    if form == "coco":
        pieces = await record.stream(lambda engine: export_coco(engine, record.pictures, filters))
        return _download(pieces, "inspections.zip", ZIP)
    pieces = await record.stream(lambda engine: export_table(engine, filters, form))
    return _download(pieces, f"inspections.{form}", TABLE_TYPES[form])


@router.get("/days/{day}", dependencies=[Depends(take_export_slot)], **_describe_files(TABLE_TYPES.values()))
async def export_day(
    record: RecordDep,
    day: Annotated[date, DATE, Path(ge=FIRST_DAY, le=LAST_DAY)],
    form: Annotated[TableFormat, Query(alias="format")] = "csv",
    zone: Annotated[str, Query(max_length=64, description="time zone of the day")] = "UTC",
    station: TextFilter = None,
) -> StreamingResponse:
    """The inspections of a day as a table, the newest first, without masks and regions."""
    filters = day_filters(day, _find_zone(zone), station)
    pieces = await record.stream(lambda engine: export_table(engine, filters, form))
    return _download(pieces, f"inspections-{day.isoformat()}.{form}", TABLE_TYPES[form])


def _download(pieces: AsyncIterator[bytes], name: str, media_type: str) -> StreamingResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(pieces, headers=headers, media_type=media_type)


def _find_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # unknown, not a file name, or a folder
        raise RequestError(
            400, "bad_parameter", f"zone is {name!r}. Expected a time zone such as 'Europe/Berlin'."
        ) from error
