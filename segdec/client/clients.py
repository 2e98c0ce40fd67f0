"""Clients of the inspection service: `Client` is synchronous, `AsyncClient` is for an event loop."""

import time
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import anyio
import httpx

from segdec.client.calls import Call
from segdec.client.calls import activate_plan as activate_plan_call
from segdec.client.calls import inspect as inspect_call
from segdec.client.calls import models as models_call
from segdec.client.calls import predict as predict_call
from segdec.client.calls import predict_batch as predict_batch_call
from segdec.client.calls import ready as ready_call
from segdec.client.calls import reload as reload_call
from segdec.client.calls import simulate_plan as simulate_plan_call
from segdec.client.calls import store_plan as store_plan_call
from segdec.client.connection import connection_options
from segdec.client.replies import Reply, replica_lost, second_replica_lost
from segdec.client.retries import NO_RETRY, RetryPolicy, crashed_twice

P = ParamSpec("P")
T = TypeVar("T")


def _method(build: Callable[P, Call[T]]) -> Callable[Concatenate["Client", P], T]:
    """Makes a method of `Client` that sends the request that `build` returns."""

    @wraps(build)
    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(build(*args, **kwargs))

    _show_signature(method, build)
    return method


def _async_method(build: Callable[P, Call[T]]) -> Callable[Concatenate["AsyncClient", P], Awaitable[T]]:
    """As `_method`, for `AsyncClient`: files are read and pixels encoded in a thread, not in the loop."""

    @wraps(build)
    async def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.send(await anyio.to_thread.run_sync(partial(build, *args, **kwargs)))

    _show_signature(method, build)
    return method


def _show_signature(method: Any, build: Callable[..., object]) -> None:
    """Sets the signature that `help` shows: that of `build`, after `self`."""
    parameters = [Parameter("self", Parameter.POSITIONAL_ONLY), *signature(build).parameters.values()]
    method.__signature__ = signature(build).replace(parameters=parameters, return_annotation=Parameter.empty)


def _read(call: Call[T], replies: list[Reply]) -> T:
    last = replies[-1]
    if crashed_twice(replies) and not second_replica_lost(last):
        raise replica_lost(last)
    return call.read(last)


class Client:
    """Client of an inspection service with retries. Threads may share it.

    It retries after a failed or broken connection and after the statuses 429, 502 and 503. The wait grows,
    has random jitter and is never shorter than Retry-After. A retry is safe: predictions change nothing, and
    inspections are recorded once, by the Idempotency-Key that all attempts share. A replica that took a
    request and did not answer (a broken connection, or 502) may have crashed on the photograph, so it is sent
    again only once.

    Args:
        url: Address of the service, for example http://127.0.0.1:8000.
        api_key: Key, if the service requires one.
        timeout_s: Seconds that an attempt waits for a connection or for the next bytes.
        retries: Maximum number of attempts after the first.
        verify: File of the certificate authority that signed an https service's certificate; True: those
            that the system trusts; False: accept any certificate.
        transport: Replaces the network.
        sleep: Waits between attempts.

    Raises:
        ConfigError: If the address, the key or the file is invalid.

    Example:
        >>> with Client("http://127.0.0.1:8000") as client:
        ...     client.predict(Path("part.png")).decision.label
        'good'
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        retries: int = 3,
        verify: bool | Path = True,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._policy = RetryPolicy(retries)
        self._http = httpx.Client(transport=transport, **connection_options(url, api_key, timeout_s, verify))
        self._sleep = sleep

    predict = _method(predict_call)
    inspect = _method(inspect_call)
    predict_batch = _method(predict_batch_call)
    models = _method(models_call)
    ready = _method(ready_call)
    reload = _method(reload_call)
    store_plan = _method(store_plan_call)
    activate_plan = _method(activate_plan_call)
    simulate_plan = _method(simulate_plan_call)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def send(self, call: Call[T]) -> T:
        """Sends the request of a call, with retries, and returns its result; raises `ServiceError`."""
        request = call.build(self._http)
        policy = self._policy if call.retried else NO_RETRY
        replies = [self._send(request)]
        while (wait_s := policy.wait_s(replies)) is not None:
            self._sleep(wait_s)
            replies.append(self._send(request))
        return _read(call, replies)

    def _send(self, request: httpx.Request) -> Reply:
        try:
            return self._http.send(request)
        except httpx.RequestError as error:
            return error


class AsyncClient:
    """`Client` for an event loop: the same arguments and methods, which are awaited."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        retries: int = 3,
        verify: bool | Path = True,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._policy = RetryPolicy(retries)
        self._http = httpx.AsyncClient(
            transport=transport, **connection_options(url, api_key, timeout_s, verify)
        )
        self._sleep = sleep

    predict = _async_method(predict_call)
    inspect = _async_method(inspect_call)
    predict_batch = _async_method(predict_batch_call)
    models = _async_method(models_call)
    ready = _async_method(ready_call)
    reload = _async_method(reload_call)
    store_plan = _async_method(store_plan_call)
    activate_plan = _async_method(activate_plan_call)
    simulate_plan = _async_method(simulate_plan_call)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.aclose()

    async def send(self, call: Call[T]) -> T:
        """As `Client.send`."""
        request = call.build(self._http)
        policy = self._policy if call.retried else NO_RETRY
        replies = [await self._send(request)]
        while (wait_s := policy.wait_s(replies)) is not None:
            await self._sleep(wait_s)
            replies.append(await self._send(request))
        return _read(call, replies)

    async def _send(self, request: httpx.Request) -> Reply:
        try:
            return await self._http.send(request)
        except httpx.RequestError as error:
            return error
