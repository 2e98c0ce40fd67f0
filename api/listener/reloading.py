"""Reloads keys, certificate and models at SIGHUP."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable
from pathlib import Path

from fastapi import FastAPI

from api.accounts.keys import Keyring
from api.errors import RequestError
from api.inspecting.service import InspectionService
from api.listener.certificate import load_certificate, tls_options
from api.models.loader import ModelLoader
from api.service import Service
from segdec.errors import ConfigError, SegdecError

logger = logging.getLogger(__name__)


class Reloader:
    """Reloads keys, certificate and models, one after the other. If a new file or model cannot be used, the
    old one stays in use. Create it in its event loop.
    """

    def __init__(self, app: FastAPI, tls: ssl.SSLContext | None) -> None:
        self._app = app
        self._tls = tls
        self._requested = asyncio.Event()

    def request(self) -> None:
        """Requests a reload; if one is running, another one follows."""
        self._requested.set()

    async def run(self) -> None:
        while True:
            await self._requested.wait()
            self._requested.clear()
            await self.reload()

    async def reload(self) -> None:
        """Reloads keys, certificate and models, each with a line in the log."""
        settings = self._app.state.settings
        if any((settings.api_keys, settings.review_keys, settings.admin_keys, settings.train_keys)):
            await _log("keys", self._reload_keys())
        if self._tls is not None:
            await _log("certificate", self._reload_certificate(self._tls))
        service: Service | None = self._app.state.service
        if service is not None and (loader := service.inspection.loader) is not None:
            await _log("models", _reload_models(service.inspection, loader))

    async def _reload_keys(self) -> None:
        keyring: Keyring = self._app.state.keyring
        keyring.replace_with(await asyncio.to_thread(Keyring.read, self._app.state.settings))
        self._app.state.metrics.initialize_keys(keyring.names)

    async def _reload_certificate(self, tls: ssl.SSLContext) -> None:
        # Loaded into another context first: an unusable pair does not change the current one.
        pair = tls_options(self._app.state.settings)
        load_certificate(Path(pair["ssl_certfile"]), Path(pair["ssl_keyfile"]), tls)


async def _reload_models(service: InspectionService, loader: ModelLoader) -> None:
    """Reloads every model that is on disk or served, one after the other."""
    names = await asyncio.to_thread(loader.store.names)
    served = {model.identity.name for model in service.models.all()}
    failures = []
    for name in sorted(served.union(names)):
        try:
            await service.reload(name, {"key": "SIGHUP"})
        except RequestError as error:
            failures.append(f"{name}: {error}")
    if failures:
        raise ConfigError("; ".join(failures))


async def _log(what: str, reloading: Awaitable[None]) -> None:
    """Awaits `reloading` and logs the result in one line."""
    try:
        await reloading
    except SegdecError as error:
        logger.error("SIGHUP: %s unchanged: %s", what, error)
    except Exception:  # the service continues
        logger.exception("SIGHUP: %s unchanged", what)
    else:
        logger.info("SIGHUP: %s reloaded", what)
