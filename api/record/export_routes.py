"""Exports of recorded inspections. Served if the service records."""

from collections.abc import AsyncIterator, Iterable
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response, StreamingResponse

from api.errors import RequestError, document_problems
from api.http.body_schemas import BINARY_SCHEMA
from api.http.downloads import save_as
from api.http.export_limit import take_export_slot
from api.http.number_text import DATE
from api.http.roles import require_role
from api.record.coco_export import export_coco
from api.record.file_names import name_export
from api.record.record_params import (
    FIRST_DAY,
    LAST_DAY,
    CurrentSettingsDep,
    FiltersDep,
    RecordDep,
    TextFilter,
)
from api.record.table_export import TableFormat, day_filters, export_table

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
    settings: CurrentSettingsDep,
    record: RecordDep,
    filters: FiltersDep,
    form: Annotated[Literal["csv", "parquet", "coco"], Query(alias="format")] = "csv",
) -> StreamingResponse:
    """The inspections that a search finds: a table without masks, or photographs and masks."""
    name = name_export(filters, ZoneInfo(settings.current.record_zone), datetime.now(UTC))
    if form == "coco":
        pieces = await record.stream(lambda engine: export_coco(engine, record.pictures, filters))
        return _download(pieces, f"{name}.zip", ZIP)
    pieces = await record.stream(lambda engine: export_table(engine, filters, form))
    return _download(pieces, f"{name}.{form}", TABLE_TYPES[form])


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
    return _download(pieces, f"segdec-inspections-{day.isoformat()}.{form}", TABLE_TYPES[form])


def _download(pieces: AsyncIterator[bytes], name: str, media_type: str) -> StreamingResponse:
    return StreamingResponse(pieces, headers=save_as(name), media_type=media_type)


def _find_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # unknown, not a file name, or a folder
        raise RequestError(
            400, "bad_parameter", f"zone is {name!r}. Expected a time zone such as 'Europe/Berlin'."
        ) from error
