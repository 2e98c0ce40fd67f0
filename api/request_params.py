"""What a prediction is asked with, read from a request: its query and its deadline.

FastAPI could declare all of it as dependencies, but resolving them takes a good part of a small
photograph's time; so it is read here, and described for the OpenAPI document here.
"""

import time
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.json_schema import SkipJsonSchema
from starlette.requests import Request

from api.errors import RequestError
from api.raw_route import describe_body
from segdec.schemas import MaskForm, MaskSpace
from segdec.suggestions import nearest

DEADLINE_HEADER = "x-deadline-ms"
DEADLINE_MS: TypeAdapter[float] = TypeAdapter(Annotated[float, Field(gt=0, allow_inf_nan=False)])


def _choices(kind: Any) -> str:
    *most, last = (f"'{choice}'" for choice in get_args(kind))
    return f"{', '.join(most)} or {last}"


class PredictQuery(BaseModel):
    """Query of a prediction."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    threshold: Annotated[float, Field(ge=0.0, le=1.0)] | SkipJsonSchema[None] = Field(
        None,
        description="image score from which a photograph is a defect, and none is for review; default: the "
        "model's own",
    )
    mask: MaskForm = Field("png", description="form of the mask in the answer")
    space: MaskSpace = Field(
        "input",
        description="the photograph's pixels, or the network's own grid (1/8 of its input, or as fine as the "
        "model's `mask_stride` says)",
    )

    @model_validator(mode="before")
    @classmethod
    def _name_nearest(cls, values: Any) -> Any:
        for name in values if isinstance(values, dict) else ():
            if name not in cls.model_fields:
                meant = nearest(name, cls.model_fields)
                raise ValueError(f"unknown parameter '{name}'; did you mean '{meant}'?")
        return values


EXPECTED = {
    "threshold": "a number from 0 to 1",
    "mask": _choices(MaskForm),
    "space": _choices(MaskSpace),
    DEADLINE_HEADER: "a number of milliseconds above 0",
}
"""Of each parameter, in words."""

NO_QUERY = PredictQuery()
"""What is meant where a URL asks for nothing."""


@dataclass(frozen=True)
class RequestParams:
    """What a request asks with, beside its photographs.

    Attributes:
        request_id: Is repeated in the answer.
        query: What its URL asks for.
        begun: When it began, `time.perf_counter`.
        deadline: `time.perf_counter` at which what is not answered is given up.
    """

    request_id: str
    query: PredictQuery
    begun: float
    deadline: float


def read_request_params(request: Request) -> RequestParams:
    """Reads what a request asks with; its body is left alone.

    Raises:
        RequestError: 400 if a parameter is there twice, or cannot be used.
    """
    begun = time.perf_counter()
    try:
        asked = request.scope["query_string"]
        query = PredictQuery.model_validate(_single_values(request)) if asked else NO_QUERY
    except ValidationError as error:
        raise _invalid(error, "query") from error
    deadline = begun + read_deadline_ms(request) / 1000
    return RequestParams(request.state.request_id, query, begun, deadline)


def _single_values(request: Request) -> dict[str, str]:
    query = dict(request.query_params)
    if len(query) < len(request.query_params.multi_items()):
        raise RequestError(
            400,
            "bad_parameter",
            f"query: a parameter is there twice ({request.url.query}). Expected once.",
        )
    return query


def read_deadline_ms(request: Request) -> float:
    """Returns the milliseconds that this request's answer may take.

    They are the request's own, if it sends fewer than the settings allow.

    Raises:
        RequestError: 400 if the header is no positive number.
    """
    longest_ms: float = request.app.state.settings.deadline_ms
    sent = request.headers.get(DEADLINE_HEADER)
    if sent is None:
        return longest_ms
    try:
        return min(DEADLINE_MS.validate_python(sent), longest_ms)
    except ValidationError as error:
        raise _invalid(error, "header", DEADLINE_HEADER) from error


def _invalid(error: ValidationError, place: str, header: str = "") -> RequestError:
    sentences = {}  # by name: pydantic has an error for each type that a parameter could have
    for detail in error.errors():
        name = header or str(next(iter(detail["loc"]), ""))
        what = f"{place} {name} is {repr(detail['input'])[:80]}. Expected {EXPECTED.get(name)}."
        sentences[name] = what if name else f"{place}: {detail['ctx']['error']}"
    return RequestError(400, "bad_parameter", " ".join(sentences.values()))


# === For the OpenAPI document ===


def describe_parameters() -> list[dict[str, Any]]:
    """Describes the query and the header of a prediction."""
    fields: dict[str, Any] = describe_body(PredictQuery)["properties"]
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
        "description": "milliseconds after the request's head at which it is answered 504 if not before",
    },
)
