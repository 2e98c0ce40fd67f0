"""Liveness and readiness. They touch nothing that can block, so that load never looks like death."""

from fastapi import APIRouter

from api.dependencies import ServiceDep
from api.errors import describe_problems
from segdec.schemas import Health

router = APIRouter(tags=["health"])


@router.head("/livez", include_in_schema=False)
@router.get("/livez", responses=describe_problems())
async def live() -> Health:
    """The process answers."""
    return Health(status="alive")


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses=describe_problems(503))
async def ready(service: ServiceDep) -> Health:
    """The models are loaded and warm; 503 before that, and once the service has been told to stop."""
    service.check_ready()
    return Health(status="ready")
