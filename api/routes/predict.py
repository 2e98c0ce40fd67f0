"""One photograph in, one decision out."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from api.errors import document_problems
from api.routes.body_schemas import BINARY_SCHEMA, RawRoute, inline_schema
from api.routes.photograph_request import PhotographRequest
from api.routes.request_params import PredictQuery, describe_parameters
from api.routes.responses import make_json_response, make_mask_response
from api.routes.uploads import FORM_FIELD, FORM_TYPE, IMAGE_TYPES, JSON_TYPE, RAW_TYPES, JsonImage
from segdec.schemas import Answer

router = APIRouter(prefix="/v1", tags=["predict"], route_class=RawRoute)


def describe_photograph(json: type[JsonImage], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Describes a body with one photograph.

    Args:
        json: Its form as JSON.
        fields: Of a form, beside the photograph.
    """
    form = {"type": "object", "required": [FORM_FIELD], "properties": {FORM_FIELD: BINARY_SCHEMA, **fields}}
    return {
        "required": True,
        "description": "One photograph: raw, as a form's file, or in JSON; its content says of what kind.",
        "content": {
            **{kind: {"schema": BINARY_SCHEMA} for kind in (*IMAGE_TYPES, *RAW_TYPES)},
            FORM_TYPE: {"schema": form},
            JSON_TYPE: {"schema": inline_schema(json)},
        },
    }


MASK_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer; with `Accept: image/png` the mask itself, label and score in the headers "
        "`X-Segdec-*` (text percent-encoded)",
        "content": {"image/png": {"schema": BINARY_SCHEMA}},
    }
}
ROUTE: dict[str, Any] = {
    "response_model": Answer,
    "responses": {**MASK_FILE, **document_problems(400, 404, 408, 413, 415, 422, 500, 503, 504)},
    "openapi_extra": {"parameters": describe_parameters(), "requestBody": describe_photograph(JsonImage, {})},
}


@router.post("/predict", **ROUTE)
async def predict(request: Request) -> Response:
    """Inspects one photograph: label, score, mask and regions."""
    return await _respond(request)


@router.post("/models/{name}/predict", **ROUTE)
async def predict_with_model(request: Request, name: str) -> Response:
    """Inspects one photograph with the stable version of a model."""
    return await _respond(request, name)


@router.post("/models/{name}/versions/{version}/predict", **ROUTE)
async def predict_with_version(request: Request, name: str, version: str) -> Response:
    """Inspects one photograph with a version of a model, or with the one that a label names."""
    return await _respond(request, name, version)


async def _respond(request: Request, name: str | None = None, version: str | None = None) -> Response:
    """Reads the photograph, inspects it and answers in the form that the client accepts."""
    asked = await PhotographRequest.read(request, PredictQuery, name, version)
    make_response = make_mask_response if asked.wants_file else make_json_response
    with asked:
        upload = await asked.read_body()
        inferred = await asked.infer(upload)
        return await asked.encode(inferred, partial(make_response, params=asked.params))
