"""Sends the reports that models contain."""

import asyncio

from fastapi import APIRouter, Depends
from starlette.responses import HTMLResponse

from api.errors import document_problems
from api.http.export_limit import take_export_slot
from api.http.roles import require_role
from api.inspecting.dependencies import ModelVersionDep
from api.models.report import read_report

HEADERS = {
    # A model may come from elsewhere: its page has no access to this service, whatever its script does.
    "Content-Security-Policy": "sandbox allow-scripts; default-src 'none'; img-src data:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'",
    "Referrer-Policy": "no-referrer",
}

# A report shows photographs, as the pages of parts do.
router = APIRouter(prefix="/v1/models", tags=["models"], dependencies=require_role("operator"))


@router.get(
    "/{name}/versions/{version}/report",
    dependencies=[Depends(take_export_slot)],
    response_class=HTMLResponse,
    responses=document_problems(404, 503),
)
async def show_report(model: ModelVersionDep) -> HTMLResponse:
    """The report of the training's evaluation, if the model contains it: a page in one file."""
    return HTMLResponse(await asyncio.to_thread(read_report, model), headers=HEADERS)
