"""Answers in the language that a request prefers, if it is not English."""

import asyncio
import json
import logging
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from api.http.middleware.http_middleware import HttpMiddleware
from api.messages.answers import translate_answer
from api.messages.catalogues import DEFAULT, read_catalogues
from api.messages.language import find_language

JSON = re.compile(r"application/(problem\+)?json\b")
PREFERENCE = re.compile(r"([A-Za-z]+)[\w-]*\s*(?:;\s*q=([01](?:\.\d{0,3})?))?")
FILES = ("/static/", "/docs", "/openapi.json")
"""Beginnings of the paths of files, which have no texts of the service."""
MAX_BYTES = 2**20
"""Larger answers stay in English."""
THREAD_BYTES = 2**14
"""From this size on, an answer is translated in a thread."""
logger = logging.getLogger(__name__)


class TranslationMiddleware(HttpMiddleware):
    """Translates the texts of JSON answers, except those that are saved as files, and large ones.

    Routes and everything that they store are in English.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        code = preferred_language(Headers(scope=scope).get("accept-language", ""))
        if code == DEFAULT or scope["path"].startswith(FILES):
            await self.app(scope, receive, send)
            return
        start: Message | None = None
        body = b""

        async def send_translated(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_translated(message):
                start = message
                return
            if start is not None and message["type"] == "http.response.body":
                body += message.get("body", b"")
                is_large = len(body) > MAX_BYTES
                if message.get("more_body", False) and not is_large:
                    return
                content = body if is_large else await _translate(start, body, code)
                await send(start)
                start, message = None, {**message, "body": content}
            await send(message)

        await self.app(scope, receive, send_translated)


def preferred_language(header: str) -> str:
    """Returns the code of the language that an `Accept-Language` prefers among those of the service."""
    known = read_catalogues()
    asked = [(float(weight or 1), name.lower()) for name, weight in PREFERENCE.findall(header)]
    offered = [(weight, name) for weight, name in asked if name in known and weight]
    return max(offered, key=lambda one: one[0])[1] if offered else DEFAULT


def _is_translated(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    is_file = any(f"content-{name}" in headers for name in ("disposition", "encoding", "range"))
    return not is_file and JSON.match(headers.get("content-type", "")) is not None


async def _translate(start: Message, body: bytes, code: str) -> bytes:
    """Returns the body of an answer in a language, and sets the headers of its start to match.

    An answer that cannot be translated is sent in English.
    """
    headers = MutableHeaders(scope=start)
    headers.add_vary_header("Accept-Language")
    wait = headers.get("retry-after")
    try:
        if len(body) < THREAD_BYTES:
            translated = _translate_body(body, code, wait)
        else:
            translated = await asyncio.to_thread(_translate_body, body, code, wait)
    except Exception:  # the answer is more important than its language
        logger.exception("An answer was not translated")
        return body
    if translated != body:
        headers["Content-Length"] = str(len(translated))
        headers["Content-Language"] = code
    return translated


def _translate_body(body: bytes, code: str, wait: str | None) -> bytes:
    if not body:  # of HEAD
        return body
    answer = json.loads(body)
    values = {} if wait is None else {"seconds": wait}
    translated = translate_answer(answer, find_language(code), **values)
    if translated == answer:
        return body
    return json.dumps(translated, ensure_ascii=False, separators=(",", ":")).encode()
