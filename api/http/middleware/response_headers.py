"""Adds the headers that all answers have."""

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from api.http.middleware.http_middleware import HttpMiddleware

DEFAULTS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
"""A browser must not take a picture for a page, and no cache may keep an answer."""


class ResponseHeadersMiddleware(HttpMiddleware):
    """Adds `DEFAULTS` to each answer; a route may set others."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in DEFAULTS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers)
