"""The objects of the running service that routes use, found by their class."""

from typing import Annotated, Any, TypeVar

from fastapi import Depends
from starlette.requests import Request

from api.errors import service_unavailable
from api.http.settings import ServerSettings

T = TypeVar("T")


class Components:
    """Objects of the running service, at most one of each class."""

    def __init__(self) -> None:
        self._by_class: dict[type, object] = {}

    def add(self, *components: object) -> None:
        """Adds objects.

        Raises:
            ValueError: If there is an object of the same class.
        """
        for one in components:
            if type(one) in self._by_class:
                raise ValueError(f"There are two components of {type(one).__name__}. Expected one.")
            self._by_class[type(one)] = one

    def find(self, kind: type[T]) -> T:
        """Returns the object of the class `kind`.

        Raises:
            LookupError: If there is none: a route was added without what it uses.
        """
        component = self._by_class.get(kind)
        if not isinstance(component, kind):
            raise LookupError(f"The service has no {kind.__name__}.")
        return component


def find_component(request: Request, kind: type[T]) -> T:
    """Returns the object of the class `kind` of the running service.

    Raises:
        RequestError: 503 before the service is started.
    """
    components: Components | None = request.app.state.components
    if components is None:
        retry_after_s = request.app.state.settings.retry_after_s
        raise service_unavailable("not_ready", "The service is not started.", retry_after_s)
    return components.find(kind)


def component(kind: type[Any]) -> Any:
    """Returns the dependency of a route that needs the object of a class.

    Use it as `Annotated[Record, component(Record)]`.
    """

    async def find(request: Request) -> Any:
        return find_component(request, kind)

    return Depends(find)


async def get_settings(request: Request) -> ServerSettings:
    """Returns the settings of the start."""
    settings: ServerSettings = request.app.state.settings
    return settings


SettingsDep = Annotated[ServerSettings, Depends(get_settings)]
