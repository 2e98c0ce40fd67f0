"""Adds the middleware to an app in the required order."""

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from api.http.middleware.access import AccessMiddleware
from api.http.middleware.allowed_hosts import AllowedHostsMiddleware
from api.http.middleware.cross_site import CrossSiteMiddleware
from api.http.middleware.draining import ShutdownMiddleware
from api.http.middleware.request_id import RequestIdMiddleware
from api.http.middleware.response_headers import ResponseHeadersMiddleware
from api.http.middleware.translation import TranslationMiddleware
from api.http.middleware.untrusted_proxy import UntrustedProxyMiddleware
from api.metrics import Metrics
from api.record.uninspected_middleware import UninspectedMiddleware
from api.settings import Settings

CORS_METHODS = ("GET", "POST", "PUT", "DELETE")
CORS_REQUEST_HEADERS = (
    "Content-Type",
    "Authorization",
    "X-API-Key",
    "X-Request-ID",
    "X-Deadline-Ms",
    "Idempotency-Key",
    "If-Match",
    "Inference-Header-Content-Length",
)
CORS_ANSWER_HEADERS = (
    "X-Request-ID",
    "X-Request-ID-Refused",
    "Retry-After",
    "ETag",
    "Inference-Header-Content-Length",
    "X-Segdec-Model",
    "X-Segdec-Version",
    "X-Segdec-Label",
    "X-Segdec-Score",
    "X-Segdec-Threshold",
    "X-Segdec-Review-Threshold",
    "X-Segdec-Integrity",
    "X-Segdec-Warnings",
    "X-Segdec-Record",
    "X-Segdec-Repeated",
    "X-Segdec-Values",
)


def add_middleware(app: FastAPI, settings: Settings, metrics: Metrics) -> None:
    """Adds the middleware to `app`.

    A request passes, in this order: headers of all answers, access log, report of a proxy, language of the
    answer, CORS (so that a browser can read every rejection, and a preflight, which has no key, is answered),
    request id, host name, origin (both before the log of photographs, which other sites could fill),
    shutdown, log of photographs that are not inspected, route.
    """
    # The one added last comes first.
    if settings.record != "off":
        app.add_middleware(UninspectedMiddleware)
    app.add_middleware(ShutdownMiddleware, metrics=metrics)
    app.add_middleware(CrossSiteMiddleware, origins=settings.cors_origins, metrics=metrics)
    app.add_middleware(AllowedHostsMiddleware, settings=settings)
    app.add_middleware(RequestIdMiddleware)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=CORS_METHODS,
            allow_headers=CORS_REQUEST_HEADERS,
            expose_headers=CORS_ANSWER_HEADERS,
        )
    app.add_middleware(TranslationMiddleware)
    if not settings.trusted_proxies:
        app.add_middleware(UntrustedProxyMiddleware)
    app.add_middleware(AccessMiddleware, metrics=metrics, log=settings.access_log)
    app.add_middleware(ResponseHeadersMiddleware)
