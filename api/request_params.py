"""What a prediction is asked with, read from a request.

FastAPI could declare all of it as dependencies, but resolving them takes a good part of a small
photograph's time; so it is read here, and described for the OpenAPI document here.
"""

import time
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi.exceptions import RequestValidationError
from pydantic import Field, TypeAdapter, ValidationError
from starlette.requests import Request

from api.dependencies import get_service
from api.errors import RequestError
from api.json_schema import describe_body
from api.schemas import PredictParameters
from api.service import Service

DEADLINE_HEADER = "x-deadline-ms"
DEADLINE_MS: TypeAdapter[float] = TypeAdapter(Annotated[float, Field(gt=0, allow_inf_nan=False)])


@dataclass(frozen=True)
class Question:
    """What every prediction is asked with.

    Attributes:
        request: The request, whose body may not have been read yet.
        parameters: Its query.
        begun: When it began, `time.perf_counter`.
        deadline: `time.perf_counter` after which a photograph that still waits is given up.
        service: Answers.
    """

    request: Request
    parameters: PredictParameters
    begun: float
    deadline: float
    service: Service


async def read_question(request: Request) -> Question:
    """The question in a request.

    Raises:
        RequestError: 503 before the service is started.
        RequestValidationError: If a parameter cannot be used.
    """
    begun = time.perf_counter()
    service = await get_service(request)
    service.models.check_ready()
    try:
        parameters = PredictParameters.model_validate(_query(request))
    except ValidationError as error:
        raise _invalid(error, "query") from error
    return Question(request, parameters, begun, begun + read_deadline_ms(request) / 1000, service)


def _query(request: Request) -> dict[str, str]:
    query = dict(request.query_params)
    if len(query) < len(request.query_params.multi_items()):
        raise RequestError(
            400,
            "bad_parameter",
            f"query: a parameter is there twice ({request.url.query}). Expected once.",
        )
    return query


def read_deadline_ms(request: Request) -> float:
    """Milliseconds that a photograph of this request may wait: its own limit, if shorter than the settings'.

    Raises:
        RequestValidationError: If the header is no positive number.
    """
    longest_ms: float = request.app.state.settings.deadline_ms
    sent = request.headers.get(DEADLINE_HEADER)
    if sent is None:
        return longest_ms
    try:
        return min(DEADLINE_MS.validate_python(sent), longest_ms)
    except ValidationError as error:
        raise _invalid(error, "header", DEADLINE_HEADER) from error


def _invalid(error: ValidationError, *place: str) -> RequestValidationError:
    return RequestValidationError([{**detail, "loc": (*place, *detail["loc"])} for detail in error.errors()])


# === For the OpenAPI document ===


def describe_parameters() -> list[dict[str, Any]]:
    """The query and the header of a question."""
    fields: dict[str, Any] = describe_body(PredictParameters)["properties"]
    return [*(_describe(name, "query", schema) for name, schema in fields.items()), DESCRIBED_DEADLINE]


def _describe(name: str, place: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": False,
        "schema": schema,
        "description": schema["description"],
    }


DESCRIBED_DEADLINE = _describe(
    DEADLINE_HEADER,
    "header",
    {
        **DEADLINE_MS.json_schema(),
        "description": "milliseconds after which a photograph that still waits is given up with a 504",
    },
)
