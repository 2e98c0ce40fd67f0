"""Reports as PDF and Excel. Served if the service records."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query
from sqlalchemy import Engine
from starlette.responses import Response

from api.errors import document_problems
from api.http.body_schemas import BINARY_SCHEMA
from api.http.components import component
from api.http.downloads import save_as
from api.http.export_limit import take_export_slot
from api.http.roles import require_role
from api.models.registry import ModelRegistry
from api.record.file_names import name_report
from api.record.record_params import CurrentSettingsDep, LanguageDep, RecordDep, TagDep, TextFilter, Timestamp
from api.record.shifts import ShiftPlan
from api.reports.excel_report import write_excel
from api.reports.pdf_report import write_pdf
from api.reports.report_content import read_content
from api.reports.report_request import MEDIA_TYPES, ReportKind, make_report_request

router = APIRouter(prefix="/v1/reports", tags=["reports"], dependencies=require_role("quality"))

CONTENT: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind: {"schema": BINARY_SCHEMA} for kind in MEDIA_TYPES.values()}}
}


@router.get(
    "/{kind}",
    response_class=Response,
    responses={**CONTENT, **document_problems(400, 404, 503)},
    dependencies=[Depends(take_export_slot)],
)
async def show_report(
    models: Annotated[ModelRegistry, component(ModelRegistry)],
    settings: CurrentSettingsDep,
    record: RecordDep,
    tag: TagDep,
    language: LanguageDep,
    kind: Annotated[ReportKind, Path(description="lot: all inspections with a value of `metadata`")],
    at: Annotated[Timestamp, Query(description="a time in the period; default: now")] = None,
    station: TextFilter = None,
    form: Annotated[Literal["pdf", "xlsx"], Query(alias="format")] = "pdf",
) -> Response:
    """A report of the shift, day or week that contains a time, or of a lot."""
    signers = {model.identity.sha256: model.signed_by for model in models.all()}
    plan, now = ShiftPlan.from_settings(settings.current), datetime.now(UTC)

    def write(engine: Engine) -> tuple[str, bytes]:
        with engine.connect() as connection:
            request = make_report_request(connection, kind, plan, at or now, station, tag, language)
            content = replace(read_content(connection, request), signers=signers)
        name = f"{name_report(kind, request.span, request.zone, station, tag)}.{form}"
        return name, write_pdf(content, now) if form == "pdf" else write_excel(content, engine)

    name, file = await record.read_all(write)
    return Response(file, headers=save_as(name), media_type=MEDIA_TYPES[form])
