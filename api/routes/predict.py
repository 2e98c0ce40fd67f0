"""One photograph in, one decision out."""

from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from api.disconnect import until_disconnected
from api.errors import RequestError, describe_problems
from api.images import FIELD, FORM, IMAGES, JSON, RAW, JsonImage, read_upload
from api.inspection import Inspected, inspect
from api.json_schema import BINARY, describe_body
from api.middleware.access import note
from api.raw_route import RawRoute
from api.request_params import describe_parameters, read_question
from api.responses import make_answer, make_mask_file
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
    return await answer(request)


@router.post("/models/{name}/predict", **ROUTE)
async def predict_with_model(request: Request, name: str) -> Response:
    """Inspects one photograph with the stable version of a model."""
    return await answer(request, name)


@router.post("/models/{name}/versions/{version}/predict", **ROUTE)
async def predict_with_version(request: Request, name: str, version: str) -> Response:
    """Inspects one photograph with a version of a model, or with the one that a label names."""
    return await answer(request, name, version)


async def answer(request: Request, name: str | None = None, version: str | None = None) -> Response:
    """Reads the photograph, inspects it and answers in the form that the client accepts."""
    question = await read_question(request)
    service, parameters = question.service, question.parameters
    model = service.models.find(name, version)
    wants_file = prefers_png(request.headers.get("accept", ""))
    if wants_file and parameters.mask not in ("png", "scores"):
        raise RequestError(
            400,
            "bad_parameter",
            f"Accept: image/png with mask={parameters.mask}. Expected mask=png or mask=scores with it.",
        )
    service.queue.check()  # a full service does not read the body first

    def render(inspected: Inspected) -> Response:
        identity, prediction = inspected.model, inspected.prediction
        note(
            request,
            model=identity.name,
            version=identity.version,
            label=prediction.label,
            score=round(prediction.score, 6),
        )
        if wants_file:
            file = make_mask_file(inspected, parameters)
            return Response(file.content, headers=file.headers, media_type="image/png")
        made = make_answer(inspected, request.state.request_id, parameters, question.begun)
        return Response(made.model_dump_json(), media_type="application/json")

    with model.in_use():
        upload = await service.receive(partial(read_upload, request, service.settings.max_body_bytes))
        work = inspect(service, model, upload, parameters.threshold, render, deadline=question.deadline)
        return await until_disconnected(request, work)


def prefers_png(accept: str) -> bool:
    """Whether an `Accept` header asks for the mask as a picture: it names image/png, and JSON not before."""
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
