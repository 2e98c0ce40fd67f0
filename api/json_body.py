"""JSON bodies of requests that send no photograph of an inspection, bounded before they are read."""

import asyncio
import time
from functools import partial
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from api.errors import RequestError
from api.request_params import read_deadline_ms
from api.service import Service
from api.uploads import JSON, read_body

SMALL_BYTES = 64 * 1024
"""Of a body without a picture."""
MOST_VALUES = 5000
"""More than any of these bodies has, with a comma for each in its texts."""
Body = TypeVar("Body", bound=BaseModel)


async def read_json(request: Request, service: Service, form: type[Body], limit: int = SMALL_BYTES) -> Body:
    """Reads a body of at most `limit` bytes.

    Raises:
        RequestError: 415 for another kind of body, 413 for a larger one, 400 if it is no such JSON, 503 if
            there is no memory for it, 408 if it takes too long.
    """
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != JSON:
        raise RequestError(415, "unsupported_content_type", f"The Content-Type is '{kind}'. Expected {JSON}.")
    deadline = time.perf_counter() + read_deadline_ms(request) / 1000
    with service.bodies.hold() as held:
        body = await service.receive(partial(read_body, request, limit, held), deadline)
        return await asyncio.to_thread(_parse, body, form)


def _parse(body: bytes, form: type[Body]) -> Body:
    # Every value but the first follows one of these, so this bounds the memory that parsing takes.
    values = sum(map(body.count, (b",", b"[", b"{")))
    if values > MOST_VALUES:
        raise RequestError(
            400, "bad_json", f"The JSON holds about {values} values; expected at most {MOST_VALUES}."
        )
    try:
        return form.model_validate_json(body)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part)[:40] for part in detail['loc']) or 'body'}: {detail['msg']}"
            for detail in error.errors(include_input=False, include_url=False)[:3]
        )
        expected = ", ".join(form.model_fields)
        raise RequestError(400, "bad_json", f"{problems}. Expected a JSON object with {expected}.") from error
