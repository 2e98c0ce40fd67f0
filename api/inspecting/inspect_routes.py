"""Endpoints that inspect one photograph and record the result."""

import asyncio
import base64
import logging
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from api.errors import RequestError, document_problems
from api.http.body_schemas import inline_schema
from api.http.callers import caller_of
from api.http.mask_encoding import encode_mask_file
from api.http.request_params import IdempotencyKey, InspectParams, InspectQuery, PartFields, merge_part_fields
from api.http.roles import require_role
from api.inspecting.dependencies import DefaultModelDep, NamedModelDep, ServiceDep
from api.inspecting.inspector import InspectedPhotograph, UnlikeTrainingError
from api.inspecting.photograph_request import PhotographRequest
from api.inspecting.predict_routes import MASK_FILE, describe_photograph
from api.inspecting.responses import HEADER_PREFIX, answer_headers, make_answer
from api.inspecting.service import InspectionService
from api.inspecting.shadow.shadow_photograph import ShadowPhotograph
from api.inspecting.uploads import JsonInspection
from api.models.registry import ServedModel
from api.record.inspection import NewInspection, StoredInspection
from api.record.inspection_rows import PartInfo, make_inspection, make_uninspected, restore_answer
from api.record.repeats import mismatch_error
from api.record.sampling import SamplingPolicy
from api.record.schemas import Refusal
from api.record.uninspected_middleware import set_part
from segdec.schemas import Answer, InspectAnswer

logger = logging.getLogger(__name__)

MAX_KEPT, KEPT_INTERVAL_S = 20, 300.0
"""Photographs of a station without a verdict that are kept for review at once, and seconds until one more is:
while a lamp is off, they all look alike.
"""

router = APIRouter(prefix="/v1", tags=["inspect"], dependencies=require_role("predict"))


@dataclass(frozen=True)
class _Inspected:
    """An answer, its mask as a file if requested, and the inspection to record."""

    answer: Answer
    file: bytes | None
    inspection: NewInspection


ROUTE: dict[str, Any] = {
    "response_model": InspectAnswer,
    "responses": {**MASK_FILE, **document_problems(400, 404, 408, 413, 415, 422, 500, 503, 504)},
    "openapi_extra": {
        "requestBody": describe_photograph(JsonInspection, inline_schema(PartFields)["properties"])
    },
}


