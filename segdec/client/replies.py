"""Turns a reply to a request into a result, or into a `ServiceError`."""

from collections.abc import Callable
from typing import TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from segdec.errors import ServiceError
from segdec.schemas import Answer, BatchAnswer, Health, ModelDetail, ModelList, Problem

Reply = httpx.Response | httpx.RequestError
"""Outcome of sending a request once."""

Result = TypeVar("Result", bound=BaseModel)

REQUEST_ID = "X-Request-ID"

LOST_ERRORS = (httpx.ReadError, httpx.RemoteProtocolError)
"""The connection broke after the request was sent: the replica may have crashed on the photograph."""

REPLICA_LOST = "replica_lost"


def may_have_crashed(reply: Reply) -> bool:
    """Returns whether the replica that took the request may have crashed on its photograph."""
    if reply.request.method != "POST":
        return False
    if isinstance(reply, httpx.RequestError):
        return isinstance(reply, LOST_ERRORS)
    return reply.status_code == httpx.codes.BAD_GATEWAY


def second_replica_lost(reply: Reply) -> bool:
    """Returns whether the gateway has already tried another replica, which was lost too."""
    content = b"" if isinstance(reply, httpx.RequestError) else reply.content
    return may_have_crashed(reply) and REPLICA_LOST.encode() in content


def response_reader(kind: type[Result]) -> Callable[[Reply], Result]:
    """Returns a function that parses a reply as `kind`, ignoring unknown fields, or raises `ServiceError`."""

    def read(reply: Reply) -> Result:
        response = _response(reply)
        if not response.is_success:
            raise _rejection(response)
        try:
            return kind.model_validate_json(response.content)
        except ValidationError:
            raise _unexpected(response) from None

    return read


def read_batch(reply: Reply, count: int) -> list[Answer | Problem]:
    """Reads an answer or a problem for each of `count` photographs; raises as `response_reader`."""
    items = response_reader(BatchAnswer)(reply).items
    results = [result for item in items if (result := item.answer or item.problem)]
    if len(results) != count:
        raise _unexpected(_response(reply))
    return results


def read_models(reply: Reply) -> list[ModelDetail]:
    """Reads the list of all served models; raises as `response_reader`."""
    return response_reader(ModelList)(reply).models


def read_ready(reply: Reply) -> bool:
    """Reads whether the service is ready; a service that does not answer is not."""
    if isinstance(reply, httpx.RequestError) or reply.status_code in (502, 503, 504):
        return False
    return response_reader(Health)(reply).status in ("ready", "degraded")


def replica_lost(reply: Reply) -> ServiceError:
    """Returns the error for a photograph on which two replicas may have crashed."""
    lost = "the gateway lost its replica" if isinstance(reply, httpx.Response) else str(reply) or "it broke"
    return ServiceError(
        f"The connection to {reply.request.url} ended twice without an answer ({lost}). Two replicas may "
        "have crashed on this photograph, so it is not sent again. Keep it and check the service's log.",
        code=REPLICA_LOST,
        status=reply.status_code if isinstance(reply, httpx.Response) else None,
        request_id=reply.request.headers[REQUEST_ID],
    )


def _response(reply: Reply) -> httpx.Response:
    if isinstance(reply, httpx.Response):
        return reply
    late = isinstance(reply, httpx.TimeoutException)
    reason = "timeout" if late else str(reply) or type(reply).__name__
    raise ServiceError(
        f"No answer from {reply.request.url}: {reason}. Check the address and that the service runs.",
        code="timeout" if late else "unreachable",
        status=None,
        request_id=reply.request.headers[REQUEST_ID],
    ) from reply


def _rejection(response: httpx.Response) -> ServiceError:
    """Reads the service's problem; anything else came from a proxy."""
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:
        return _unexpected(response)
    return ServiceError(
        problem.detail, code=problem.code, status=response.status_code, request_id=problem.request_id
    )


def _unexpected(response: httpx.Response) -> ServiceError:
    kind = response.headers.get("Content-Type", "no type")
    moved = response.headers.get("Location")
    return ServiceError(
        f"The answer from {response.request.url} is not from the inspection service ({kind}"
        f"{f', see {moved}' if moved else ''}). Check the address and any proxy in between.",
        code="unexpected_answer",
        status=response.status_code,
        request_id=response.request.headers[REQUEST_ID],
    )
