"""Receives request bodies within the limits of memory, number and time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from starlette.requests import Request

from api.errors import RequestError, service_unavailable
from api.http.admission import JSON_BODY_COPIES, ByteLimit, ByteReservation
from api.http.callers import client_of
from api.http.components import component
from api.http.deadlines import deadline_error
from api.http.open_uploads import OpenUpload, UploadLimit
from api.http.settings import ServerSettings

T = TypeVar("T")
UPLOAD_SHARE = 1 / 8
"""Share of the memory for request bodies."""
CLOSE_CONNECTION = {"Connection": "close"}
"""For a request whose body is not complete: the rest would be parsed as the next request."""


class BodyReceiver:
    """Limits the request bodies that are received at the same time. Create it in the event loop.

    Args:
        settings: Settings of the service.
        memory_bytes: Memory of the service.

    Attributes:
        uploads: Limits the number of bodies that are being read.
        memory: Limits the memory of bodies that are read or processed.
    """

    def __init__(self, settings: ServerSettings, memory_bytes: int) -> None:
        self._timeout_s, self._retry_after_s = settings.upload_timeout_s, settings.retry_after_s
        clock = asyncio.get_running_loop().time
        self.uploads = UploadLimit(settings.max_uploads, settings.retry_after_s, clock)
        largest_body = JSON_BODY_COPIES * settings.max_body_bytes
        limit = max(settings.max_upload_bytes or int(UPLOAD_SHARE * memory_bytes), largest_body)
        self.memory = ByteLimit(limit, settings.retry_after_s)

    def reserve(self) -> ByteReservation:
        """Returns the memory of one body, in a `with` block; empty at first."""
        return self.memory.reserve()

    async def receive(
        self,
        request: Request,
        reading: Callable[[OpenUpload], Awaitable[T]],
        memory: ByteReservation,
        deadline: float,
    ) -> T:
        """Awaits `reading`, which reads the body of a request into `memory`, until `deadline`, a
        `time.perf_counter`.

        Raises:
            RequestError: 503 if too many bodies are read, 408 if it takes too long, 504 at the deadline.
        """
        left_s = deadline - time.perf_counter()
        with OpenUpload(self.uploads, client_of(request), memory) as upload:
            try:
                async with upload.limit_time(min(self._timeout_s, left_s)):
                    return await reading(upload)
            except TimeoutError:
                if upload.removed:
                    raise self._slow_upload() from None
                if left_s <= self._timeout_s:
                    raise deadline_error() from None
                raise RequestError(
                    408,
                    "upload_timeout",
                    f"The body was not complete after {self._timeout_s:g} s. Send it faster, "
                    "or start the service with a larger --upload-timeout-s.",
                    CLOSE_CONNECTION,
                ) from None

    def _slow_upload(self) -> RequestError:
        detail = "The body arrived too slowly while others waited. Send it faster, or retry later."
        error = service_unavailable("uploads_full", detail, self._retry_after_s)
        error.headers |= CLOSE_CONNECTION
        return error


BodiesDep = Annotated[BodyReceiver, component(BodyReceiver)]
