"""JSON bodies without photographs; their size is bounded before they are parsed."""

import asyncio
from functools import partial
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from api.errors import RequestError, describe_json_errors
from api.routes.rate_limit import client_of
from api.routes.request_body import JSON_TYPE, is_json, media_type, parse_json, read_body
from api.service import Service

MAX_JSON_BYTES = 64 * 1024
MAX_JSON_VALUES = 5000
"""Maximum number of JSON values (estimated from commas, so commas in texts are counted too)."""
Body = TypeVar("Body", bound=BaseModel)


async def read_json_body(
    request: Request,
    service: Service,
    form: type[Body],
    deadline: float,
    limit: int = MAX_JSON_BYTES,
    any_type: bool = False,
) -> Body:
    """Reads a JSON body as the model `form`, at most `limit` bytes, until `deadline`; with `any_type`, its
    Content-Type is not checked.

    Raises:
        RequestError: 415 for another Content-Type, 413 for a larger body, 400 for invalid JSON, 503 without
            memory for it, 408 if it takes too long.
    """
    if not any_type and not is_json(media_type(request)):
        kind = request.headers.get("content-type", "")
        raise RequestError(
            415, "unsupported_content_type", f"The Content-Type is '{kind}'. Expected {JSON_TYPE}."
        )
    with service.bodies.reserve() as reservation:
        reading = partial(read_body, request, limit)
        body = await service.receive(reading, client_of(request), reservation, deadline)
        return await asyncio.to_thread(parse_json, body, form, MAX_JSON_VALUES, partial(_bad_json, form))


def _bad_json(form: type[BaseModel], error: ValidationError) -> RequestError:
    detail = f"{describe_json_errors(error)}. Expected a JSON object with {', '.join(form.model_fields)}."
    return RequestError(400, "bad_json", detail)
