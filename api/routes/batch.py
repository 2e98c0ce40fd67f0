"""Several photographs in, an answer or a problem for each out."""

import asyncio
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from api.admission import until_disconnected
from api.dependencies import get_service
from api.errors import REFUSALS, RequestError, describe_error, describe_problems, status_of
from api.mask_encoding import check_form
from api.middleware.access import note, note_photographs
from api.models.registry import ServedModel
from api.photograph_pipeline import Siblings, gather_bounded, inspect_photograph
from api.raw_route import BINARY, RawRoute, describe_body
from api.request_params import PredictQuery, RequestParams, describe_parameters, read_request_params
from api.responses import make_answer
from api.service import Service
from api.uploads import FIELD, FORM, JSON, JsonImages, Upload, read_uploads
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
    responses=describe_problems(400, 404, 408, 413, 415, 500, 503, 504),
    openapi_extra={"parameters": describe_parameters(), "requestBody": BODY},
)
async def predict_batch(request: Request) -> Response:
    """Inspects several photographs; one that cannot be used leaves the others alone."""
    service = await get_service(request)
    service.check_state()
    params = read_request_params(request, PredictQuery)
    model, settings = service.models.find(), service.settings
    check_form(params.query.mask, model.config)
    service.queue.check()
    with model.usage, service.bodies.hold() as held:
        note(request, model=model.identity.name, version=model.identity.version)
        reading = partial(read_uploads, request, settings.max_body_bytes, held, settings.max_batch_files)
        uploads = await service.receive(reading, params.deadline)
        siblings = Siblings()
        works = [partial(_inspect_item, service, model, upload, params, siblings) for upload in uploads]
        note_photographs(request, len(uploads))
        items = await until_disconnected(request, gather_bounded(service, works))
    note_photographs(request, len(items), [item for item in items if item.problem])
    body = await asyncio.to_thread(BatchAnswer(items=items).model_dump_json)
    return Response(body, media_type="application/json")


async def _inspect_item(
    service: Service,
    model: ServedModel,
    upload: Upload,
    params: RequestParams[PredictQuery],
    siblings: Siblings,
) -> BatchItem:
    work = partial(
        inspect_photograph,
        service,
        model,
        upload,
        threshold=params.query.threshold,
        deadline=params.deadline,
        encode=partial(make_answer, params=params),
    )
    try:
        _, answer = await siblings.attempt(work)
    except (RequestError, ImageError) as error:
        if status_of(error) in REFUSALS:
            service.metrics.reject(error.code)
        return BatchItem(name=upload.name, answer=None, problem=describe_error(params.request_id, error))
    return BatchItem(name=upload.name, answer=answer, problem=None)
