"""The service on a real socket, with what the tests put in for its model."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from api.listener.server import bind, make_uvicorn_config, tls_options


@contextmanager
def served(app: FastAPI) -> Iterator[tuple[str, int]]:
    """Serves `app` in a thread as `serve` of the listener does, without signals; also https."""
    settings = app.state.settings
    server = uvicorn.Server(make_uvicorn_config(app, settings, **tls_options(settings)))
    ready = threading.Event()
    with bind("127.0.0.1", 0) as listener:
        listener.listen()  # connections wait until the server takes them
        thread = threading.Thread(target=run, args=(app, server, listener, ready))
        thread.start()
        try:
            assert ready.wait(timeout=30)
            yield listener.getsockname()
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


def run(app: FastAPI, server: uvicorn.Server, listener: socket.socket, ready: threading.Event) -> None:
    async def serve() -> None:
        async with app.router.lifespan_context(app):
            await app.state.service.start()
            ready.set()
            await server.serve(sockets=[listener])

    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(serve())


class SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be moved forward."""

    skipped_s = 0.0

    def time(self) -> float:
        return super().time() + self.skipped_s

    def skip(self, seconds: float) -> None:
        """Moves the clock; returns after the timers that are due then. For other threads."""

        async def move() -> None:
            self.skipped_s += seconds
            await asyncio.sleep(0.01)

        asyncio.run_coroutine_threadsafe(move(), self).result(timeout=30)
