"""Listens: binds the address, starts the service, says where it is, and stops it in order."""

import asyncio
import signal
import socket
from typing import Any

import uvicorn
from fastapi import FastAPI

from api.main import create_app
from api.models import ServedModel
from api.settings import Settings
from segdec.artifact import read_manifest
from segdec.errors import ConfigError
from segdec.terminal import quiet_tensorflow


class AnnouncingServer(uvicorn.Server):
    """Prints one line on stdout once requests are answered."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self.app = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts listening on `sockets` and says so."""
        await super().startup(sockets)
        model: ServedModel = self.app.state.model
        for listener in sockets or ():
            print(f"Serving {model.identity.name} {model.identity.version} at {url_of(listener)}", flush=True)


def serve(settings: Settings) -> None:
    """Serves until SIGTERM, after which running requests are answered and the function returns.

    Raises:
        ConfigError: If the address cannot be listened on.
        ArtifactError: If the model cannot be loaded.
    """
    with bind(settings.host, settings.port) as listener:
        read_manifest(settings.model)  # a damaged model is told before the seconds of the next line
        quiet_tensorflow()
        app = create_app(settings)
        config = uvicorn.Config(
            app,
            lifespan="off",  # run below instead: uvicorn would turn an unusable model into a traceback
            log_level="info" if settings.access_log else "warning",
            access_log=settings.access_log,
            timeout_graceful_shutdown=settings.drain_s,
        )
        server = AnnouncingServer(config, app)
        # uvicorn raises the signal again when it has stopped; the default action would not exit with 0.
        signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(_run(app, server, listener))


async def _run(app: FastAPI, server: uvicorn.Server, listener: socket.socket) -> None:
    async with app.router.lifespan_context(app):
        await server.serve(sockets=[listener])


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


def url_of(listener: socket.socket) -> str:
    """The URL of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
