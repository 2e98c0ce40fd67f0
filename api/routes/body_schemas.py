"""Routes whose endpoints read their requests themselves, and the JSON schemas of what they read."""

from typing import Any

from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

BINARY_SCHEMA: dict[str, Any] = {"type": "string", "format": "binary"}
"""A file."""


class RawRoute(APIRoute):
    """Gives the request and its path's parts to the endpoint, and the endpoint's response to the client.

    It is described in the OpenAPI document like any other, but nothing is resolved and validated on the way,
    and none of FastAPI's wrappers is entered: they take longer than the service's own work on a request.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if self.methods and scope["method"] not in self.methods:
            raise HTTPException(405, headers={"Allow": ", ".join(self.methods)})
        response: Response = await self.endpoint(Request(scope, receive, send), **scope["path_params"])
        await response(scope, receive, send)


def inline_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Returns the JSON schema of `model` in one piece, because OpenAPI looks for its parts elsewhere."""
    schema = model.model_json_schema()
    parts = schema.pop("$defs", {})

    def inline(node: Any) -> Any:
        if isinstance(node, list):
            return [inline(item) for item in node]
        if not isinstance(node, dict):
            return node
        members = {name: inline(value) for name, value in node.items() if name != "$ref"}
        return members if "$ref" not in node else inline(parts[node["$ref"].rpartition("/")[2]]) | members

    return dict(inline(schema))
