"""Refuses requests that pages of other web sites make a browser send."""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import ProblemResponse
from api.http.callers import SAFE_METHODS
from api.http.middleware.http_middleware import HttpMiddleware
from api.metrics import Metrics

OWN_SITES = ("same-origin", "none")
"""Values of Sec-Fetch-Site: a page of this service, or the user."""
CODE = "cross_site"


class CrossSiteMiddleware(HttpMiddleware):
    """Refuses requests of other origins that change something or inspect: without keys, any page that
    somebody in this network opens could send them.

    Browsers send Sec-Fetch-Site to https and loopback addresses, and Origin otherwise; programs send neither.
    This is the algorithm of `CrossOriginProtection` in Go's standard library.
    """

    def __init__(self, app: ASGIApp, origins: Collection[str], metrics: Metrics) -> None:
        super().__init__(app)
        self.origins = origins
        self.metrics = metrics

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in SAFE_METHODS or self._is_own(Headers(scope=scope)):
            await self.app(scope, receive, send)
            return
        self.metrics.count_rejection(CODE)
        detail = (
            "A page of another web site sent this request. Expected a page of this service (a proxy has to "
            "pass the Host header on), or an origin of --cors-origins."
        )
        response = ProblemResponse(scope["state"]["request_id"], 403, CODE, detail)
        await response(scope, receive, send)

    def _is_own(self, headers: Headers) -> bool:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin in self.origins or "*" in self.origins:
            return True
        if site is not None:
            return site in OWN_SITES
        return origin is None or origin.partition("://")[2].lower() == headers.get("host", "").lower()
