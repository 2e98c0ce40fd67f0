"""Liveness and readiness. They use nothing that can block, so that load does not look like a failure."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from starlette.requests import Request

from api.delivery.receivers import Receivers
from api.errors import document_problems
from api.http.components import component
from api.http.roles import require_role
from api.inspecting.dependencies import ServiceDep, check_alive
from segdec.schemas import Health

router = APIRouter(tags=["health"], dependencies=require_role("anyone"))
ROUTE: dict[str, Any] = {"responses": document_problems(503), "response_model_exclude_defaults": True}


@router.head("/livez", include_in_schema=False)
@router.get("/livez", **ROUTE)
async def live(request: Request) -> Health:
    """The process answers; 503 if one of its threads hangs for so long that only a restart helps."""
    check_alive(request)
    return Health(status="alive")


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", **ROUTE)
async def ready(service: ServiceDep, receivers: Annotated[Receivers, component(Receivers)]) -> Health:
    """The models are loaded and warm; 503 before that, while a thread hangs, and during shutdown.

    `degraded`: photographs are inspected, but something else fails.
    """
    service.check_ready()
    problems = receivers.problems() | service.recording.problems()
    status: Literal["ready", "degraded"] = "degraded" if problems else "ready"
    return Health(status=status, problems=list(problems.values()), codes=list(problems))
