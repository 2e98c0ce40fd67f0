"""A route whose endpoint reads its request itself."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response


class RawRoute(APIRoute):
    """Gives the request and its path's parts to the endpoint, and the endpoint's response to the client.

    It is described in the OpenAPI document like any other, but nothing is resolved and validated on the way.
    """

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """What answers a request."""
        endpoint: Callable[..., Any] = self.endpoint

        async def handle(request: Request) -> Response:
            response: Response = await endpoint(request, **request.path_params)
            return response

        return handle
