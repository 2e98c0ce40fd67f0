"""Gives each request an id, and answers unexpected exceptions with 500."""

import logging
import uuid

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from api.errors import ProblemResponse
from api.http.middleware.access import add_log_fields
from api.http.middleware.http_middleware import HttpMiddleware, StatusSend

HEADER = "X-Request-ID"
REFUSED_HEADER = "X-Request-ID-Refused"
"""Says why the client's id was not used; the request itself is not rejected."""
MAX_LENGTH = 128
"""Longest id of a client, characters."""
logger = logging.getLogger(__name__)


class RequestIdMiddleware(HttpMiddleware):
    """Adds an id to the request's state and to the headers of its answer.

    The client's id is used if it is short and printable; otherwise the answer says why it is not. An
    exception without a handler is logged with the id and answered 500, without its text.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent = Headers(scope=scope).get(HEADER)
        request_id, refusal = choose_id(sent)
        if sent and refusal:  # also in the log, for comparison with the client's log
            add_log_fields(Request(scope), sent_id=sent[:MAX_LENGTH].encode("unicode_escape").decode("ascii"))
        scope.setdefault("state", {})["request_id"] = request_id
        added = [(HEADER.lower().encode(), request_id.encode())]
        if refusal:
            added.append((REFUSED_HEADER.lower().encode(), refusal.encode()))

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        answer = StatusSend(send_with_id)
        try:
            await self.app(scope, receive, answer)
        except Exception:
            logger.exception("Request %s failed", request_id, extra={"request_id": request_id})
            if answer.status:
                raise
            response = ProblemResponse(
                request_id, 500, "internal_error", "The service failed. Its log has this id."
            )
            await response(scope, receive, answer)


def choose_id(sent: str | None) -> tuple[str, str]:
    """Returns the id of a request and why the client's id was refused; empty if it was not.

    Printable ASCII cannot inject headers or log lines, because the log quotes and escapes values.
    """
    if not sent:
        return uuid.uuid4().hex, ""
    if len(sent) > MAX_LENGTH:
        arrived = f"{len(sent)} characters"
    elif not (sent.isascii() and sent.isprintable()):
        arrived = "characters beyond printable ASCII"
    else:
        return sent, ""
    return uuid.uuid4().hex, f"{arrived} arrived. Expected 1 to {MAX_LENGTH} printable ASCII characters."
