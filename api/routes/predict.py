"""One photograph in, one decision out."""

from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from api.admission import until_disconnected
from api.dependencies import get_service
from api.errors import RequestError, describe_problems
from api.mask_encoding import check_form
from api.middleware.access import note
from api.photograph_pipeline import inspect_photograph
from api.raw_route import BINARY, RawRoute, describe_body
from api.request_params import describe_parameters, read_request_params
from api.responses import make_json_response, make_mask_response
from api.uploads import FIELD, FORM, IMAGES, JSON, RAW, JsonImage, read_upload
from segdec.schemas import Answer

router = APIRouter(prefix="/v1", tags=["predict"], route_class=RawRoute)

BODY: dict[str, Any] = {
    "required": True,
    "description": "One photograph: raw, as a form's file, or in JSON; its kind is judged from the content.",
    "content": {
        **{kind: {"schema": BINARY} for kind in (*IMAGES, *RAW)},
        FORM: {"schema": {"type": "object", "required": [FIELD], "properties": {FIELD: BINARY}}},
        JSON: {"schema": describe_body(JsonImage)},
    },
}
MASK_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer; with `Accept: image/png` the mask itself, label and score in the headers "
        "`X-Segdec-*` (text percent-encoded)",
        "content": {"image/png": {"schema": BINARY}},
    }
}
ROUTE: dict[str, Any] = {
    "response_model": Answer,
    "responses": {**MASK_FILE, **describe_problems(400, 404, 408, 413, 415, 422, 500, 503, 504)},
    "openapi_extra": {"parameters": describe_parameters(), "requestBody": BODY},
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
    service = await get_service(request)
    service.check_state()
    params = read_request_params(request)
    model = service.models.find(name, version)
    wants_file = prefers_png(request.headers.get("accept", ""))
    if wants_file and params.query.mask not in ("png", "scores", "classes"):
        raise RequestError(
            400,
            "bad_parameter",
            f"Accept: image/png with mask={params.query.mask}. Expected mask=png, "
            "mask=scores or mask=classes with it.",
        )
    check_form(params.query.mask, model.config)
    service.queue.check()  # a full service does not read the body first
    with model.usage, service.bodies.hold() as held:
        reading = partial(read_upload, request, service.settings.max_body_bytes, held)
        upload = await service.receive(reading, params.deadline)
        work = inspect_photograph(
            service,
            model,
            upload,
            threshold=params.query.threshold,
            deadline=params.deadline,
            encode=partial(make_mask_response if wants_file else make_json_response, params=params),
        )
        inspected, response = await until_disconnected(request, work)
    identity, prediction = inspected.model, inspected.prediction
    note(
        request,
        model=identity.name,
        version=identity.version,
        label=prediction.label,
        score=round(prediction.score, 6),
    )
    return response


def prefers_png(accept: str) -> bool:
    """Returns whether an `Accept` header asks for the mask alone: it names image/png, and JSON not before."""
    weights = {}
    for part in accept.lower().split(","):
        kind, *parameters = (word.strip() for word in part.split(";"))
        quality = next((word[2:] for word in parameters if word.startswith("q=")), "1")
        weights[kind] = _number(quality)
    png = weights.get("image/png", 0.0)
    return png > 0 and png >= weights.get("application/json", 0.0)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0
