"""Errors of /v2: clients of the Open Inference Protocol read them from the member `error`."""

import json
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from api.errors import MEDIA_TYPE
from api.http.middleware.http_middleware import HttpMiddleware

PREFIX = "/v2"


class ProtocolErrorMiddleware(HttpMiddleware):
    """Repeats the detail of a problem of /v2 as `error`. As outermost middleware it sees every error."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path != PREFIX and not path.startswith(f"{PREFIX}/"):
            await self.app(scope, receive, send)
            return
        start: Message | None = None
        body = b""

        async def send_with_error(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_problem(message):
                start = message
            elif start is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    content = _add_error(body)
                    MutableHeaders(scope=start)["Content-Length"] = str(len(content))
                    await send(start)
                    await send({**message, "body": content})

        await self.app(scope, receive, send_with_error)


def _is_problem(start: Message) -> bool:
    return Headers(raw=start["headers"]).get("content-type") == MEDIA_TYPE


def _add_error(body: bytes) -> bytes:
    problem: dict[str, Any] = json.loads(body)
    return json.dumps({**problem, "error": problem["detail"]}, ensure_ascii=False).encode()
