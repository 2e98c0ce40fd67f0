"""What is served."""

from fastapi import APIRouter

from api.dependencies import ModelDep
from api.errors import RequestError, describe_problems
from api.schemas import ModelDetail, ModelList

router = APIRouter(prefix="/v1/models", tags=["models"])


@router.get("", responses=describe_problems(503))
async def list_models(model: ModelDep) -> ModelList:
    """All served models with their manifests."""
    return ModelList(models=[model.detail()])


@router.get("/{name}", responses=describe_problems(404, 503))
async def get_model(name: str, model: ModelDep) -> ModelDetail:
    """One served model with its manifest."""
    if name != model.identity.name:
        raise RequestError(
            404, "model_not_found", f"No model '{name}' is served. Expected one of: '{model.identity.name}'."
        )
    return model.detail()
