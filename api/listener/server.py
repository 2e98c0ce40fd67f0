"""The HTTP server: binds the address, starts the service, reloads on SIGHUP and shuts down in order."""

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

from api.accounts.access import AccessControl
from api.addresses import with_mapped
from api.app import create_app
from api.errors import RequestError
from api.inference.watchdog import Watchdog
from api.listener.certificate import tls_options
from api.listener.http_protocol import BoundedHttpProtocol
from api.listener.reloading import Reloader
from api.listener.tls_handshakes import report_failed_handshakes
from api.logs import configure_logging
from api.models.store import open_store
from api.open_files import OpenFilesMonitor, raise_limit
from api.service import Service
from api.settings import Settings
from segdec.artifact.signatures import TrustedKeys
from segdec.engines import ENGINES
from segdec.errors import ConfigError
from segdec.process_memory import make_memory_returnable
from segdec.runtime.cli import EXIT_INTERRUPTED, import_tensorflow
from segdec.runtime.threads import limit_opencv_threads

EXIT_UNFINISHED = 70
"""Exit code if requests were not finished in time, or the process exited because a thread hangs."""
CANCEL_TIMEOUT_S = 0.5
"""Time in which cancelled requests can still send an error."""
FLUSH_TIMEOUT_S = 2.0
"""Time for writing the last lines of the log."""
TICKS_PER_SECOND = 10

logger = logging.getLogger(__name__)


class DrainingServer(uvicorn.Server):
    """A server that answers 503 for a while before it stops, so that clients change to another replica.

    `exit_code` is 0 after SIGTERM, 130 after SIGINT, `EXIT_UNFINISHED` after unfinished requests or a hang.
    """

    def __init__(self, config: uvicorn.Config, app: FastAPI, drain_delay_s: float) -> None:
        super().__init__(config)
        self.app = app
        self.drain_delay_s = drain_delay_s
        self.exit_code = 0
        self._stop_at = float("inf")
        self._open_files = OpenFilesMonitor()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Begins the shutdown: the service is not ready from now on, and closes after the delay or after a
        second signal.

        A second SIGINT cancels running requests. (uvicorn's method would raise the signals again at the end.)
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
        """Returns whether to stop now; called ten times a second."""
        if counter % TICKS_PER_SECOND == 0:
            self._open_files.check()
            if self.app.state.service:
                self._check(self.app.state.service.inspection.watchdog)
        self.should_exit = self.should_exit or time.monotonic() >= self._stop_at
        return await super().on_tick(counter)

    def _check(self, watchdog: Watchdog) -> None:
        watchdog.report()
        if watchdog.should_exit:
            logger.critical("Exiting: %s", watchdog.describe())
            self._drain()
            self.exit_code = EXIT_UNFINISHED
            self.should_exit = self.force_exit = True

    def _drain(self) -> None:
        if self.app.state.service:
            self.app.state.service.drain()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Closes idle connections, waits for the others, and cancels them after the drain time."""
        await super().shutdown(sockets)
        unfinished = set(self.server_state.tasks)
        if not unfinished:
            return
        for task in unfinished:
            task.cancel()  # uvicorn does not, at a second interrupt
        await asyncio.wait(unfinished, timeout=CANCEL_TIMEOUT_S)
        self.exit_code = self.exit_code or EXIT_UNFINISHED
        what = "1 request was" if len(unfinished) == 1 else f"{len(unfinished)} requests were"
        logger.error("%s not finished in time", what)


def serve(settings: Settings) -> NoReturn:
    """Serves until SIGTERM, then answers running requests and ends the process.

    Raises:
        ConfigError: If the address cannot be listened on.
        SegdecError: If a model cannot be used.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])  # it waits until the service can reload
    raise_limit()
    configure_logging(settings)  # first: otherwise TensorFlow adds a handler of its own
    with bind(settings.host, settings.port) as listener:
        open_store(settings).names()  # reports errors before TensorFlow's slow import
        if settings.require_signature is not None:
            TrustedKeys.read(settings.require_signature)
        app, tls = create_app(settings), tls_options(settings)
        if _may_need_tensorflow(settings):
            make_memory_returnable()
            import_tensorflow()
        limit_opencv_threads()
        config = make_uvicorn_config(app, settings, **tls)
        server = DrainingServer(config, app, settings.drain_delay_s)
        # For the time before and after uvicorn handles it.
        signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(_run(app, server, listener))
            exit_process(server.exit_code)  # closing the loop would wait for threads


def exit_process(exit_code: int) -> NoReturn:
    """Ends the process at once, without waiting for threads or for TensorFlow's slow destruction."""
    if exit_code == EXIT_INTERRUPTED:
        print("interrupted", file=sys.stderr)
    flushing = threading.Thread(target=_flush, daemon=True)  # writing to a full pipe may block
    flushing.start()
    flushing.join(FLUSH_TIMEOUT_S)
    os._exit(exit_code)


def _flush() -> None:
    with suppress(OSError):  # the reader has closed it
        sys.stdout.flush()
    logging.shutdown()


def _may_need_tensorflow(settings: Settings) -> bool:
    tensorflow = ENGINES["tensorflow"]
    if settings.engine is None:
        return tensorflow.is_installed
    return ENGINES[settings.engine].package == tensorflow.package


def make_uvicorn_config(app: FastAPI, settings: Settings, **tls: Any) -> uvicorn.Config:
    """Returns the configuration of uvicorn for `app`; `tls` is the result of `tls_options`."""
    if tls:
        count = partial(app.state.metrics.count_problem, "tls_handshake", None)
        tls["ssl_context_factory"] = lambda _, make: report_failed_handshakes(make(), count)
    return uvicorn.Config(
        app,
        http=BoundedHttpProtocol,
        ws="none",
        lifespan="off",  # run below: uvicorn would print a traceback for an invalid model
        log_config=None,  # configure_logging has done it
        access_log=False,  # AccessMiddleware logs with the request's id
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=with_mapped(settings.trusted_proxies),
        timeout_keep_alive=settings.keep_alive_s,
        timeout_graceful_shutdown=settings.drain_s,
        **tls,
    )


async def _run(app: FastAPI, server: uvicorn.Server, listener: socket.socket) -> None:
    async with app.router.lifespan_context(app):
        server.config.load()
        reloader = Reloader(app, server.config.ssl)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.request)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
        state = app.state
        starting = _start_and_reload(state.service, state.access, server, listener, reloader)
        working = asyncio.create_task(starting)
        await server.serve(sockets=[listener])
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def _start_and_reload(
    service: Service,
    access: AccessControl,
    server: uvicorn.Server,
    listener: socket.socket,
    reloader: Reloader,
) -> None:
    """Starts the service, prints its address on stdout, then handles reload requests."""
    try:
        await service.start()
    except BaseException:
        server.should_exit = True
        raise
    identities = [model.identity for model in service.inspection.models.all()]
    models = ", ".join(f"{model.name} {model.version}" for model in identities) or "no model yet"
    print(f"Serving {models} at {url_of(listener, server.config.is_ssl)}", flush=True)
    with suppress(RequestError):  # the record cannot be read now, which is logged
        await access.log_open_access()
    await reloader.run()


# === Address ===


def bind(host: str, port: int) -> socket.socket:
    """Binds the address before the model is loaded; connections are accepted only afterwards. Raises a
    ConfigError if it is unknown or in use.
    """
    try:
        addresses: list[Any] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        return _bind(*addresses[0])
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
    host, port = listener.getsockname()[:2]
    scheme = "https" if secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
