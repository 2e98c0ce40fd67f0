"""Liveness and readiness. They touch nothing that can block, so that load never looks like death."""

from fastapi import APIRouter

from api.dependencies import ModelDep
from api.errors import describe_problems
from api.schemas import Health

router = APIRouter(tags=["health"])


@router.get("/livez", responses=describe_problems())
async def live() -> Health:
    """The process answers."""
    return Health(status="alive")


@router.get("/readyz", responses=describe_problems(503))
async def ready(model: ModelDep) -> Health:  # noqa: ARG001
    """The model is loaded and warm; 503 before that. A service that stops takes no connection any more."""
    return Health(status="ready")
