"""Reports a proxy whose headers are ignored."""

import logging

from starlette.types import ASGIApp, Receive, Scope, Send

from api.http.middleware.http_middleware import HttpMiddleware

HEADERS = {b"x-forwarded-for", b"x-forwarded-proto"}
logger = logging.getLogger(__name__)


class UntrustedProxyMiddleware(HttpMiddleware):
    """Logs the first request that a proxy has passed on; for a service that trusts no proxy."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app)
        self._is_reported = False

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_reported and any(name in HEADERS for name, _ in scope["headers"]):
            self._is_reported = True
            logger.warning(
                "A request from %s has X-Forwarded-For or X-Forwarded-Proto, which are ignored: limits and "
                "the log count all clients of a proxy as one. If this is the address of your proxy, add "
                "it to --trusted-proxies. Further requests are not reported",
                (scope.get("client") or ("an unknown address",))[0],
            )
        await self.app(scope, receive, send)
