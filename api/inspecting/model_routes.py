"""Lists the served models."""

from fastapi import APIRouter

from api.errors import document_problems
from api.http.roles import require_role
from api.inspecting.dependencies import NamedModelDep, ServiceDep
from segdec.schemas import ModelList

router = APIRouter(prefix="/v1/models", tags=["models"], dependencies=require_role("predict"))


@router.get("", responses=document_problems(503))
async def list_models(service: ServiceDep) -> ModelList:
    """Every served version of every model with its aliases and manifest."""
    service.check_state()
    return ModelList(models=service.describe(service.models.all()))


@router.get("/{name}", responses=document_problems(404, 503))
async def get_model(name: str, service: ServiceDep, model: NamedModelDep) -> ModelList:  # noqa: ARG001
    """Every served version of one model with its aliases and manifest."""
    return ModelList(models=service.describe(service.models.versions(name).values()))
