"""The status of the line. Served if the service records."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from api.errors import document_problems
from api.http.components import component
from api.http.request_params import Name
from api.http.roles import require_role
from api.line.line_status import LineMonitor
from api.line.schemas import LineStatus

router = APIRouter(prefix="/v1", tags=["line"], dependencies=require_role("operator"))


@router.get("/line", response_model=LineStatus, responses=document_problems(400, 503))
async def show_line(
    line: Annotated[LineMonitor, component(LineMonitor)],
    station: Annotated[Name | None, Query(description="default: all")] = None,
) -> Response:
    """Status of the line: last verdict, uninspected photographs, counts, chart, drift, last defects."""
    return Response(await line.answer(station), media_type="application/json")
