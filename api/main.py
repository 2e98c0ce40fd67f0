"""Puts the service together."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from anyio import to_thread
from fastapi import FastAPI

from api.errors import add_error_handlers
from api.images import warm_decoder
from api.inference import ImagePredictor
from api.models import load_model
from api.request_id import RequestIdMiddleware
from api.routes import health, models, predict
from api.settings import Settings
from segdec import __version__


def create_app(settings: Settings, predictor: ImagePredictor | None = None) -> FastAPI:
    """Creates the service; the model is loaded and warmed when it starts, in its lifespan.

    Args:
        settings: What the operator set.
        predictor: Serves this one instead of loading `settings.model`.
    """
    # The framework's documentation pages load from a CDN and stay blank without internet.
    app = FastAPI(title="segdec", version=__version__, docs_url=None, redoc_url=None, lifespan=_lifespan)
    app.state.settings = settings
    app.state.predictor = predictor
    app.state.model = None
    app.add_middleware(RequestIdMiddleware)
    add_error_handlers(app)
    for module in (predict, models, health):
        app.include_router(module.router)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    settings: Settings = app.state.settings
    model = await to_thread.run_sync(load_model, settings, app.state.predictor)
    with ThreadPoolExecutor(settings.image_threads, thread_name_prefix="image") as image_threads:
        app.state.image_threads = image_threads
        try:
            await asyncio.get_running_loop().run_in_executor(image_threads, warm_decoder)
            await model.inference.warm()
            app.state.model = model
            yield
        finally:
            app.state.model = None
            model.inference.close()
