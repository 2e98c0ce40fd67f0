"""One photograph in, one decision out."""

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from api.answers import Answered
from api.dependencies import ImageThreadsDep, ModelDep, SettingsDep
from api.errors import describe_problems
from api.images import FIELD, read_upload
from api.schemas import Answer, PredictParameters

router = APIRouter(prefix="/v1", tags=["predict"])

BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
FORM: dict[str, Any] = {
    "schema": {"type": "object", "required": [FIELD], "properties": {FIELD: BINARY["schema"]}}
}
BODY: dict[str, Any] = {
    "required": True,
    "description": "One photograph, raw or as a form's file; its kind is judged from the content.",
    "content": {"image/*": BINARY, "image/png": BINARY, "image/jpeg": BINARY, "multipart/form-data": FORM},
}


@router.post(
    "/predict",
    response_model=Answer,
    responses=describe_problems(400, 413, 415, 422, 500, 503),
    openapi_extra={"requestBody": BODY},
)
async def predict(
    request: Request,
    parameters: Annotated[PredictParameters, Query()],
    model: ModelDep,
    settings: SettingsDep,
    image_threads: ImageThreadsDep,
) -> Response:
    """Inspects one photograph: label, score, mask and regions."""
    begun = time.perf_counter()
    run = asyncio.get_running_loop().run_in_executor
    upload = await read_upload(request, settings.max_body_bytes)
    with model.inference.place():
        decoding = time.perf_counter()
        photograph = await run(image_threads, upload.decode, settings.max_pixels)
        decode_ms = (time.perf_counter() - decoding) * 1000
        inferred = await model.inference.predict(photograph.pixels, parameters.threshold)
        answered = Answered(
            request.state.request_id, model.identity, parameters, photograph, inferred, begun, decode_ms
        )
        body = await run(image_threads, answered.encode)
    return Response(body, media_type="application/json")
