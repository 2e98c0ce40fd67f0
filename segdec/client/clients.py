"""Asks an inspection service: `Client` waits for each answer, `AsyncClient` is for an event loop."""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Self, TypeVar, Unpack

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
from segdec.client.replies import Reply
from segdec.client.retries import NO_RETRY, Attempts, RetryPolicy
from segdec.errors import MissingExtraError
from segdec.schemas import Answer, InspectAnswer, ModelDetail, Problem, ReloadAnswer

try:
    import anyio
    import httpx
except ImportError as error:
    raise MissingExtraError(error.name or "httpx", "client") from error

T = TypeVar("T")


class Client:
    """Asks an inspection service, and asks again if it fails for a passing reason.

    Sent again are requests whose connection failed or broke and those answered 429, 502 or 503, after
    a growing, random time, which is never shorter than what Retry-After names. That is safe: a prediction
    changes nothing, so asking twice gives the same answer, and an inspection is recorded once, since all
    attempts carry one Idempotency-Key. All attempts of a call carry one X-Request-ID.
    But who took a request and did not answer may have died of it: after a connection that broke when it had
    been sent whole, or a 502, it is sent again once at most, marked by X-Segdec-Resend.
    Threads may share a client.

    Args:
        url: Address of the service, for example http://127.0.0.1:8000.
        api_key: Key for services that ask for one.
        timeout_s: Seconds that an attempt waits for a connection or for the next bytes.
        retries: Most attempts after the first.
        verify: File of the certificate authority that signed an https service's certificate; True: those
            that the system knows; False: any certificate is taken.
        transport: Replaces the network.
        sleep: Waits between attempts.

    Raises:
        ConfigError: If the address, the key or the file cannot be used.

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
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._policy = RetryPolicy(retries)
        self._http = httpx.Client(transport=transport, **connection_options(url, api_key, timeout_s, verify))
        self._sleep = sleep

    def predict(self, image: ImageSource, **options: Unpack[PredictOptions]) -> Answer:
        """Inspects one photograph; the options are those of `PredictOptions`.

        Raises:
            ServiceError: If the service refuses it or does not answer.
            ImageError: If the file cannot be read.
            ConfigError: If the model or version is no name, or a version is given without its model.
        """
        return self._run(predict_call(image, **options))

    def inspect(self, image: ImageSource, **options: Unpack[InspectOptions]) -> InspectAnswer:
        """Inspects one photograph, of which a record is kept; the options are those of `InspectOptions`.

        Raises:
            ServiceError: If the service refuses it, cannot record it or does not answer. It may be recorded
                all the same: who asks again gives the same `idempotency_key` both times.
            ImageError: If the file cannot be read.
            ConfigError: If the model is no name, the key none that can be sent, or the metadata no JSON.
        """
        return self._run(inspect_call(image, **options))

    def predict_batch(
        self, images: Sequence[ImageSource], **options: Unpack[BatchOptions]
    ) -> list[Answer | Problem]:
        """Inspects several photographs in one request: an answer or a problem for each, in their order.

        Raises:
            ServiceError: If the service refuses the whole request or does not answer.
            ImageError: If a file cannot be read.
        """
        return self._run(batch_call(images, **options))

    def models(self) -> list[ModelDetail]:
        """Lists what is served.

        Raises:
            ServiceError: If the service refuses or does not answer.
        """
        return self._run(models_call())

    def ready(self) -> bool:
        """Returns whether photographs are answered now; False also if nobody answers. Asks once.

        Raises:
            ServiceError: If something other than the inspection service answers.
        """
        return self._run(ready_call())

    def reload(self, name: str) -> ReloadAnswer:
        """Serves what lies on the service's disk now under `name`; needs an admin key. Asks once.

        Raises:
            ServiceError: If the service refuses or does not answer; it then keeps the model it has.
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
        attempts = Attempts(self._policy if call.retried else NO_RETRY, request)
        reply = self._send(request)
        while (wait_s := attempts.wait_s(reply)) is not None:
            self._sleep(wait_s)
            reply = self._send(request)
        return call.read(reply)

    def _send(self, request: httpx.Request) -> Reply:
        try:
            return self._http.send(request)
        except httpx.RequestError as error:
            return error


class AsyncClient:
    """`Client` for an event loop: the same arguments and methods, to be awaited.

    Files are read and pixels encoded in a thread, so the loop goes on.
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
        attempts = Attempts(self._policy if call.retried else NO_RETRY, request)
        reply = await self._send(request)
        while (wait_s := attempts.wait_s(reply)) is not None:
            await self._sleep(wait_s)
            reply = await self._send(request)
        return call.read(reply)

    async def _send(self, request: httpx.Request) -> Reply:
        try:
            return await self._http.send(request)
        except httpx.RequestError as error:
            return error
