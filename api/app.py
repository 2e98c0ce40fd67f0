"""Creates the FastAPI app from settings, routes and middleware."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI

from api.accounts.access import AccessControl
from api.accounts.keys import Keyring
from api.errors import add_error_handlers
from api.inference.inference_thread import ImagePredictor
from api.inspection.admission import AdmissionLimit
from api.metrics import Metrics
from api.middleware.stack import add_middleware
from api.records.recording import explain_missing_group
from api.routes import admin, batch, health, inspect, metrics, model_reports, models, predict, v2
from api.routes.pages import add_pages
from api.routes.rate_limit import RateLimiter
from api.routes.roles import check_roles, document_keys
from api.service import Service
from api.settings import Settings
from segdec import __version__

if TYPE_CHECKING:
    from api.records.record import Record

LOG_INS_PER_S, MAX_LOG_INS = 1.0, 10
"""Attempts of an address to log in: on average, and at once."""
MAX_HASHES = 2
"""Passwords that are checked at the same time: each takes 64 MiB."""
MAX_WAITING_LOG_INS = 20
"""Log-ins that are waiting or running; more get a 503."""


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
    app.state.service = None
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
    modules = (predict, inspect, batch, models, model_reports, admin, v2, health, metrics)
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
    add_middleware(app, settings, app.state.metrics)
    return app


def _record_routers() -> list[APIRouter]:
    with explain_missing_group():
        from api.routes import (
            audit,
            candidates,
            data_set_annotations,
            data_set_checks,
            data_set_imports,
            data_set_photographs,
            data_set_proposals,
            data_set_versions,
            data_sets,
            labelling,
            line,
            outbox,
            picture_deletion,
            record_exports,
            records,
            reports,
            review,
            session,
            settings,
            training_jobs,
            training_workers,
            trends,
            users,
        )
    modules = (
        audit,
        record_exports,
        records,
        review,
        candidates,
        data_sets,
        data_set_photographs,
        data_set_annotations,
        data_set_versions,
        data_set_imports,
        data_set_checks,
        data_set_proposals,
        training_jobs,
        training_workers,
        trends,
        reports,
        labelling,
        line,
        outbox,
        picture_deletion,
        session,
        settings,
        users,
    )
    return [outbox.admin_router, *(module.router for module in modules)]


def _add_open_id(app: FastAPI, settings: Settings) -> None:
    with explain_missing_group():
        from api.accounts.open_id import OpenIdProvider
        from api.routes import open_id
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
        queue_depth=lambda: running.inference_thread.waiting if (running := service()) else 0,
        ready=lambda: running.ready if (running := service()) else False,
        stalled=lambda: running.watchdog.stalled if (running := service()) else False,
        running_s=lambda step: running.watchdog.running_s(step) if (running := service()) else 0.0,
    )


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state = app.state
    service = state.service = Service(
        state.settings, state.metrics, state.predictor, state.keyring.check_login
    )
    tasks = _start_tasks(service)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await service.close()


def _start_tasks(service: Service) -> list[asyncio.Task[None]]:
    """Starts what runs beside the requests and needs the whole service."""
    if service.training is None:
        return []
    from api.proposals_after_training import ProposalsAfterTraining  # needs the group `record`

    return [asyncio.create_task(ProposalsAfterTraining(service, service.training).run())]
