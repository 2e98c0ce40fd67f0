"""Endpoints that inspect one photograph without a record."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from api.errors import document_problems
from api.http.body_schemas import BINARY_SCHEMA, inline_schema
from api.http.request_body import FORM_TYPE, JSON_TYPE, RAW_TYPES
from api.http.request_params import PredictParams
from api.http.roles import require_role
from api.inspecting.dependencies import DefaultModelDep, ModelVersionDep, NamedModelDep, ServiceDep
from api.inspecting.photograph_request import PhotographRequest
from api.inspecting.responses import make_json_response, make_mask_response
from api.inspecting.service import InspectionService
from api.inspecting.uploads import FORM_FIELD, IMAGE_TYPES, JsonImage
from api.models.registry import ServedModel
from segdec.schemas import Answer

router = APIRouter(prefix="/v1", tags=["predict"], dependencies=require_role("predict"))


def describe_photograph(json: type[JsonImage], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the OpenAPI description of a body with one photograph, as JSON or in a form with further
    `fields`.
    """
    form = {"type": "object", "required": [FORM_FIELD], "properties": {FORM_FIELD: BINARY_SCHEMA, **fields}}
    return {
        "required": True,
        "description": "One photograph: raw, as a file in a form, or in JSON; its content decides its type.",
        "content": {
            **{kind: {"schema": BINARY_SCHEMA} for kind in (*IMAGE_TYPES, *RAW_TYPES)},
            FORM_TYPE: {"schema": form},
            JSON_TYPE: {"schema": inline_schema(json)},
        },
    }


MASK_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer as JSON; with `Accept: image/png` the mask as a file, and label and score "
        "in the headers `X-Segdec-*` (text percent-encoded)",
        "content": {"image/png": {"schema": BINARY_SCHEMA}},
    }
}
ROUTE: dict[str, Any] = {
    "response_model": Answer,
    "responses": {**MASK_FILE, **document_problems(400, 404, 408, 413, 415, 422, 500, 503, 504)},
    "openapi_extra": {"requestBody": describe_photograph(JsonImage, {})},
}


@router.post("/predict", **ROUTE)
async def predict(
    request: Request, service: ServiceDep, model: DefaultModelDep, params: PredictParams
) -> Response:
    """Inspects one photograph: label, score, mask and regions."""
    return await _respond(request, service, model, params)


@router.post("/models/{name}/predict", **ROUTE)
async def predict_with_model(
    request: Request, service: ServiceDep, model: NamedModelDep, params: PredictParams
) -> Response:
    """Inspects one photograph with the stable version of a model."""
    return await _respond(request, service, model, params)


@router.post("/models/{name}/versions/{version}/predict", **ROUTE)
async def predict_with_version(
    request: Request, service: ServiceDep, model: ModelVersionDep, params: PredictParams
) -> Response:
    """Inspects one photograph with a version of a model, given by its number or an alias."""
    return await _respond(request, service, model, params)


async def _respond(
    request: Request, service: InspectionService, model: ServedModel, params: PredictParams
) -> Response:
    asked = PhotographRequest.check(request, service, model, params)
    make_response = make_mask_response if asked.wants_file else make_json_response
    with asked:
        upload = await asked.read_body()
        inferred = await asked.infer(upload, params.query.station)
        return await asked.encode(inferred, partial(make_response, params=params))
