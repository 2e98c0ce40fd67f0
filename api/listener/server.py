"""Listens: binds the address, starts the service, reloads what it is told to, and stops it in order."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any, NoReturn

import uvicorn
from fastapi import FastAPI

from api.app import create_app
from api.inference.watchdog import Watchdog
from api.listener.certificate import tls_options
from api.listener.http_protocol import BoundedHttpProtocol
from api.listener.reloading import Reloader
from api.listener.tls_handshakes import report_failed_handshakes
from api.logs import configure_logging
from api.models.store import open_store
from api.service import Service
from api.settings import Settings
from segdec.artifact.signatures import TrustedKeys
from segdec.engines import ENGINES
from segdec.errors import ConfigError
from segdec.process_memory import make_memory_returnable
from segdec.runtime.cli import EXIT_INTERRUPTED, import_tensorflow
from segdec.runtime.threads import limit_opencv_threads

EXIT_UNFINISHED = 70
"""Exit code when requests were not finished in time, or when the process left because a thread hung."""
CANCEL_TIMEOUT_S = 0.5
"""Seconds that requests which are cut off may take to be told so."""
FLUSH_TIMEOUT_S = 2.0
"""Seconds that the last lines of the log may take to be written."""
TICKS_PER_SECOND = 10

logger = logging.getLogger(__name__)


class DrainingServer(uvicorn.Server):
    """A server that, told to stop, first answers 503 for a while, so that nobody sends it more.

    Attributes:
        exit_code: What the process shall leave with: 0 when told to stop, 130 when interrupted, else
            `EXIT_UNFINISHED`.
    """

    def __init__(self, config: uvicorn.Config, app: FastAPI, drain_delay_s: float) -> None:
        super().__init__(config)
        self.app = app
        self.drain_delay_s = drain_delay_s
        self.exit_code = 0
        self._stop_at = float("inf")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Begins to stop: not ready from now on; after the delay, or at a second signal, closed.

        A second interrupt waits for nothing. uvicorn would raise the signals again in the end.
        """
        self._drain()
        if sig == signal.SIGINT:
            self.force_exit = self.should_exit
            self.exit_code = EXIT_INTERRUPTED
        if sig == signal.SIGTERM and self.drain_delay_s and self._stop_at == float("inf"):
            self._stop_at = time.monotonic() + self.drain_delay_s
        else:
            self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Returns whether to stop now; asked ten times a second."""
        if counter % TICKS_PER_SECOND == 0 and self.app.state.service:
            self._watch(self.app.state.service.watchdog)
        self.should_exit = self.should_exit or time.monotonic() >= self._stop_at
        return await super().on_tick(counter)

    def _watch(self, watchdog: Watchdog) -> None:
        watchdog.report()
        if watchdog.should_exit:
            logger.critical("Leaving: %s", watchdog.describe())
            self._drain()
            self.exit_code = EXIT_UNFINISHED
            self.should_exit = self.force_exit = True

    def _drain(self) -> None:
        if self.app.state.service:
            self.app.state.service.drain()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Closes what is idle, and what is not when the time to drain is over."""
        await super().shutdown(sockets)
        unfinished = set(self.server_state.tasks)
        if not unfinished:
            return
        for task in unfinished:
            task.cancel()  # uvicorn leaves them alone at a second interrupt
        await asyncio.wait(unfinished, timeout=CANCEL_TIMEOUT_S)
        self.exit_code = self.exit_code or EXIT_UNFINISHED
        what = "1 request was" if len(unfinished) == 1 else f"{len(unfinished)} requests were"
        logger.error("%s not finished in time", what)


def serve(settings: Settings) -> NoReturn:
    """Serves until SIGTERM, after which running requests are answered and the process ends.

    Raises:
        ConfigError: If the address cannot be listened on.
        SegdecError: If a model cannot be used.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])  # from now on it waits for who can reload
    configure_logging(settings)  # first: TensorFlow adds a form of its own where it finds none
    with bind(settings.host, settings.port) as listener:
        open_store(settings).names()  # what is wrong is told before the seconds of TensorFlow's import
        if settings.require_signature is not None:
            TrustedKeys.read(settings.require_signature)
        app, tls = create_app(settings), tls_options(settings)
        if _may_need_tensorflow(settings):
            make_memory_returnable()
            import_tensorflow()
        limit_opencv_threads()
        config = make_uvicorn_config(app, settings, **tls)
        server = DrainingServer(config, app, settings.drain_delay_s)
        # Until and after uvicorn handles it.
        signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(_run(app, server, listener))
            exit_process(server.exit_code)  # closing the loop would wait for threads


def exit_process(exit_code: int) -> NoReturn:
    """Ends the process at once: no thread that hangs is waited for, and TensorFlow is not taken apart."""
    if exit_code == EXIT_INTERRUPTED:
        print("interrupted", file=sys.stderr)
    flushing = threading.Thread(target=_flush, daemon=True)  # a full pipe may hang too
    flushing.start()
    flushing.join(FLUSH_TIMEOUT_S)
    os._exit(exit_code)


def _flush() -> None:
    with suppress(OSError):  # nobody reads it any more
        sys.stdout.flush()
    logging.shutdown()


def _may_need_tensorflow(settings: Settings) -> bool:
    tensorflow = ENGINES["tensorflow"]
    if settings.engine is None:
        return tensorflow.is_installed
    return ENGINES[settings.engine].package == tensorflow.package


def make_uvicorn_config(app: FastAPI, settings: Settings, **tls: Any) -> uvicorn.Config:
    """Returns how uvicorn serves `app`; https with what `tls_options` returns."""
    if tls:
        count = partial(app.state.metrics.count_problem, "tls_handshake", None)
        tls["ssl_context_factory"] = lambda _, make: report_failed_handshakes(make(), count)
    return uvicorn.Config(
        app,
        http=BoundedHttpProtocol,
        ws="none",
        lifespan="off",  # run below instead: uvicorn would turn an unusable model into a traceback
        log_config=None,  # configured before
        access_log=False,  # ours knows the request's id
        timeout_graceful_shutdown=settings.drain_s,
        **tls,
    )


async def _run(app: FastAPI, server: uvicorn.Server, listener: socket.socket) -> None:
    async with app.router.lifespan_context(app):
        server.config.load()
        reloader = Reloader(app, server.config.ssl)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.ask)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
        working = asyncio.create_task(_start_and_reload(app.state.service, server, listener, reloader))
        await server.serve(sockets=[listener])
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def _start_and_reload(
    service: Service, server: uvicorn.Server, listener: socket.socket, reloader: Reloader
) -> None:
    """Makes the service ready and says so in one line on stdout; then reloads whenever it is asked."""
    try:
        await service.start()
    except BaseException:
        server.should_exit = True
        raise
    models = ", ".join(f"{model.identity.name} {model.identity.version}" for model in service.models.all())
    print(f"Serving {models} at {url_of(listener, server.config.is_ssl)}", flush=True)
    await reloader.run()


# === Address ===


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
    """Returns the URL of a bound socket."""
    host, port = listener.getsockname()[:2]
    scheme = "https" if secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
