"""A load generator for HTTP/1.1 keep-alive connections, in closed loops or at a constant rate.

One process reaches about ten thousand requests/s with uvloop and httptools, so that it does not limit the
server. `generators` starts such processes.
"""

import asyncio
import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import httptools
import numpy as np
import uvloop

FAILED = 0
"""Status of an exchange without a response."""
TIMEOUT_S = 60.0
"""Timeout of a response."""
MAX_IDLE_S = 3.0
"""Maximum idle time of reused connections; uvicorn closes them after 5 s."""


@dataclass(frozen=True)
class Exchange:
    """One request and its response.

    Attributes:
        at_s: Scheduled time since the start of the load.
        latency_ms: From the scheduled time to the complete response.
        status: HTTP status; `FAILED` without a complete response.
        retry_after: Whether the response had this header.
        body: Of an unexpected response, or the failure; else empty.
    """

    at_s: float
    latency_ms: float
    status: int
    retry_after: bool
    body: bytes


@dataclass(frozen=True)
class Load:
    """The exchanges of one load, in order of completion, and its duration."""

    exchanges: tuple[Exchange, ...]
    duration_s: float

    @property
    def rate(self) -> float:
        """Successful responses/s."""
        return len(self.of(200)) / self.duration_s

    def of(self, status: int) -> list[Exchange]:
        """Returns the exchanges with this status."""
        return [exchange for exchange in self.exchanges if exchange.status == status]

    def statuses(self) -> dict[int, int]:
        """Counts the exchanges by status."""
        found = sorted({exchange.status for exchange in self.exchanges})
        return {status: len(self.of(status)) for status in found}


def latency_ms(exchanges: Sequence[Exchange], quantile: float) -> float:
    """Returns a quantile, 0…1, of the latencies; NaN without exchanges."""
    latencies = [exchange.latency_ms for exchange in exchanges]
    return float(np.quantile(latencies, quantile)) if latencies else float("nan")


def encode_request(
    method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> bytes:
    """Returns the bytes of a request."""
    lines = {"Host": "localhost", "Content-Length": str(len(body)), **(headers or {})}
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{head}\r\n".encode("ascii") + body


@contextmanager
def generators(count: int = 1) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes for `closed_loop` and `open_loop`."""
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        list(pool.map(_start, range(count)))
        yield pool


def _start(_: int) -> None:
    """Keeps a process busy until all others have started."""
    time.sleep(0.2)


# === Loads ===


def closed_loop(
    port: int,
    requests: Sequence[bytes] | Callable[[int], bytes],
    *,
    clients: int = 8,
    seconds: float = float("inf"),
    count: int | None = None,
) -> Load:
    """Runs `clients` in closed loops, for `seconds` or `count` requests in total.

    Args:
        port: Of the server on this machine.
        requests: Chosen at random, see `encode_request`; or a function of the request number.
        clients: Number of connections.
        seconds: Duration.
        count: Number of requests.
    """
    numbers = itertools.count() if count is None else iter(range(count))
    chosen = random.Random(0)

    def request(number: int) -> bytes:
        return requests(number) if callable(requests) else chosen.choice(requests)

    async def run() -> Load:
        client = _Client(port)
        begun = client.begun = time.perf_counter()

        async def ask_again() -> None:
            for number in numbers:
                now = time.perf_counter()
                if now - begun >= seconds:
                    return
                await client.ask(request(number), now)

        await asyncio.gather(*(ask_again() for _ in range(clients)))
        return client.finish()

    return uvloop.run(run())


def open_loop(port: int, request: bytes, *, rate: float, seconds: float) -> Load:
    """Sends a request every 1/`rate` seconds for `seconds`, without waiting for responses."""

    async def run() -> Load:
        client = _Client(port)
        begun = client.begun = time.perf_counter()
        async with asyncio.TaskGroup() as running:
            for number in range(int(rate * seconds)):
                due = begun + number / rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                running.create_task(client.ask(request, due))
        return client.finish()

    return uvloop.run(run())


class _Client:
    """Reuses idle connections and records every exchange."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.begun = time.perf_counter()
        self.exchanges: list[Exchange] = []
        self._idle: list[_Connection] = []

    async def ask(self, request: bytes, due: float) -> None:
        connection = None
        try:
            async with asyncio.timeout(TIMEOUT_S):
                connection = self._take() or await self._connect()
                status, retry_after, body = await connection.ask(request)
        except (OSError, TimeoutError, httptools.HttpParserError) as error:
            status, retry_after, body = FAILED, False, repr(error).encode()
            if connection is not None:
                connection.close()
        ended = time.perf_counter()
        kept = body if status not in (200, 503) else b""
        self.exchanges.append(Exchange(due - self.begun, (ended - due) * 1000, status, retry_after, kept))
        if connection is not None and connection.usable:
            connection.idle_since = ended
            self._idle.append(connection)

    def finish(self) -> Load:
        duration_s = time.perf_counter() - self.begun
        for connection in self._idle:
            connection.close()
        return Load(tuple(self.exchanges), duration_s)

    def _take(self) -> "_Connection | None":
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and time.perf_counter() - connection.idle_since < MAX_IDLE_S:
                return connection
            connection.close()
        return None

    async def _connect(self) -> "_Connection":
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, "127.0.0.1", self.port)
        return connection


class _Connection(asyncio.Protocol):
    """One request at a time; the parser calls the `on_…` methods."""

    def __init__(self) -> None:
        self.usable = True
        self.idle_since = 0.0
        self._parser = httptools.HttpResponseParser(self)
        self._retry_after = False
        self._body: list[bytes] = []
        self._answer: asyncio.Future[tuple[int, bool, bytes]] | None = None

    async def ask(self, request: bytes) -> tuple[int, bool, bytes]:
        """Returns status, whether there is a Retry-After header, and body."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        self.usable = False
        self._transport.close()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(exc or ConnectionResetError("the server closed the connection"))

    def on_message_begin(self) -> None:
        self._retry_after = False
        self._body = []

    def on_header(self, name: bytes, value: bytes) -> None:  # noqa: ARG002
        self._retry_after |= name.lower() == b"retry-after"

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        self.usable = self._parser.should_keep_alive()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((self._parser.get_status_code(), self._retry_after, b"".join(self._body)))

    def _fail(self, error: Exception) -> None:
        self.usable = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
