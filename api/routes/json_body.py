"""JSON bodies of requests that send no photograph of an inspection, bounded before they are read."""

import asyncio
import time
from functools import partial
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from api.errors import RequestError
from api.routes.request_params import read_deadline_ms
from api.routes.uploads import JSON_TYPE, read_body
from api.service import Service

MAX_JSON_BYTES = 64 * 1024
"""Of a body without a picture."""
MAX_JSON_VALUES = 5000
"""More than any of these bodies has, with a comma for each in its texts."""
Body = TypeVar("Body", bound=BaseModel)


async def read_json_body(
    request: Request, service: Service, form: type[Body], limit: int = MAX_JSON_BYTES
) -> Body:
    """Reads a body of at most `limit` bytes.

    Raises:
        RequestError: 415 for another kind of body, 413 for a larger one, 400 if it is no such JSON, 503 if
            there is no memory for it, 408 if it takes too long.
    """
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != JSON_TYPE:
        raise RequestError(
            415, "unsupported_content_type", f"The Content-Type is '{kind}'. Expected {JSON_TYPE}."
        )
    deadline = time.perf_counter() + read_deadline_ms(request) / 1000
    with service.bodies.reserve() as reservation:
        body = await service.receive(partial(read_body, request, limit, reservation), deadline)
        return await asyncio.to_thread(_parse, body, form)


def _parse(body: bytes, form: type[Body]) -> Body:
    # Every value but the first follows one of these, so this bounds the memory that parsing takes.
    values = sum(map(body.count, (b",", b"[", b"{")))
    if values > MAX_JSON_VALUES:
        raise RequestError(
            400, "bad_json", f"The JSON holds about {values} values; expected at most {MAX_JSON_VALUES}."
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
