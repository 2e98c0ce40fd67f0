"""Base class of the middleware: handles only HTTP requests. `StatusSend` knows the status of an answer."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class StatusSend:
    """Sends messages of an answer; `status` is its HTTP status, 0 before it has started."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


class HttpMiddleware:
    """Passes HTTP requests to `handle` and all other connections to the app."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handle = self.handle if scope["type"] == "http" else self.app
        await handle(scope, receive, send)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise NotImplementedError
