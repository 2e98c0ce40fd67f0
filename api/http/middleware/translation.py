"""Answers in the language that a request prefers, if it is not English."""

import json
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from api.http.middleware.http_middleware import HttpMiddleware
from api.messages.answers import translate_answer
from api.messages.catalogues import DEFAULT, read_catalogues
from api.messages.language import find_language

JSON = re.compile(r"application/(problem\+)?json\b")
PREFERENCE = re.compile(r"([A-Za-z]+)[\w-]*\s*(?:;\s*q=([01](?:\.\d{0,3})?))?")


class TranslationMiddleware(HttpMiddleware):
    """Translates the texts of JSON answers, except those that are saved as files.

    Routes and everything that they store are in English.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        code = preferred_language(Headers(scope=scope).get("accept-language", ""))
        if code == DEFAULT:
            await self.app(scope, receive, send)
            return
        start: Message | None = None
        body = b""

        async def send_translated(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_translated(message):
                start = message
            elif start is None or message["type"] != "http.response.body":
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    content = _translate(start, body, code)
                    await send(start)
                    await send({**message, "body": content})

        await self.app(scope, receive, send_translated)


def preferred_language(header: str) -> str:
    """Returns the code of the language that an `Accept-Language` prefers among those of the service."""
    known = read_catalogues()
    found = [(float(weight or 1), name.lower()) for name, weight in PREFERENCE.findall(header)]
    offered = [(weight, name) for weight, name in found if name in known and weight]
    return max(offered, key=lambda one: one[0])[1] if offered else DEFAULT


def _is_translated(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    is_file = "content-disposition" in headers or "content-encoding" in headers
    return not is_file and JSON.match(headers.get("content-type", "")) is not None


def _translate(start: Message, body: bytes, code: str) -> bytes:
    """Returns the body of an answer in a language, and sets the headers of its start to match."""
    headers = MutableHeaders(scope=start)
    wait = headers.get("retry-after")
    values = {} if wait is None else {"seconds": wait}
    if body:
        answer = translate_answer(json.loads(body), find_language(code), **values)
        body = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()
        headers["Content-Length"] = str(len(body))
    headers["Content-Language"] = code
    headers.add_vary_header("Accept-Language")
    return body
