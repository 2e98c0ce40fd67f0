"""The status of the line. Served if the service records."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from api.errors import document_problems
from api.records.schemas import LineStatus
from api.routes.dependencies import ServiceDep
from api.routes.request_params import Name
from api.routes.roles import require_role

router = APIRouter(prefix="/v1", tags=["line"], dependencies=require_role("operator"))


@router.get("/line", response_model=LineStatus, responses=document_problems(400, 503))
async def show_line(
    service: ServiceDep, station: Annotated[Name | None, Query(description="default: all")] = None
) -> Response:
    """Status of the line: last verdict, misses, counts, chart, drift, last defects."""
    line = service.recording.line
    assert line is not None, "this route is served only with a record"
    return Response(await line.answer(station), media_type="application/json")
