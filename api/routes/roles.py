"""Which key a route needs: every router declares a role, and `check_roles` refuses a route without one."""

import math
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.params import Depends as Dependency
from fastapi.routing import APIRoute
from starlette.requests import Request

from api.errors import RequestError
from api.routes.keys import RANKS, Keyring, Role
from api.routes.rate_limit import RateLimiter, client_of
from segdec.errors import ConfigError

SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
    "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


class RequireRole:
    """A dependency that rejects a request without a key of a role, or above the rate limit of its key.

    It runs before the body is read. The name of the key is left in the request's state as `key`.
    """

    def __init__(self, role: Role) -> None:
        self.role = role

    async def __call__(self, request: Request) -> None:
        """Raises a RequestError: 401 without a known key, 403 with a key of a lower role, 429 above the rate
        limit.
        """
        keyring: Keyring = request.app.state.keyring
        request.state.key = keyring.authorize(self.role, request.headers)
        limiter: RateLimiter | None = request.app.state.limiter
        if limiter is not None and self.role != "anyone":
            _take_token(limiter, request)


def require_role(role: Role) -> list[Dependency]:
    """Returns the dependencies of a router, or of a route, for `role`; `anyone` needs no key."""
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
                if role is not None and keyring.requires_key(role):
                    for method in route.methods or ():
                        operation = document["paths"][route.path_format][method.lower()]
                        operation["security"] = [{name: []} for name in SCHEMES]
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend the document


def _take_token(limiter: RateLimiter, request: Request) -> None:
    wait_s = limiter.take_token(client_of(request))
    if wait_s:
        retry_after_s = math.ceil(wait_s)
        detail = f"Too many requests. Retry in {retry_after_s} s."
        raise RequestError(429, "rate_limit", detail, {"Retry-After": str(retry_after_s)})
