"""Listens: binds the address, starts the service, says where it is, and stops it in order."""

import asyncio
import signal
import socket
import time
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from api.app import create_app
from api.http_protocol import Connection
from api.logs import configure_logging
from api.service import Service, open_store
from api.settings import Settings
from api.tls import tls_arguments
from segdec.cli_runtime import quiet_tensorflow
from segdec.engines import ENGINES
from segdec.errors import ConfigError
from segdec.threads import leave_cores_to_engine


class DrainingServer(uvicorn.Server):
    """A server that, told to stop, first answers 503 for a while, so that nobody sends it more."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, drain_delay_s: float) -> None:
        super().__init__(config)
        self.app = app
        self.drain_delay_s = drain_delay_s
        self._stop_at = float("inf")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begins to stop: not ready from now on; after the delay, or at a second signal, closed."""
        if self.app.state.service:
            self.app.state.service.drain()
        if sig == signal.SIGTERM and self.drain_delay_s and self._stop_at == float("inf"):
            self._stop_at = time.monotonic() + self.drain_delay_s
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Whether to stop now; asked ten times a second."""
        self.should_exit = self.should_exit or time.monotonic() >= self._stop_at
        return await super().on_tick(counter)


def serve(settings: Settings) -> None:
    """Serves until SIGTERM, after which running requests are answered and the function returns.

    Raises:
        ConfigError: If the address cannot be listened on.
        SegdecError: If a model cannot be used.
    """
    with bind(settings.host, settings.port) as listener:
        open_store(settings).names()  # what is wrong is told before the seconds of TensorFlow's import
        app, tls = create_app(settings), tls_arguments(settings)
        configure_logging(settings)  # first: TensorFlow adds a form of its own where it finds none
        if _may_need_tensorflow(settings):
            quiet_tensorflow()
        leave_cores_to_engine()
        config = configure(app, settings, **tls)
        server = DrainingServer(config, app, settings.drain_delay_s)
        # uvicorn raises the signal again when it has stopped; the default action would not exit with 0.
        signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(_run(app, server, listener))


def _may_need_tensorflow(settings: Settings) -> bool:
    tensorflow = ENGINES["tensorflow"]
    if settings.engine is None:
        return tensorflow.is_installed
    return ENGINES[settings.engine].package == tensorflow.package


def configure(app: FastAPI, settings: Settings, **tls: Any) -> uvicorn.Config:
    """How uvicorn serves `app`."""
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",  # run below instead: uvicorn would turn an unusable model into a traceback
        log_config=None,  # configured before
        access_log=False,  # ours knows the request's id
        timeout_graceful_shutdown=settings.drain_s,
        **tls,
    )


async def _run(app: FastAPI, server: uvicorn.Server, listener: socket.socket) -> None:
    async with app.router.lifespan_context(app):
        starting = asyncio.create_task(_start(app.state.service, server, listener))
        await server.serve(sockets=[listener])
        starting.cancel()
        with suppress(asyncio.CancelledError):  # told to stop before it was ready
            await starting


async def _start(service: Service, server: uvicorn.Server, listener: socket.socket) -> None:
    """Makes the service ready and says so in one line on stdout."""
    try:
        await service.start()
    except BaseException:
        server.should_exit = True
        raise
    models = ", ".join(f"{model.identity.name} {model.identity.version}" for model in service.models.all())
    print(f"Serving {models} at {url_of(listener, server.config.is_ssl)}", flush=True)


def bind(host: str, port: int) -> socket.socket:
    """Takes the address before the model is loaded; connections are accepted only afterwards.

    Raises:
        ConfigError: If the address is unknown or in use.
    """
    try:
        found: list[Any] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return _bind(*found[0])
    except OSError as error:
        raise ConfigError(
            f"Cannot listen at {host}:{port}: {error.strerror}. Choose another with --host and --port."
        ) from error


def _bind(family: int, kind: int, protocol: int, _: str, address: Any) -> socket.socket:
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket, secure: bool = False) -> str:
    """The URL of a bound socket."""
    host, port = listener.getsockname()[:2]
    scheme = "https" if secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