@router.post("/inspect", **ROUTE)
async def inspect(
    request: Request,
    service: ServiceDep,
    model: DefaultModelDep,
    params: InspectParams,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Inspects one photograph and records it; answers after the record is stored."""
    return await _inspect(request, service, model, params, idempotency_key)


@router.post("/models/{name}/inspect", **ROUTE)
async def inspect_with_model(
    request: Request,
    service: ServiceDep,
    model: NamedModelDep,
    params: InspectParams,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Inspects one photograph with the stable version of a model, and records it."""
    return await _inspect(request, service, model, params, idempotency_key)


async def _inspect(
    request: Request, service: InspectionService, model: ServedModel, params: InspectParams, key: str | None
) -> Response:
    asked = PhotographRequest.check(request, service, model, params)
    recording, shadowing = service.recording, service.shadowing
    await recording.check()
    with asked:
        upload = await asked.read_body(with_part=True)
        subject = _subject(asked, upload.part, key)
        set_part(request.scope, subject.station, subject.part_id)
        encode = partial(_encode, asked=asked, subject=subject, picture=upload.data)
        with shadowing.open_shadow(asked.model, asked.params.query.threshold) as shadow:
            try:
                on_decoded = None if shadow is None else shadow.set_image
                inferred = await asked.infer(upload, subject.station, on_decoded)
            except UnlikeTrainingError as error:
                await _keep_for_review(asked, subject, upload.data, error, shadow)
                raise
            inspected = await asked.encode(inferred, encode)
            kept, warning = await recording.store(inspected.inspection, asked.params.deadline)
            shadowing.enqueue(shadow, inspected.inspection, kept)
    if kept is not None and kept.original is not None:
        if kept.differences:
            raise mismatch_error(kept.differences)
        inspected = await asyncio.to_thread(_repeat, kept.original, asked, inspected)
    return _respond(inspected, kept, warning)


async def _keep_for_review(
    asked: PhotographRequest[InspectQuery],
    subject: PartInfo,
    picture: bytes,
    error: UnlikeTrainingError,
    shadow: ShadowPhotograph | None,
) -> None:
    """Stores a photograph without a verdict for review, unless there are many; a failure is only logged.

    A candidate may inspect it.
    """
    recording, model = asked.service.recording, asked.model
    kept_refusals = asked.request.app.state.kept_refusals
    if recording.record is None or kept_refusals.take_token(subject.station) > 0:
        return
    refusal = Refusal(
        code=error.code,
        detail=str(error),
        model=model.identity,
        image=error.image,
        labels=list(model.config.classes),
    )
    make = partial(make_uninspected, refusal, model.config, picture, subject, error.distances)
    inspection = await asyncio.to_thread(make)
    try:
        kept, _ = await recording.store(inspection, asked.params.deadline)
    except RequestError as failure:
        logger.warning("A photograph without a verdict is not kept for review: %s", failure)
    else:
        asked.service.shadowing.enqueue(shadow, inspection, kept)


def _subject(asked: PhotographRequest[InspectQuery], in_body: PartFields | None, key: str | None) -> PartInfo:
    part = merge_part_fields(asked.params.query, in_body)
    return PartInfo(
        station=part.station,
        part_id=part.part_id,
        details=part.metadata or {},
        client=caller_of(asked.request),
        idempotency_key=key,
    )


def _encode(
    inspected: InspectedPhotograph,
    *,
    asked: PhotographRequest[InspectQuery],
    subject: PartInfo,
    picture: bytes,
) -> _Inspected:
    prediction, query, settings = inspected.prediction, asked.params.query, asked.service.record_settings
    answer = make_answer(inspected, params=asked.params)
    file = encode_mask_file(prediction, query.mask, query.space) if asked.wants_file else None
    draw = SamplingPolicy.from_settings(settings).draw(
        inspected.label,
        asked.model.config.classes[0],
        prediction.score,
        prediction.threshold,
        model_label=prediction.label,
    )
    engine = getattr(asked.model.predictor, "engine_name", "")
    comparison = inspected.inferred.facts.comparison
    inspection = make_inspection(prediction, answer, picture, subject, draw, engine, comparison)
    return _Inspected(answer, file, inspection)


def _repeat(original: Any, asked: PhotographRequest[InspectQuery], inspected: _Inspected) -> _Inspected:
    answer = restore_answer(original, asked.params.query.mask)
    file = None
    if asked.wants_file:
        assert answer.mask is not None
        file = base64.b64decode(str(answer.mask.data))
    return _Inspected(answer, file, inspected.inspection)


def _respond(inspected: _Inspected, kept: StoredInspection | None, warning: str | None) -> Response:
    record_id = None if kept is None else kept.record_id
    repeated = kept is not None and kept.original is not None
    answer = inspected.answer
    if warning is not None:
        answer = answer.model_copy(update={"warnings": [*answer.warnings, warning]})
    if inspected.file is None:
        members = {name: getattr(answer, name) for name in Answer.model_fields}
        body = InspectAnswer.model_construct(**members, record_id=record_id, repeated=repeated)
        return Response(body.model_dump_json(), media_type="application/json")
    headers = answer_headers(answer.decision, answer.model, answer.image, answer.warnings, answer.plan)
    if record_id is not None:
        headers |= {
            f"{HEADER_PREFIX}Record": str(record_id),
            f"{HEADER_PREFIX}Repeated": str(repeated).lower(),
        }
    return Response(inspected.file, headers=headers, media_type="image/png")
