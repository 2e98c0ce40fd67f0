"""Ends connections while the service stops, and answers requests that are cancelled in the end."""

import asyncio

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import ProblemResponse
from api.http.middleware.http_middleware import HttpMiddleware, StatusSend
from api.metrics import Metrics


class ShutdownMiddleware(HttpMiddleware):
    """While the service stops, adds `Connection: close` to each answer, so that clients change to another
    replica. Answers 503 for a request that the server cancels at the end of its drain time, unless its answer
    has started.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        super().__init__(app)
        self.metrics = metrics

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_and_close(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_draining(scope):
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        answer = StatusSend(send_and_close)
        try:
            await self.app(scope, receive, answer)
        except asyncio.CancelledError:
            if not _is_draining(scope):
                raise
            if not answer.status:
                await self._reject(scope, receive, answer)

    async def _reject(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.metrics.count_rejection("draining")
        detail = "The service stopped before this was answered. Ask another replica."
        headers = {"Retry-After": str(scope["app"].state.settings.retry_after_s)}
        response = ProblemResponse(scope["state"]["request_id"], 503, "draining", detail, headers)
        await response(scope, receive, send)


def _is_draining(scope: Scope) -> bool:
    service = scope["app"].state.service
    return service is not None and service.inspection.state == "draining"
