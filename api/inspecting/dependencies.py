"""Dependencies of the endpoints. They are async: FastAPI runs other functions in threads."""

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from api.http.components import Components, component
from api.inspecting.service import InspectionService
from api.models.registry import ServedModel

ServiceDep = Annotated[InspectionService, component(InspectionService)]


async def get_default_model(service: ServiceDep) -> ServedModel:
    """Returns the stable version of the default model."""
    return service.find_model()


async def get_named_model(service: ServiceDep, name: str) -> ServedModel:
    """Returns the stable version of the model in the path."""
    return service.find_model(name)


async def get_model_version(service: ServiceDep, name: str, version: str) -> ServedModel:
    """Returns the version of the model that the path names by its number or by an alias."""
    return service.find_model(name, version)


DefaultModelDep = Annotated[ServedModel, Depends(get_default_model)]
NamedModelDep = Annotated[ServedModel, Depends(get_named_model)]
ModelVersionDep = Annotated[ServedModel, Depends(get_model_version)]


def check_alive(request: Request) -> None:
    """Raises a RequestError, 503, if the service has to be restarted; one that still starts is alive."""
    components: Components | None = request.app.state.components
    if components is not None:
        components.find(InspectionService).check_alive()
