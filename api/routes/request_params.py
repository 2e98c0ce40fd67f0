"""What a prediction is asked with, read from a request: its query and its deadline.

FastAPI could declare all of it as dependencies, but resolving them takes a good part of a small
photograph's time; so it is read here, and described for the OpenAPI document here.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import from_json
from starlette.requests import Request

from api.errors import RequestError
from api.routes.body_schemas import inline_schema
from segdec.runtime.suggestions import nearest_name
from segdec.schemas import MaskForm, MaskSpace, RecordedMaskForm

DEADLINE_HEADER = "x-deadline-ms"
IDEMPOTENCY_HEADER = "idempotency-key"
MAX_NAME = 128
"""Longest name of a station or a part, and longest key of a request, letters."""
MAX_METADATA = 4096
"""Longest metadata, letters of its JSON."""
PRINTABLE = r"^[^\x00-\x1f\x7f]*$"
DEADLINE_MS: TypeAdapter[float] = TypeAdapter(Annotated[float, Field(gt=0, allow_inf_nan=False)])


def _choices(kind: Any) -> str:
    *most, last = (f"'{choice}'" for choice in get_args(kind))
    return f"{', '.join(most)} or {last}" if most else last


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
                meant = nearest_name(name, cls.model_fields)
                raise ValueError(f"unknown parameter '{name}'; did you mean '{meant}'?")
        return values


Name = Annotated[str, Field(max_length=MAX_NAME, pattern=PRINTABLE)]


IDEMPOTENCY_KEY: TypeAdapter[str] = TypeAdapter(Annotated[Name, Field(min_length=1)])


def _read_json(value: Any) -> Any:
    return from_json(value, allow_inf_nan=False) if isinstance(value, str) else value


def _check_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Refuses what is too long, and NaN and Infinity: who is told of them could not read their JSON."""
    if len(json.dumps(metadata, ensure_ascii=False, allow_nan=False)) > MAX_METADATA:
        raise ValueError(f"has more than {MAX_METADATA} letters")
    return metadata


JSON_TEXT = {"type": "string", "contentMediaType": "application/json"}
Metadata = Annotated[dict[str, Any], BeforeValidator(_read_json), AfterValidator(_check_metadata)]


class PartFacts(BaseModel):
    """What a request says of the part that its photograph shows, in its query or in its body."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    station: Name = Field("", description="where the photograph was taken, for example `line3-cam1`")
    part_id: Annotated[Name, Field(min_length=1)] | SkipJsonSchema[None] = Field(
        None,
        description="which part it shows; the same picture of the same part at the same station is answered "
        "as it was at first",
    )
    metadata: Metadata | SkipJsonSchema[None] = Field(
        None, description="what else is to be found in the record"
    )


class InspectQuery(PredictQuery, PartFacts):
    """Query of an inspection, which is recorded."""

    mask: RecordedMaskForm = Field("png", description="form of the mask in the answer")
    space: Literal["input"] = Field("input", description="the photograph's pixels")
    metadata: Annotated[Metadata, WithJsonSchema(JSON_TEXT)] | SkipJsonSchema[None] = Field(
        None, description="JSON object: what else is to be found in the record"
    )


EXPECTED = {
    "threshold": "a number from 0 to 1",
    "station": f"at most {MAX_NAME} letters that print",
    "part_id": f"1 to {MAX_NAME} letters that print",
    "metadata": f"a JSON object of at most {MAX_METADATA} letters",
    DEADLINE_HEADER: "a number of milliseconds above 0",
    IDEMPOTENCY_HEADER: f"1 to {MAX_NAME} letters that print",
}
"""Of each parameter, in words."""

Query = TypeVar("Query", bound=PredictQuery)


@dataclass(frozen=True)
class RequestParams(Generic[Query]):
    """What a request asks with, beside its photographs.

    Attributes:
        request_id: Is repeated in the answer.
        query: What its URL asks for.
        begun: When it began, `time.perf_counter`.
        deadline: `time.perf_counter` at which what is not answered is given up.
    """

    request_id: str
    query: Query
    started: float
    deadline: float


def read_request_params(request: Request, kind: type[Query]) -> RequestParams[Query]:
    """Reads what a request asks with; its body is left alone.

    Raises:
        RequestError: 400 if a parameter is there twice, or cannot be used.
    """
    started = time.perf_counter()
    try:
        asked = request.scope["query_string"]
        query = kind.model_validate(_single_values(request)) if asked else kind()
    except ValidationError as error:
        raise bad_parameter_error(error, "query", kind=kind) from error
    deadline = started + read_deadline_ms(request) / 1000
    return RequestParams(request.state.request_id, query, started, deadline)


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
        raise bad_parameter_error(error, "header", DEADLINE_HEADER) from error


def read_idempotency_key(request: Request) -> str | None:
    """Returns the Idempotency-Key; None without one.

    Raises:
        RequestError: 400 if it is empty, too long or does not print.
    """
    sent = request.headers.get(IDEMPOTENCY_HEADER)
    if sent is None:
        return None
    try:
        return IDEMPOTENCY_KEY.validate_python(sent)
    except ValidationError as error:
        raise bad_parameter_error(error, "header", IDEMPOTENCY_HEADER) from error


def parse_part_facts(fields: Mapping[str, str]) -> PartFacts:
    """Reads what a form says of a part.

    Raises:
        RequestError: 400 if it cannot be used.
    """
    try:
        return PartFacts.model_validate(fields)
    except ValidationError as error:
        raise bad_parameter_error(error, "form", kind=PartFacts) from error


def merge_part_facts(query: PartFacts, body: PartFacts | None) -> PartFacts:
    """Returns what query and body say of a part together.

    Raises:
        RequestError: 400 if both say the same thing, and not the same of it.
    """
    joined = {name: getattr(query, name) for name in PartFacts.model_fields if name in query.model_fields_set}
    for name in () if body is None else body.model_fields_set & PartFacts.model_fields.keys():
        said = getattr(body, name)
        if joined.setdefault(name, said) != said:
            raise RequestError(
                400,
                "bad_parameter",
                f"{name} is {repr(joined[name])[:80]} in the query and {repr(said)[:80]} in the body. "
                "Expected it in one of them.",
            )
    return PartFacts.model_construct(**joined)


def bad_parameter_error(
    error: ValidationError, place: str, header: str = "", kind: type[BaseModel] = PredictQuery
) -> RequestError:
    """Says what is wrong with parameters, and what was expected.

    Args:
        error: Of `kind`.
        place: Where they stand.
        header: Name of the one that it is about; empty where the error says it.
        kind: Has the parameters as its fields.
    """
    sentences = {}  # by name: pydantic has an error for each type that a parameter could have
    for detail in error.errors():
        name = header or str(next(iter(detail["loc"]), ""))
        expected = EXPECTED.get(name) or (name and _choices(kind.model_fields[name].annotation))
        what = f"{place} {name} is {repr(detail['input'])[:80]}. Expected {expected}."
        sentences[name] = what if name else f"{place}: {detail['ctx']['error']}"
    return RequestError(400, "bad_parameter", " ".join(sentences.values()))


# === For the OpenAPI document ===


def describe_parameters(kind: type[PredictQuery] = PredictQuery) -> list[dict[str, Any]]:
    """Describes the query and the header of a prediction."""
    fields: dict[str, Any] = inline_schema(kind)["properties"]
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

DESCRIBED_KEY = _describe(
    IDEMPOTENCY_HEADER,
    "header",
    {
        **IDEMPOTENCY_KEY.json_schema(),
        "description": "sent again with the same one, the photograph is answered as it was at first",
    },
)
