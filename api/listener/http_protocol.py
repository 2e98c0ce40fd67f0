"""HTTP below the app: rejects invalid HTTP, and limits connections: their number, their heads, their time."""

import asyncio
import itertools
import logging
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from api.errors import MEDIA_TYPE, make_problem
from api.listener.half_close import StartedResponseTransport, was_reset
from api.listener.unread_answers import ReadingCheck
from api.metrics import UNMATCHED_ROUTE
from segdec.schemas import Problem

MAX_HEAD_BYTES = 2**16
"""Maximum bytes of a request line with headers, or of trailers. Bytes of the first packet are not counted."""

MAX_DISCARDED_BYTES = 2**30
"""Maximum bytes that are read of the rest of a body after the answer of a connection that closes."""

CONTINUE = b"HTTP/1.1 100 "
"""Start of the message that asks for a body; the answer follows it."""

MAX_PATH_CHARACTERS = 200
"""Maximum length of a path in the log. (The path of a rejected request may have any length.)"""

logger = logging.getLogger(__name__)
CLIENT_POLL_S = 0.2
"""Interval of checking whether a client that has finished sending is still connected."""


_idle_numbers = itertools.count()
"""Numbers connections in the order in which they become idle; the clock of the loop counts milliseconds."""


class AnswerTransport:
    """A connection on which the head of an answer waits for the first bytes of its body.

    If a service were killed between them, a proxy could not repeat the request on another replica. `close`
    does something else.
    """

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None], *, has_body: bool) -> None:
        self._transport = transport
        self._head_is_next, self._head = has_body, b""
        self.close = close

    def write(self, data: bytes) -> None:
        if self._head_is_next and not data.startswith(CONTINUE):
            self._head_is_next, self._head = False, data
            return
        self._transport.write(self._head + data)
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class BoundedHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits on connections, and on the size and the time of a request's head.

    The head must arrive within the time that the settings allow for a body. The same limit applies to the
    rest of a body whose request was rejected, and to an answer of which the client reads nothing. Trailers
    are dropped: uvicorn would add them to the headers, where a proxy has not checked them.

    A connection that closes while its client still sends a body is closed only after that (RFC 9112, 9.6):
    otherwise TCP resets it, and many clients never read why their request was rejected.

    Above the maximum number of connections, a new one replaces the one that has waited longest for a request,
    which gets a 503 if it was its first one: the client may just be sending it.
    """

    _head_bytes = 0
    _in_head = False
    _in_message = False
    _timer: asyncio.TimerHandle | None = None
    _idle_number = 0
    _discarded_bytes: int | None = None
    """Of the rest of a body; None before the connection closes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._reading_check = ReadingCheck(transport, self._settings.upload_timeout_s, self._abort_unread)
        self._idle_number = next(_idle_numbers)
        self._start_timer()
        self._limit_connections()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._reading_check.stop()
        super().connection_lost(exc)

    @property
    def _settings(self) -> Any:
        return self.config.app.state.settings  # type: ignore[union-attr]  # the app of create_app

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _limit_connections(self) -> None:
        limit = self._settings.max_connections
        if len(self.connections) <= limit:
            return
        others = [other for other in self.connections if not other.transport.is_closing()]
        others.remove(self)
        if len(others) < limit:
            return
        idle = [other for other in others if isinstance(other, BoundedHttpProtocol) and other._is_idle]
        refused = min(idle, key=lambda other: other._idle_number, default=self)
        if refused.cycle is not None:
            refused.transport.abort()  # its client knows that such a connection may end
            return
        detail = (
            f"{limit} connections are open or busy. Retry later, or start with a larger --max-connections."
        )
        refused._reject(HTTPStatus.SERVICE_UNAVAILABLE, detail, "connections_full")
        if refused.scheme == "https":
            refused.transport.abort()  # otherwise it stays open until its client has closed TLS, too

    def on_response_complete(self) -> None:
        self._idle_number = next(_idle_numbers)
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading_check.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._reading_check.stop()

    def _abort_unread(self) -> None:
        client = self.client[0] if self.client else None
        logger.warning("A client does not read its answer; its connection ends", extra={"client": client})
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Limits the size of a head, and of the rest of a body."""
        if self._discarded_bytes is not None:
            self._discarded_bytes += len(data)
            if self._discarded_bytes > MAX_DISCARDED_BYTES:
                self.transport.close()
            return
        if self._timer is None and (self.cycle is None or self.cycle.response_complete):
            self._start_timer()
        self._in_message = False
        super().data_received(data)
        self._head_bytes = 0 if self._in_message else self._head_bytes + len(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._reject(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"The request line and headers have more than {MAX_HEAD_BYTES} bytes. Send fewer.",
            )

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's returns nothing
        """Keeps the connection open if a client has only finished sending: complete requests are still
        answered.

        Returns False for https, because TLS closes both directions at once.
        """
        cycle = self.cycle  # of the last request
        if self.scheme == "https" or cycle is None or cycle.more_body or cycle.response_complete:
            return False
        cycle.keep_alive = False
        if not self.pipeline and not cycle.response_started:
            cycle.transport = StartedResponseTransport(self.transport)  # type: ignore[assignment]  # it has the same methods
        self._check_client()
        return True

    def _check_client(self) -> None:
        """Closes the connection if the client has: it is not reading, so asyncio does not notice."""
        if self.transport.is_closing():
            return
        if was_reset(self.transport):
            self.transport.abort()
        else:
            self.loop.call_later(CLIENT_POLL_S, self._check_client)

    def on_message_begin(self) -> None:
        self._in_head = self._in_message = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Drops trailers after the body."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._in_message = False, True
        self._stop_timer()
        super().on_headers_complete()
        close = partial(self._close_after_body, self.cycle)
        has_body = self.cycle.scope["method"] != "HEAD"
        self.cycle.transport = AnswerTransport(self.transport, close, has_body=has_body)  # type: ignore[assignment]  # as below

    def _close_after_body(self, cycle: RequestResponseCycle) -> None:
        """Closes the connection; while a body arrives, until its end or a limit only in one direction."""
        if not cycle.more_body or self.transport.is_closing():
            self.transport.close()
        elif self._discarded_bytes is None:
            self._discarded_bytes = 0
            if self.transport.can_write_eof():  # not with TLS
                self.transport.write_eof()
            self._start_timer()

    def on_body(self, body: bytes) -> None:
        self._in_message = True
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        self._reject(HTTPStatus.BAD_REQUEST, f"{msg} Expected HTTP/1.1.")

    def _unsupported_upgrade_warning(self) -> None:
        """Logs nothing: a WebSocket request is answered like any other."""

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self._settings.upload_timeout_s, self._time_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self._timer = None
        if self._in_head:
            self._reject(
                HTTPStatus.REQUEST_TIMEOUT, "The headers were not complete in time. Send them faster."
            )
        else:
            self.transport.close()

    def _reject(self, status: HTTPStatus, detail: str, code: str = "") -> None:
        """Answers a request that does not reach the app, and closes the connection."""
        self._in_head = False
        if self.transport.is_closing():
            return
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.close()
            return
        problem = make_problem(uuid4().hex, status, code or status.name.lower(), detail)
        self._report(problem)
        body = problem.model_dump_json().encode()
        head = (
            f"content-type: {MEDIA_TYPE}\r\nx-request-id: {problem.request_id}\r\n"
            f"content-length: {len(body)}\r\nx-content-type-options: nosniff\r\nconnection: close\r\n"
        )
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            head += f"retry-after: {self._settings.retry_after_s}\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + b"\r\n" + body)
        self.transport.close()

    def _report(self, problem: Problem) -> None:
        """Counts and logs a rejection, as the middleware does for requests that reach the app."""
        metrics: Any = self.config.app.state.metrics  # type: ignore[union-attr]  # as in `_settings`
        metrics.count_problem(problem.code, problem.status)
        metrics.count_request("", UNMATCHED_ROUTE, problem.status, None)
        path = getattr(self, "url", b"").partition(b"?")[0].decode("latin-1")[:MAX_PATH_CHARACTERS]
        facts = {
            "request_id": problem.request_id,
            "client": self.client[0] if self.client else None,
            "path": path or None,
            "status": problem.status,
            "problem": problem.code,
        }
        logger.warning("request", extra={name: fact for name, fact in facts.items() if fact is not None})
