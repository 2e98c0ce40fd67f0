"""Parameters of requests for predictions and inspections: their query, their deadline, their part."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

from fastapi import Depends, Header, Query
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import from_json
from starlette.requests import Request

from api.errors import RequestError, bad_parameter
from api.http.number_text import DECIMAL_NUMBER
from api.http.sent_model import SentModel
from segdec.runtime.identifiers import SCHEMA_PATTERN, check_identifier
from segdec.runtime.suggestions import nearest_name
from segdec.schemas import MaskForm, MaskSpace, RecordedMaskForm

MAX_NAME = 128
"""Longest name of a station or a part, and longest idempotency key, characters."""
MAX_METADATA = 4096
"""Longest metadata, characters of its JSON."""


_PATTERN = {"pattern": SCHEMA_PATTERN}
_CHECKED = AfterValidator(check_identifier)
Name = Annotated[str, Field(max_length=MAX_NAME, json_schema_extra=_PATTERN), _CHECKED]
"""Name of a station, part, person, version or request."""
RequiredName = Annotated[str, Field(min_length=1, max_length=MAX_NAME, json_schema_extra=_PATTERN), _CHECKED]


class PredictQuery(SentModel):
    """Query of a prediction."""

    threshold: Annotated[float, DECIMAL_NUMBER, Field(ge=0.0, le=1.0)] | SkipJsonSchema[None] = Field(
        None,
        description="image score from which a photograph is a defect, without a band for review; default: "
        "the model's own",
    )
    mask: MaskForm = Field("png", description="form of the mask in the answer")
    space: MaskSpace = Field(
        "input",
        description="pixels of the mask: the photograph's, or the network's own grid (1/8 of its input, or "
        "finer, see the model's `mask_stride`)",
    )

    station: Name = Field("", description="where the photograph was taken: its inspection plan decides")

    @model_validator(mode="before")
    @classmethod
    def _suggest_name(cls, values: Any) -> Any:
        for name in values if isinstance(values, dict) else ():
            if name not in cls.model_fields:
                meant = nearest_name(name, cls.model_fields)
                raise ValueError(f"unknown parameter '{name}'; did you mean '{meant}'?")
        return values


def _parse_json(value: Any) -> Any:
    try:
        return from_json(value, allow_inf_nan=False) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f"Expected a JSON object: {error}") from error


def _check_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Rejects long metadata, and NaN and Infinity, which standard JSON does not have."""
    if len(json.dumps(metadata, ensure_ascii=False, allow_nan=False)) > MAX_METADATA:
        raise ValueError(f"Expected a JSON object of at most {MAX_METADATA} characters")
    return metadata


JSON_TEXT = {"type": "string", "contentMediaType": "application/json"}
Metadata = Annotated[dict[str, Any], BeforeValidator(_parse_json), AfterValidator(_check_metadata)]


class PartFields(SentModel):
    """What a request says about the part in its photograph, in its query or in its body."""

    station: Name = Field("", description="where the photograph was taken, for example `line3-cam1`")
    part_id: RequiredName | SkipJsonSchema[None] = Field(
        None,
        description="which part it shows; the same photograph of the same part at the same station gets the "
        "first answer again, unless client, model, thresholds or verdict differ",
    )
    metadata: Metadata | SkipJsonSchema[None] = Field(
        None, description="further values to store in the record"
    )


class InspectQuery(PredictQuery, PartFields):
    """Query of an inspection, which is recorded."""

    mask: RecordedMaskForm = Field("png", description="form of the mask in the answer")
    space: Literal["input"] = Field("input", description="pixels of the mask: the photograph's")
    metadata: Annotated[Metadata, WithJsonSchema(JSON_TEXT)] | SkipJsonSchema[None] = Field(
        None, description="JSON object: further values to store in the record"
    )


# === Dependencies ===

DeadlineMs = Annotated[float, DECIMAL_NUMBER, Field(gt=0, allow_inf_nan=False)]


async def get_deadline(
    request: Request,
    x_deadline_ms: Annotated[
        DeadlineMs | SkipJsonSchema[None],
        Header(description="milliseconds from the request's head to a 504 if there is no answer by then"),
    ] = None,
) -> float:
    """Returns the `time.perf_counter` time of the deadline, at most that of the settings."""
    limit_ms: float = request.app.state.settings.deadline_ms
    return time.perf_counter() + min(x_deadline_ms or limit_ms, limit_ms) / 1000


DeadlineDep = Annotated[float, Depends(get_deadline)]


def _decode_header(value: Any) -> Any:
    """Decodes a header that is UTF-8; the framework decodes all of them as Latin-1."""
    try:
        return value.encode("latin-1").decode("utf-8") if isinstance(value, str) else value
    except UnicodeError:
        return value


IdempotencyKey = Annotated[
    Annotated[RequiredName, BeforeValidator(_decode_header)] | SkipJsonSchema[None],
    Header(
        description="a request with the key of an earlier one gets its answer again, unless the model or its "
        "verdict has changed"
    ),
]
QueryModel = TypeVar("QueryModel", bound=PredictQuery)


@dataclass(frozen=True)
class RequestParams(Generic[QueryModel]):
    """What a request asks for, without its photographs. `started` and `deadline` (504) are times of
    `time.perf_counter`.
    """

    request_id: str
    query: QueryModel
    started: float
    deadline: float


async def _predict_params(
    request: Request, query: Annotated[PredictQuery, Query()], deadline: DeadlineDep
) -> RequestParams[PredictQuery]:
    return _make_params(request, query, deadline)


async def _inspect_params(
    request: Request, query: Annotated[InspectQuery, Query()], deadline: DeadlineDep
) -> RequestParams[InspectQuery]:
    return _make_params(request, query, deadline)


PredictParams = Annotated[RequestParams[PredictQuery], Depends(_predict_params)]
InspectParams = Annotated[RequestParams[InspectQuery], Depends(_inspect_params)]


def _make_params(request: Request, query: QueryModel, deadline: float) -> RequestParams[QueryModel]:
    if len(request.query_params) < len(request.query_params.multi_items()):
        raise RequestError(
            400, "bad_parameter", f"query: a parameter was sent twice ({request.url.query}). Expected once."
        )
    return RequestParams(request.state.request_id, query, time.perf_counter(), deadline)


# === Facts about the part ===


def parse_part_fields(fields: Mapping[str, str]) -> PartFields:
    """Parses what a form says about a part; raises a RequestError, 400, if a value is invalid."""
    try:
        return PartFields.model_validate(fields)
    except ValidationError as error:
        raise bad_parameter(error.errors(), "form") from error


def merge_part_fields(query: PartFields, body: PartFields | None) -> PartFields:
    """Returns what query and body together say about a part; raises a RequestError, 400, if both have
    different values for the same field.
    """
    merged = {
        name: getattr(query, name) for name in PartFields.model_fields if name in query.model_fields_set
    }
    for name in () if body is None else body.model_fields_set & PartFields.model_fields.keys():
        value = getattr(body, name)
        if merged.setdefault(name, value) != value:
            detail = (
                f"{name} is {repr(merged[name])[:80]} in the query and {repr(value)[:80]} in the body. "
                "Expected it in one of them."
            )
            raise RequestError(400, "bad_parameter", detail)
    return PartFields.model_construct(**merged)
