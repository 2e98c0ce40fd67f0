"""Several photographs in, an answer or a problem for each out."""

import asyncio
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from api.disconnect import until_disconnected
from api.errors import REFUSALS, RequestError, describe_error, describe_problems, status_of
from api.images import FIELD, FORM, JSON, JsonImages, Upload, read_uploads
from api.inspection import gather_some, inspect
from api.json_schema import BINARY, describe_body
from api.middleware.access import note
from api.models.registry import ServedModel
from api.raw_route import RawRoute
from api.request_params import Question, describe_parameters, read_question
from api.responses import make_answer
from segdec.errors import ImageError
from segdec.schemas import BatchAnswer, BatchItem

router = APIRouter(prefix="/v1", tags=["predict"], route_class=RawRoute)

FILES: dict[str, Any] = {"type": "array", "items": BINARY, "minItems": 1}
BODY: dict[str, Any] = {
    "required": True,
    "description": f"Several photographs: files in the form's field `{FIELD}`, repeated, or JSON.",
    "content": {
        FORM: {"schema": {"type": "object", "required": [FIELD], "properties": {FIELD: FILES}}},
        JSON: {"schema": describe_body(JsonImages)},
    },
}


@router.post(
    "/predict/batch",
    response_model=BatchAnswer,
    responses=describe_problems(400, 404, 408, 413, 415, 500, 503),
    openapi_extra={"parameters": describe_parameters(), "requestBody": BODY},
)
async def predict_batch(request: Request) -> Response:
    """Inspects several photographs; one that cannot be used leaves the others alone."""
    question = await read_question(request)
    service = question.service
    model, settings = service.models.find(), service.settings
    service.queue.check()
    reading = partial(read_uploads, request, settings.max_body_bytes, settings.max_batch_files)
    with model.in_use():
        note(request, model=model.identity.name, version=model.identity.version)
        uploads = await service.receive(reading)
        works = [partial(_inspect_item, question, model, upload) for upload in uploads]
        items = await until_disconnected(request, gather_some(service, works))
    body = await asyncio.to_thread(BatchAnswer(items=items).model_dump_json)
    return Response(body, media_type="application/json")


async def _inspect_item(question: Question, model: ServedModel, upload: Upload) -> BatchItem:
    request_id, parameters = question.request.state.request_id, question.parameters
    render = partial(make_answer, request_id=request_id, parameters=parameters, begun=question.begun)
    try:
        work = inspect(
            question.service, model, upload, parameters.threshold, render, deadline=question.deadline
        )
        return BatchItem(name=upload.name, answer=await work, problem=None)
    except (RequestError, ImageError) as error:
        if status_of(error) in REFUSALS:
            question.service.metrics.reject(error.code)
        return BatchItem(name=upload.name, answer=None, problem=describe_error(request_id, error))
