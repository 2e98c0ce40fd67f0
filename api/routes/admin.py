"""What an administrator can do while the service runs."""

from fastapi import APIRouter
from starlette.requests import Request

from api.dependencies import ServiceDep
from api.errors import describe_problems
from api.middleware.access import who_asked
from segdec.schemas import ReloadAnswer

router = APIRouter(prefix="/v1/admin", tags=["admin"])


@router.post("/models/{name}/reload", responses=describe_problems(404, 409, 422, 500, 503))
async def reload_model(name: str, request: Request, service: ServiceDep) -> ReloadAnswer:
    """Serves what lies on disk now: load, check, self-test, warm, swap, drain; a failure changes nothing."""
    return await service.reload(name, who_asked(request.scope))
