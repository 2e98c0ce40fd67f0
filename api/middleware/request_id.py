"""Gives each request its id, and is the last to catch what went wrong in it."""

import logging
import re
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import problem_response

HEADER = "X-Request-ID"
logger = logging.getLogger(__name__)


class RequestIdMiddleware:
    """Puts an id into the request's state and into the header of its answer.

    An id sent by the client is kept if it is plain and short. An exception that no handler took
    is logged under the id and answered 500, without its text.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = choose_id(Headers(scope=scope).get(HEADER))
        scope.setdefault("state", {})["request_id"] = request_id
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        except Exception:
            logger.exception("Request %s failed", request_id, extra={"request_id": request_id})
            if started:
                raise
            response = problem_response(
                request_id, 500, "internal_error", "The service failed. Its log has this id."
            )
            await response(scope, receive, send_with_id)


def choose_id(sent: str | None) -> str:
    """Returns the client's id if it is sane, else a new one; a log line must not be forged through it."""
    if sent and re.fullmatch(r"[A-Za-z0-9._:-]{1,64}", sent):
        return sent
    return uuid.uuid4().hex
