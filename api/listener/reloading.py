"""What an operator changes while the service runs, read again at SIGHUP: keys, certificate, models."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable
from pathlib import Path

from fastapi import FastAPI

from api.errors import RequestError
from api.listener.certificate import load_certificate, tls_options
from api.models.loader import ModelLoader
from api.routes.keys import Keyring
from api.service import Service
from segdec.errors import ConfigError, SegdecError

logger = logging.getLogger(__name__)


class Reloader:
    """Reads again what may have changed, one thing after the other; what cannot be used stays as it was.

    Made in the event loop that it works in.

    Args:
        app: The service's app.
        tls: What new connections are made with; None without https.
    """

    def __init__(self, app: FastAPI, tls: ssl.SSLContext | None) -> None:
        self._app = app
        self._tls = tls
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Asks for everything to be read again; while it is, once more after that."""
        self._asked.set()

    async def run(self) -> None:
        """Reads everything again whenever it is asked, without end."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            await self.reload()

    async def reload(self) -> None:
        """Reads keys, certificate and models again, each with a line in the log."""
        settings = self._app.state.settings
        if settings.api_keys or settings.admin_keys:
            await _log("keys", self._reload_keys())
        if self._tls is not None:
            await _log("certificate", self._reload_certificate(self._tls))
        service: Service | None = self._app.state.service
        if service is not None and service.loader is not None:
            await _log("models", _reload_models(service, service.loader))

    async def _reload_keys(self) -> None:
        keyring: Keyring = self._app.state.keyring
        keyring.replace_with(await asyncio.to_thread(Keyring.read, self._app.state.settings))
        self._app.state.metrics.initialize_keys(keyring.names)

    async def _reload_certificate(self, tls: ssl.SSLContext) -> None:
        # Tried on another context before: a pair that cannot be used does not touch the one in use.
        pair = tls_options(self._app.state.settings)
        load_certificate(Path(pair["ssl_certfile"]), Path(pair["ssl_keyfile"]), tls)


async def _reload_models(service: Service, loader: ModelLoader) -> None:
    """Reloads every model that there is or was, in turn."""
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
    """Awaits `reloading` and says in one line what came of it."""
    try:
        await reloading
    except SegdecError as error:
        logger.error("SIGHUP: %s kept as before: %s", what, error)
    except Exception:  # the service goes on, whatever it is
        logger.exception("SIGHUP: %s kept as before", what)
    else:
        logger.info("SIGHUP: %s read again", what)
