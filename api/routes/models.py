"""Lists the served models, and sends their reports."""

import asyncio

from fastapi import APIRouter, Depends
from starlette.responses import HTMLResponse

from api.errors import document_problems
from api.models.report import read_report
from api.routes.dependencies import ModelVersionDep, NamedModelDep, ServiceDep, take_export_slot
from api.routes.roles import require_role
from segdec.schemas import ModelList

REPORT_HEADERS = {
    # A model may come from elsewhere: its page has no access to this service, whatever its script does.
    "Content-Security-Policy": "sandbox allow-scripts; default-src 'none'; img-src data:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}

router = APIRouter(prefix="/v1/models", tags=["models"], dependencies=require_role("predict"))


@router.get("", responses=document_problems(503))
async def list_models(service: ServiceDep) -> ModelList:
    """Every served version of every model with its labels and manifest."""
    service.check_state()
    return ModelList(models=service.describe(service.models.all()))


@router.get("/{name}", responses=document_problems(404, 503))
async def get_model(name: str, service: ServiceDep, model: NamedModelDep) -> ModelList:  # noqa: ARG001
    """Every served version of one model with its labels and manifest."""
    return ModelList(models=service.describe(service.models.versions(name).values()))


@router.get(
    "/{name}/versions/{version}/report",
    dependencies=[Depends(take_export_slot)],
    response_class=HTMLResponse,
    responses=document_problems(404, 503),
)
async def show_report(model: ModelVersionDep) -> HTMLResponse:
    """The report of the training's evaluation, if the model contains it: a page in one file."""
    return HTMLResponse(await asyncio.to_thread(read_report, model), headers=REPORT_HEADERS)
