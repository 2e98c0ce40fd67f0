"""What the endpoints are given. All of it is async: FastAPI runs other functions in threads."""

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from api.errors import service_unavailable
from api.models.registry import ServedModel
from api.service import Service


async def get_service(request: Request) -> Service:
    """Returns the running service.

    Raises:
        RequestError: 503 before it is started.
    """
    service: Service | None = request.app.state.service
    if service is None:
        raise service_unavailable(
            "not_ready", "The service is not started.", request.app.state.settings.retry_after_s
        )
    return service


def check_alive(request: Request) -> None:
    """Refuses when only a new process helps; one that has not started yet is alive.

    Raises:
        RequestError: 503.
    """
    service: Service | None = request.app.state.service
    if service is not None:
        service.check_alive()


ServiceDep = Annotated[Service, Depends(get_service)]


async def get_named_model(service: ServiceDep, name: str) -> ServedModel:
    """Returns the stable version of the model in the path."""
    return service.find_model(name)


async def get_model_version(service: ServiceDep, name: str, version: str) -> ServedModel:
    """Returns the version, or the one under the label, of the model in the path."""
    return service.find_model(name, version)


NamedModelDep = Annotated[ServedModel, Depends(get_named_model)]
ModelVersionDep = Annotated[ServedModel, Depends(get_model_version)]
