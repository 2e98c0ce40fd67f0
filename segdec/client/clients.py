"""Clients of the inspection service: `Client` is synchronous, `AsyncClient` is for an event loop."""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Self, TypeVar, Unpack

import anyio
import httpx

from segdec.client.calls import (
    BatchOptions,
    Call,
    ImageSource,
    InspectOptions,
    PredictOptions,
    batch_call,
    inspect_call,
    models_call,
    predict_call,
    ready_call,
    reload_call,
)
from segdec.client.connection import connection_options
from segdec.client.replies import Reply, all_replicas_lost, may_have_crashed, replica_lost
from segdec.client.retries import MAX_LOSSES, NO_RETRY, RetryPolicy
from segdec.schemas import Answer, InspectAnswer, ModelDetail, Problem, ReloadAnswer

T = TypeVar("T")


def _read(call: Call[T], replies: list[Reply]) -> T:
    last = replies[-1]
    if (
        may_have_crashed(last)
        and not all_replicas_lost(last)
        and sum(map(may_have_crashed, replies)) >= MAX_LOSSES
    ):
        raise replica_lost(last)
    return call.read(last)


class Client:
    """Client of an inspection service with retries.

    It retries after a failed or broken connection and after the statuses 429, 502 and 503. The wait grows,
    has random jitter and is never shorter than Retry-After. A retry is safe: predictions change nothing, and
    inspections are recorded once because all attempts of a call carry the same Idempotency-Key and
    X-Request-ID. A replica that took a request and did not answer may have crashed on the photograph. After a
    connection that broke while waiting for the answer, or a 502, a photograph is therefore sent again only
    once. Threads may share a client.

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

    def predict(self, image: ImageSource, **options: Unpack[PredictOptions]) -> Answer:
        """Inspects one photograph; the options are those of `PredictOptions`.

        Raises:
            ServiceError: If the service rejects it or does not answer.
            ImageError: If the file cannot be read.
            ConfigError: If the model or version name is invalid, or a version is given without its model.
        """
        return self._run(predict_call(image, **options))

    def inspect(self, image: ImageSource, **options: Unpack[InspectOptions]) -> InspectAnswer:
        """Inspects and records one photograph; the options are those of `InspectOptions`.

        Raises:
            ServiceError: If the service rejects it, cannot record it or does not answer. It may still be
                recorded: to ask again later, pass the same `idempotency_key` both times.
            ImageError: If the file cannot be read.
            ConfigError: If the model name, the key or the metadata is invalid.
        """
        return self._run(inspect_call(image, **options))

    def predict_batch(
        self, images: Sequence[ImageSource], **options: Unpack[BatchOptions]
    ) -> list[Answer | Problem]:
        """Inspects several photographs in one request: an answer or a problem for each, in their order.

        Raises:
            ServiceError: If the service rejects the whole request or does not answer.
            ImageError: If a file cannot be read.
        """
        return self._run(batch_call(images, **options))

    def models(self) -> list[ModelDetail]:
        """Lists the served models.

        Raises:
            ServiceError: If the service rejects the request or does not answer.
        """
        return self._run(models_call())

    def ready(self) -> bool:
        """Returns whether the service answers photographs now; False also if nothing answers. Never retried.

        Raises:
            ServiceError: If something other than the inspection service answers.
        """
        return self._run(ready_call())

    def reload(self, name: str) -> ReloadAnswer:
        """Reloads the model `name` from the service's disk; needs an admin key. Never retried.

        Raises:
            ServiceError: If the service rejects the request or does not answer; it then keeps the model it
                has.
        """
        return self._run(reload_call(name))

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _run(self, call: Call[T]) -> T:
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
    """`Client` for an event loop: the same arguments and methods, which are awaited.

    It reads files and encodes pixels in a thread, so that the loop is not blocked.
    """

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

    async def predict(self, image: ImageSource, **options: Unpack[PredictOptions]) -> Answer:
        """See `Client.predict`."""
        return await self._run(await anyio.to_thread.run_sync(partial(predict_call, image, **options)))

    async def inspect(self, image: ImageSource, **options: Unpack[InspectOptions]) -> InspectAnswer:
        """See `Client.inspect`."""
        return await self._run(await anyio.to_thread.run_sync(partial(inspect_call, image, **options)))

    async def predict_batch(
        self, images: Sequence[ImageSource], **options: Unpack[BatchOptions]
    ) -> list[Answer | Problem]:
        """See `Client.predict_batch`."""
        return await self._run(await anyio.to_thread.run_sync(partial(batch_call, images, **options)))

    async def models(self) -> list[ModelDetail]:
        """See `Client.models`."""
        return await self._run(models_call())

    async def ready(self) -> bool:
        """See `Client.ready`."""
        return await self._run(ready_call())

    async def reload(self, name: str) -> ReloadAnswer:
        """See `Client.reload`."""
        return await self._run(reload_call(name))

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.aclose()

    async def _run(self, call: Call[T]) -> T:
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
