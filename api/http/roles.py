"""Which role a route needs: every router declares a role, and `check_roles` refuses a route without one."""

from typing import Any, Protocol

from fastapi import Depends, FastAPI
from fastapi.params import Depends as Dependency
from fastapi.routing import APIRoute
from starlette.requests import Request

from api.http.callers import client_of
from api.http.rate_limit import RateLimiter, take_token
from api.roles import RANKS, Role, key_role_for
from segdec.errors import ConfigError

SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
    "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


class Authorizer(Protocol):
    """Decides whether a request is allowed."""

    async def authorize(self, role: Role, request: Request) -> None:
        """Leaves the name of the caller in the request's state; raises a RequestError if it is refused."""


class RequireRole:
    """A dependency that rejects a request of somebody without a role, or above the rate limit.

    It runs before the body is read, and leaves the name of the key or of the user in the request's state.
    """

    def __init__(self, role: Role) -> None:
        self.role = role

    async def __call__(self, request: Request) -> None:
        """Raises a RequestError: as `AccessControl.authorize`, or 429 above the rate limit."""
        access: Authorizer = request.app.state.access
        await access.authorize(self.role, request)
        limiter: RateLimiter | None = request.app.state.limiter
        if limiter is not None and self.role != "anyone":
            take_token(limiter, client_of(request))


def require_role(role: Role) -> list[Dependency]:
    """Returns the dependencies of a router, or of a route, for `role`; `anyone` needs nothing."""
    return [Depends(RequireRole(role))]


def role_of(route: APIRoute) -> Role | None:
    """Returns the highest role that a route requires; None if it declares none."""
    roles = [item.dependency.role for item in route.dependencies if isinstance(item.dependency, RequireRole)]
    return max(roles, key=RANKS.__getitem__, default=None)


def check_roles(app: FastAPI) -> None:
    """Raises a ConfigError if the app has a route that declares no role."""
    for route in app.routes:
        if isinstance(route, APIRoute) and role_of(route) is None:
            raise ConfigError(f"The route {route.path} declares no role. Give its router require_role(…).")


def document_keys(app: FastAPI) -> None:
    """Adds to the OpenAPI document how to send a key, and which paths need one."""
    describe, keyring = app.openapi, app.state.keyring

    def openapi() -> dict[str, Any]:
        document = describe()
        document.setdefault("components", {})["securitySchemes"] = SCHEMES
        for route in app.routes:
            if isinstance(route, APIRoute) and route.include_in_schema:
                role = role_of(route)
                if role is not None and keyring.requires_key(key_role_for(role)):
                    for method in route.methods or ():
                        operation = document["paths"][route.path_format][method.lower()]
                        operation["security"] = [{name: []} for name in SCHEMES]
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend the document
