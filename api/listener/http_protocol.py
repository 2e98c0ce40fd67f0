"""HTTP below the app: what is no HTTP, is endless or never arrives is refused here."""

import asyncio
import logging
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from api.errors import MEDIA_TYPE, make_problem
from api.listener.half_close import StartedResponseTransport, was_reset
from api.metrics import UNMATCHED_ROUTE
from segdec.schemas import Problem

MAX_HEAD_BYTES = 2**16
"""Most bytes of a request line with its headers, or of trailers, beside those of the first packet."""

MAX_PATH_CHARACTERS = 200
"""Letters of a path in the log: that of a refused head may be of any length."""

logger = logging.getLogger(__name__)
CLIENT_POLL_S = 0.2
"""Seconds after which it is looked again whether a client that sends no more is still there."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """uvicorn's side of a connection, with bounds that it lacks: on a request's head and on its time.

    The head has the time that the settings give a body. A body that nobody waits for any more, because
    its request was refused, is bounded by the same time. Trailers are dropped: uvicorn would take them
    for headers that a proxy in front has let through.
    """

    _head_bytes = 0
    _in_head = False
    _goes_on = False
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begins the time of a client that has come."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the time of a client that has gone."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Reads some bytes that have come, of a head no more than its bound."""
        if self._timer is None and (self.cycle is None or self.cycle.response_complete):
            self._start_timer()
        self._goes_on = False
        super().data_received(data)
        self._head_bytes = 0 if self._goes_on else self._head_bytes + len(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"The request line and headers have more than {MAX_HEAD_BYTES} bytes. Send fewer.",
            )

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's returns nothing
        """Ends a connection whose client sends no more, or keeps it until a whole request is answered.

        Returns:
            Whether it is kept. https has no such state: TLS ends in both directions at once.
        """
        cycle = self.cycle  # of the last request
        if self.scheme == "https" or cycle is None or cycle.more_body or cycle.response_complete:
            return False
        cycle.keep_alive = False
        if not self.pipeline and not cycle.response_started:
            cycle.transport = StartedResponseTransport(self.transport)  # type: ignore[assignment]  # writes like one
        self._look_after_client()
        return True

    def _look_after_client(self) -> None:
        """Ends the connection when the client has gone: nothing is read any more that would tell."""
        if self.transport.is_closing():
            return
        if was_reset(self.transport):
            self.transport.abort()
        else:
            self.loop.call_later(CLIENT_POLL_S, self._look_after_client)

    def on_message_begin(self) -> None:
        """Begins a head, at the first byte of a request."""
        self._in_head = self._goes_on = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Takes a header; a trailer behind the body is dropped."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Ends a head and its time, at the last byte of a request's headers."""
        self._in_head, self._goes_on = False, True
        self._stop_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Takes some bytes of a body."""
        self._goes_on = True
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """Answers what is no HTTP."""
        self._refuse(HTTPStatus.BAD_REQUEST, f"{msg} Expected HTTP/1.1.")

    def _unsupported_upgrade_warning(self) -> None:
        """Says nothing: a WebSocket is answered like any other request."""

    def _start_timer(self) -> None:
        settings: Any = self.config.app.state.settings  # type: ignore[union-attr]  # the app of create_app
        self._timer = self.loop.call_later(settings.upload_timeout_s, self._time_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self._timer = None
        if self._in_head:
            self._refuse(
                HTTPStatus.REQUEST_TIMEOUT, "The headers were not complete in time. Send them faster."
            )
        else:
            self.transport.close()

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Answers what never reaches the app, and closes."""
        self._in_head = False
        if self.transport.is_closing():
            return
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.close()
            return
        problem = make_problem(uuid4().hex, status, status.name.lower(), detail)
        self._tell(problem)
        body = problem.model_dump_json().encode()
        head = (
            f"content-type: {MEDIA_TYPE}\r\nx-request-id: {problem.request_id}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(STATUS_LINE[status] + head.encode() + body)
        self.transport.close()

    def _tell(self, problem: Problem) -> None:
        """Counts and logs a refusal: the app, which does so otherwise, never sees it."""
        metrics: Any = self.config.app.state.metrics  # type: ignore[union-attr]  # as in `_start_timer`
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
