"""Answers requests that the server cancels when its drain time is over."""

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import ProblemResponse
from api.metrics import Metrics
from api.middleware.http_middleware import HttpMiddleware, StatusSend


class ShutdownMiddleware(HttpMiddleware):
    """Answers 503 for a request that the server cancels at the end of its drain time, unless its answer has
    started.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        super().__init__(app)
        self.metrics = metrics

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = StatusSend(send)
        try:
            await self.app(scope, receive, answer)
        except asyncio.CancelledError:
            service = scope["app"].state.service
            if service is None or service.state != "draining":
                raise
            if not answer.status:
                await self._reject(scope, receive, send, service.settings.retry_after_s)

    async def _reject(self, scope: Scope, receive: Receive, send: Send, retry_after_s: int) -> None:
        self.metrics.count_rejection("draining")
        detail = "The service stopped before this was answered. Ask another replica."
        headers = {"Connection": "close", "Retry-After": str(retry_after_s)}
        response = ProblemResponse(scope["state"]["request_id"], 503, "draining", detail, headers)
        await response(scope, receive, send)
