"""What came of sending a request, whatever it asked for → what it asked for, or one clear `ServiceError`."""

from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from segdec.errors import MissingExtraError, ServiceError
from segdec.schemas import Answer, BatchAnswer, Health, ModelDetail, ModelList, Problem

try:
    import httpx
except ImportError as error:
    raise MissingExtraError("httpx", "client") from error

Reply = httpx.Response | httpx.RequestError
"""What sending a request once led to: HTTP, no judgement of a photograph."""

Part = TypeVar("Part", bound=BaseModel)

REQUEST_ID = "X-Request-ID"

RESEND = "X-Segdec-Resend"
"""Marks a request that is sent again after a replica may have died of it, and the answers of a balancer that
has sent one again. What is marked is not sent again."""

LOST_ERRORS = (httpx.ReadError, httpx.RemoteProtocolError)
"""The connection broke after the request had been sent whole: whoever took it may have died of it."""

NOT_READY_STATUSES = frozenset({502, 503, 504})


def is_loss(reply: Reply) -> bool:
    """Returns whether who took the request may have died of its photograph."""
    if reply.request.method != "POST":
        return False
    if isinstance(reply, httpx.RequestError):
        return isinstance(reply, LOST_ERRORS)
    return reply.status_code == httpx.codes.BAD_GATEWAY


def is_last_loss(reply: Reply) -> bool:
    """Returns whether that is so, and the request had already been sent again after such a loss."""
    resent = RESEND in reply.request.headers
    return is_loss(reply) and (resent or (isinstance(reply, httpx.Response) and RESEND in reply.headers))


def response_reader(kind: type[Part]) -> Callable[[Reply], Part]:
    """Makes what reads an answer of `kind`, or raises `ServiceError`; unknown fields are ignored."""

    def read(reply: Reply) -> Part:
        response = _answered(reply)
        if not response.is_success:
            raise _refusal(response)
        try:
            return kind.model_validate_json(response.content)
        except ValidationError:
            raise _unexpected(response) from None

    return read


def read_batch(reply: Reply, count: int) -> list[Answer | Problem]:
    """Reads the answers for `count` photographs, an answer or a problem each.

    Raises:
        ServiceError: As `response_reader`.
    """
    items = response_reader(BatchAnswer)(reply).items
    results = [result for item in items if (result := item.answer or item.problem)]
    if len(results) != count:
        raise _unexpected(_answered(reply))
    return results


def read_models(reply: Reply) -> list[ModelDetail]:
    """Reads the list of all served models.

    Raises:
        ServiceError: As `response_reader`.
    """
    return response_reader(ModelList)(reply).models


def read_ready(reply: Reply) -> bool:
    """Reads whether the service is ready; one that does not answer is not.

    Raises:
        ServiceError: If something other than the inspection service answered.
    """
    if isinstance(reply, httpx.RequestError) or reply.status_code in NOT_READY_STATUSES:
        return False
    return response_reader(Health)(reply).status == "ready"


def _answered(reply: Reply) -> httpx.Response:
    if is_last_loss(reply):
        raise _loss(reply)
    if isinstance(reply, httpx.Response):
        return reply
    request_id = reply.request.headers[REQUEST_ID]
    late = isinstance(reply, httpx.TimeoutException)
    reason = "the time is over" if late else str(reply) or type(reply).__name__
    raise ServiceError(
        f"No answer from {reply.request.url}: {reason}. Check the address and that the service runs.",
        code="timeout" if late else "unreachable",
        status=None,
        request_id=request_id,
    ) from reply


def _loss(reply: Reply) -> ServiceError:
    lost = "the gateway lost its replica" if isinstance(reply, httpx.Response) else str(reply) or "it broke"
    return ServiceError(
        f"The connection to {reply.request.url} ended without an answer ({lost}), as it did when the request "
        "was sent before. Two replicas may have died of this photograph: it is not sent again. Keep it, and "
        "look into the service's log.",
        code="replica_lost",
        status=reply.status_code if isinstance(reply, httpx.Response) else None,
        request_id=reply.request.headers[REQUEST_ID],
    )


def _refusal(response: httpx.Response) -> ServiceError:
    """The service's problem, or what a proxy in between said instead."""
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
        f"{response.request.url} gave an answer that is not the inspection service's ({kind}"
        f"{f', see {moved}' if moved else ''}). Check the address and any proxy on the way.",
        code="unexpected_answer",
        status=response.status_code,
        request_id=response.request.headers[REQUEST_ID],
    )
