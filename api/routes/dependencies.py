"""Dependencies of the endpoints. They are async: FastAPI runs other functions in threads."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from api.errors import service_unavailable
from api.models.registry import ServedModel
from api.service import Service


async def get_service(request: Request) -> Service:
    """Returns the running service; raises a RequestError, 503, before it is started."""
    service: Service | None = request.app.state.service
    if service is None:
        raise service_unavailable(
            "not_ready", "The service is not started.", request.app.state.settings.retry_after_s
        )
    return service


def check_alive(request: Request) -> None:
    """Raises a RequestError, 503, if the service has to be restarted; one that still starts is alive."""
    service: Service | None = request.app.state.service
    if service is not None:
        service.check_alive()


ServiceDep = Annotated[Service, Depends(get_service)]


async def get_default_model(service: ServiceDep) -> ServedModel:
    """Returns the stable version of the default model."""
    return service.find_model()


async def get_named_model(service: ServiceDep, name: str) -> ServedModel:
    """Returns the stable version of the model in the path."""
    return service.find_model(name)


async def get_model_version(service: ServiceDep, name: str, version: str) -> ServedModel:
    """Returns the version of the model that the path names by its number or by a label."""
    return service.find_model(name, version)


DefaultModelDep = Annotated[ServedModel, Depends(get_default_model)]
NamedModelDep = Annotated[ServedModel, Depends(get_named_model)]
ModelVersionDep = Annotated[ServedModel, Depends(get_model_version)]


async def take_export_slot(service: ServiceDep) -> AsyncIterator[None]:
    """Counts an export until its last byte is sent, or its client is gone.

    Raises:
        RequestError: 503 if too many exports are running.
    """
    with service.exports:
        yield
