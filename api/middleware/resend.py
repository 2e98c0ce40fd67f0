"""Tells of requests that are sent again because a replica was lost while it worked on them."""

import logging

from starlette.types import ASGIApp, Receive, Scope, Send

from api.metrics import Metrics

HEADER = b"x-segdec-resend"
logger = logging.getLogger(__name__)


class ResendMiddleware:
    """Counts a request that is marked as sent again and logs it before it is worked on, then passes it on.

    The photograph may have ended the replica that had it first. If it ends this one too, the line is what is
    left; who marked the request sends it to no third one.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] == "http" and any(name == HEADER for name, _ in scope["headers"]):
            request_id = scope["state"]["request_id"]
            self.metrics.count_resent()
            logger.warning(
                "Request %s is sent again: the replica that had it before was lost with it",
                request_id,
                extra={"request_id": request_id},
            )
        await self.app(scope, receive, send)
