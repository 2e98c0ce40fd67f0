"""One photograph in, one decision out, and a record of it."""

import asyncio
import base64
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from api.errors import describe_problems
from api.mask_encoding import encode_mask_file
from api.middleware.misses import say_part
from api.photograph_pipeline import InspectedPhotograph
from api.photograph_request import PhotographRequest
from api.raw_route import RawRoute, describe_body
from api.records.drawing import DrawPolicy
from api.records.inspection import Inspection, Kept
from api.records.keeping import Subject, check_same, make_inspection, repeat_answer
from api.request_params import (
    DESCRIBED_KEY,
    InspectQuery,
    PartFacts,
    describe_parameters,
    join_part_facts,
    read_key,
)
from api.responses import HEADER, describe_in_headers, make_answer
from api.routes.predict import MASK_FILE, describe_photograph
from api.uploads import JsonInspection
from segdec.schemas import Answer, InspectAnswer

router = APIRouter(prefix="/v1", tags=["inspect"], route_class=RawRoute)


@dataclass(frozen=True)
class _Inspected:
    """An answer with the mask's file, if that is wanted, and what is to be kept."""

    answer: Answer
    file: bytes | None
    inspection: Inspection


ROUTE: dict[str, Any] = {
    "response_model": InspectAnswer,
    "responses": {**MASK_FILE, **describe_problems(400, 404, 408, 413, 415, 422, 500, 503, 504)},
    "openapi_extra": {
        "parameters": [*describe_parameters(InspectQuery), DESCRIBED_KEY],
        "requestBody": describe_photograph(JsonInspection, describe_body(PartFacts)["properties"]),
    },
}


@router.post("/inspect", **ROUTE)
async def inspect(request: Request) -> Response:
    """Inspects one photograph and keeps a record of it; it is answered when that is durable."""
    return await _inspect(request)


@router.post("/models/{name}/inspect", **ROUTE)
async def inspect_with_model(request: Request, name: str) -> Response:
    """Inspects one photograph with the stable version of a model, and keeps a record of it."""
    return await _inspect(request, name)


async def _inspect(request: Request, name: str | None = None) -> Response:
    asked = await PhotographRequest.read(request, InspectQuery, name)
    recording, key = asked.service.recording, read_key(request)
    await recording.check()
    shadowing = asked.service.shadowing
    async with asked.photograph(with_part=True) as upload:
        subject = _subject(asked, upload.part, key)
        say_part(request.scope, subject.station, subject.part_id)
        encode = partial(_encode, asked=asked, subject=subject, picture=upload.data)
        with shadowing.beside(asked.model, asked.params.query.threshold) as shadow:
            _, inspected = await asked.inspect(upload, encode, None if shadow is None else shadow.see)
            kept, warning = await recording.keep(inspected.inspection, asked.params.deadline)
            shadowing.submit(shadow, inspected.inspection, kept)
    if kept is not None and kept.first is not None:
        check_same(kept.first, inspected.inspection)
        inspected = await asyncio.to_thread(_repeat, kept.first, asked, inspected)
    return _respond(inspected, kept, warning)


def _subject(asked: PhotographRequest[InspectQuery], told: PartFacts | None, key: str | None) -> Subject:
    part = join_part_facts(asked.params.query, told)
    return Subject(
        station=part.station,
        part_id=part.part_id,
        details=part.metadata or {},
        client=asked.request.state.key or "",
        idempotency_key=key,
    )


def _encode(
    inspected: InspectedPhotograph,
    *,
    asked: PhotographRequest[InspectQuery],
    subject: Subject,
    picture: bytes,
) -> _Inspected:
    prediction, query, settings = inspected.prediction, asked.params.query, asked.service.settings
    answer = make_answer(inspected, params=asked.params)
    file = encode_mask_file(prediction, query.mask, query.space) if asked.wants_file else None
    draw = DrawPolicy.from_settings(settings).draw(
        prediction.label, asked.model.config.classes[0], prediction.score, prediction.threshold
    )
    engine = getattr(asked.model.predictor, "engine_name", "")
    return _Inspected(answer, file, make_inspection(prediction, answer, picture, subject, draw, engine))


def _repeat(first: Any, asked: PhotographRequest[InspectQuery], inspected: _Inspected) -> _Inspected:
    answer = repeat_answer(first, asked.params.query.mask)
    file = None
    if asked.wants_file:
        assert answer.mask is not None
        file = base64.b64decode(str(answer.mask.data))
    return _Inspected(answer, file, inspected.inspection)


def _respond(inspected: _Inspected, kept: Kept | None, warning: str | None) -> Response:
    record_id = None if kept is None else kept.record_id
    repeated = kept is not None and kept.first is not None
    answer = inspected.answer
    if warning is not None:
        answer = answer.model_copy(update={"warnings": [*answer.warnings, warning]})
    if inspected.file is None:
        members = {name: getattr(answer, name) for name in Answer.model_fields}
        body = InspectAnswer.model_construct(**members, record_id=record_id, repeated=repeated)
        return Response(body.model_dump_json(), media_type="application/json")
    headers = describe_in_headers(answer.decision, answer.model, answer.image, answer.warnings)
    if record_id is not None:
        headers |= {f"{HEADER}Record": str(record_id), f"{HEADER}Repeated": str(repeated).lower()}
    return Response(inspected.file, headers=headers, media_type="image/png")
