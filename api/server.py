"""Listens: binds the address, reads the certificate, starts the service, and stops it in order."""

import asyncio
import signal
import socket
import ssl
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from api.app import create_app
from api.http_protocol import BoundedHttpProtocol
from api.logs import configure_logging
from api.service import Service, open_store
from api.settings import Settings
from segdec.cli_runtime import quiet_tensorflow
from segdec.engines import ENGINES
from segdec.errors import ConfigError
from segdec.signatures import TrustedKeys
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
        """Returns whether to stop now; asked ten times a second."""
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
        if settings.require_signature is not None:
            TrustedKeys.read(settings.require_signature)
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
    """Returns how uvicorn serves `app`."""
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


# === Address and certificate ===


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


def tls_arguments(settings: Settings) -> dict[str, Any]:
    """Returns what `uvicorn.Config` needs to serve https; nothing if no certificate is set.

    Raises:
        ConfigError: If only one of certificate and key is set, one cannot be read, or they do not belong
            together.
    """
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None and key is None:
        return {}
    if certificate is None or key is None:
        raise ConfigError("https needs a certificate and its key. Pass both --tls-certificate and --tls-key.")
    for path in (certificate, key):
        _check_readable(path)
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key, password=_refuse_password)
    except ssl.SSLError as error:
        raise ConfigError(_explain(error, certificate, key)) from error
    return {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}


def _check_readable(path: Path) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}. Expected a PEM file.") from error


def _refuse_password() -> str:
    raise ConfigError(
        "The TLS key asks for a password. Expected one without: openssl pkey -in KEY -out NEW_KEY"
    )


def _explain(error: ssl.SSLError, certificate: Path, key: Path) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"The TLS key {key} does not belong to the certificate {certificate}. Pass the pair."
    return (
        f"The TLS certificate {certificate} and key {key} cannot be used ({error.reason or 'no PEM'}). "
        "Expected PEM files: the certificate with its chain, and its private key."
    )
