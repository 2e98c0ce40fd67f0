"""Creates the FastAPI app from settings, routes and middleware."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI

from api import health_routes as health
from api import metrics_routes as metrics
from api.accounts.access import AccessControl
from api.accounts.keys import Keyring
from api.errors import add_error_handlers
from api.http.admission import AdmissionLimit
from api.http.json_body import document_json_bodies
from api.http.rate_limit import RateLimiter
from api.http.roles import check_roles, document_keys
from api.inference.inference_thread import ImagePredictor
from api.inspecting import admin_routes as admin
from api.inspecting import batch_routes as batch
from api.inspecting import inspect_routes as inspect
from api.inspecting import model_report_routes as model_reports
from api.inspecting import model_routes as models
from api.inspecting import predict_routes as predict
from api.inspecting.protocol_v2 import v2_routes as v2
from api.metrics import Metrics
from api.middleware_stack import add_middleware
from api.page_routes import add_pages
from api.plans import plan_routes as plans
from api.record.recording import explain_missing_group
from api.service import Service
from api.settings import Settings
from segdec import __version__

if TYPE_CHECKING:
    from api.record.record import Record

LOG_INS_PER_S, MAX_LOG_INS = 1.0, 10
"""Attempts of an address to log in: on average, and at once."""
MAX_HASHES = 2
"""Passwords that are checked at the same time: each takes 64 MiB."""
MAX_WAITING_LOG_INS = 20
"""Log-ins that are waiting or running; more get a 503."""

RECORD_ROUTES = (
    *("record.audit", "record.export", "record.record", "review.review", "inspecting.shadow.candidate"),
    *("inspecting.confirmation", "plans.simulation"),
    *("data_sets.data_set", "data_sets.photograph", "data_sets.annotation", "data_sets.version"),
    *("data_sets.import", "data_sets.check", "training.proposal", "training.job", "training.worker"),
    *("trends.trend", "reports.report", "labelling.labelling", "line.line", "delivery.outbox"),
    *("record.picture_deletion", "accounts.session", "record.settings", "accounts.user"),
)
"""Modules of the routes that need a record, in this order, without `api.` and `_routes`."""


def create_app(settings: Settings, predictor: ImagePredictor | None = None) -> FastAPI:
    """Creates the service.

    The lifespan of the app creates `app.state.service`. The caller must await `app.state.service.start()`,
    which loads and warms up the models. Until then every request is answered 503. `predictor`, if given,
    is served instead of the models in the settings.

    Raises:
        ConfigError: If a file of keys or of a secret cannot be read.
    """
    # The framework's own documentation pages load from a CDN; those of `add_pages` do not.
    app = FastAPI(
        title="segdec",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would go to the host that the client named
        lifespan=_lifespan,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # they cost time in every request
    )
    app.state.settings = settings
    app.state.predictor = predictor
    app.state.service = app.state.components = app.state.not_found_page = None
    app.state.metrics = _make_metrics(app)
    app.state.keyring = Keyring.read(settings)
    app.state.access = AccessControl(settings, app.state.keyring, lambda: _record_of(app))
    app.state.metrics.initialize_keys(app.state.keyring.names)
    app.state.limiter = None
    if settings.rate_limit is not None:
        app.state.limiter = RateLimiter(settings.rate_limit, settings.rate_burst)
    app.state.log_in_attempts = RateLimiter(LOG_INS_PER_S, MAX_LOG_INS)
    app.state.hashing = asyncio.Semaphore(MAX_HASHES)
    app.state.log_in_queue = AdmissionLimit(
        MAX_WAITING_LOG_INS, "log_ins_full", "log-ins are waiting or running", settings.retry_after_s
    )
    app.state.kept_refusals = RateLimiter(1 / inspect.KEPT_INTERVAL_S, inspect.MAX_KEPT)
    add_error_handlers(app)
    modules = (predict, inspect, batch, models, model_reports, admin, plans, v2, health, metrics)
    routers = [v2.public_router, *(module.router for module in modules)]
    if settings.record != "off":
        routers += _record_routers()
    for router in routers:
        # `include_router` would look for the route of each request twice, in the router and in its own copy.
        app.router.routes.extend(router.routes)
    app.state.open_id = None
    if settings.openid_issuer is not None:
        _add_open_id(app, settings)
    add_pages(app, settings)
    check_roles(app)
    document_keys(app)
    document_json_bodies(app)
    add_middleware(app, settings, app.state.metrics)
    return app


def _record_routers() -> list[APIRouter]:
    with explain_missing_group():
        modules = [import_module(f"api.{name}_routes") for name in RECORD_ROUTES]
    values = [value for module in modules for value in vars(module).values()]
    return [value for value in values if isinstance(value, APIRouter)]


def _add_open_id(app: FastAPI, settings: Settings) -> None:
    with explain_missing_group():
        from api.accounts import open_id_routes as open_id
        from api.accounts.open_id import OpenIdProvider
    app.state.open_id = OpenIdProvider(settings)
    app.router.routes.extend(open_id.router.routes)


def _record_of(app: FastAPI) -> "Record | None":
    running: Service | None = app.state.service
    return None if running is None else running.recording.record


def _make_metrics(app: FastAPI) -> Metrics:
    def service() -> Service | None:
        running: Service | None = app.state.service
        return running

    return Metrics(
        queue_depth=lambda: running.inspection.inference_thread.waiting if (running := service()) else 0,
        ready=lambda: running.inspection.ready if (running := service()) else False,
        stalled=lambda: running.inspection.watchdog.stalled if (running := service()) else False,
        running_s=lambda step: running.inspection.watchdog.running_s(step) if (running := service()) else 0.0,
    )


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state = app.state
    service = state.service = Service(
        state.settings, state.metrics, state.predictor, state.keyring.check_login
    )
    state.components = service.components
    try:
        yield
    finally:
        await service.close()
