"""Endpoints for several photographs in one request; each gets an answer or a problem."""

import asyncio
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from api.errors import RETRYABLE_STATUSES, RequestError, document_problems, make_problem, status_of, values_of
from api.http.admission import cancel_on_disconnect
from api.http.body_schemas import BINARY_SCHEMA, inline_schema
from api.http.mask_encoding import check_mask_form
from api.http.middleware.access import add_log_fields, set_photograph_counts
from api.http.request_body import FORM_TYPE, JSON_TYPE
from api.http.request_params import PredictParams
from api.http.roles import require_role
from api.inspecting.dependencies import DefaultModelDep, ServiceDep
from api.inspecting.request_group import RequestGroup
from api.inspecting.responses import make_answer
from api.inspecting.service import InspectionService
from api.inspecting.uploads import FORM_FIELD, JsonImages, Upload, read_uploads
from api.models.registry import ServedModel
from segdec.errors import ImageError
from segdec.schemas import Answer, BatchAnswer, BatchItem

router = APIRouter(prefix="/v1", tags=["predict"], dependencies=require_role("predict"))

FILES: dict[str, Any] = {"type": "array", "items": BINARY_SCHEMA, "minItems": 1}
BODY: dict[str, Any] = {
    "required": True,
    "description": f"Several photographs: files in repeated form fields `{FORM_FIELD}`, or JSON.",
    "content": {
        FORM_TYPE: {
            "schema": {"type": "object", "required": [FORM_FIELD], "properties": {FORM_FIELD: FILES}}
        },
        JSON_TYPE: {"schema": inline_schema(JsonImages)},
    },
}


@router.post(
    "/predict/batch",
    response_model=BatchAnswer,
    responses=document_problems(400, 404, 408, 413, 415, 500, 503, 504),
    openapi_extra={"requestBody": BODY},
)
async def predict_batch(
    request: Request, service: ServiceDep, model: DefaultModelDep, params: PredictParams
) -> Response:
    """Inspects several photographs; an invalid one does not affect the others."""
    settings = service.settings
    check_mask_form(params.query.mask, model.config)
    service.queue.check()
    with model.usage, service.bodies.reserve() as reservation:
        add_log_fields(request, model=model.identity.name, version=model.identity.version)
        reading = partial(read_uploads, request, settings.max_body_bytes, max_files=settings.max_batch_files)
        uploads = await service.bodies.receive(request, reading, reservation, params.deadline)
        group = service.inspector.open_group()
        works = [partial(_inspect_item, service, model, upload, params, group) for upload in uploads]
        set_photograph_counts(request, len(uploads))
        items = await cancel_on_disconnect(request, group.gather(works))
    refused = [(item.name, item.problem) for item in items if item.problem]
    set_photograph_counts(request, len(items), refused)
    body = await asyncio.to_thread(BatchAnswer(items=items).model_dump_json)
    return Response(body, media_type="application/json")


async def _inspect_item(
    service: InspectionService, model: ServedModel, upload: Upload, params: PredictParams, group: RequestGroup
) -> BatchItem:
    async def inspect() -> Answer:
        with service.inspector.open(model, params.deadline) as inspection:
            inferred = await inspection.infer(
                upload, threshold=params.query.threshold, station=params.query.station
            )
            make = partial(make_answer, params=params)
            _, answer = await inspection.encode(inferred, make)
        return answer

    try:
        answer = await group.run_when_memory_is_free(inspect)
    except (RequestError, ImageError) as error:
        if status_of(error) in RETRYABLE_STATUSES:
            service.metrics.count_rejection(error.code)
        return BatchItem(
            name=upload.name,
            answer=None,
            problem=make_problem(
                params.request_id, status_of(error), error.code, str(error), values_of(error)
            ),
        )
    return BatchItem(name=upload.name, answer=answer, problem=None)
