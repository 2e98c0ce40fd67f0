"""The Open Inference Protocol v2 with its binary tensor extension, for clients of KServe and Triton."""

import asyncio
import time
from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header
from pydantic import WithJsonSchema
from pydantic.json_schema import SkipJsonSchema
from starlette.requests import Request
from starlette.responses import Response

from api.errors import document_problems
from api.http.admission import cancel_on_disconnect
from api.http.body_schemas import BINARY_SCHEMA, inline_schema
from api.http.deadlines import deadline_timeout
from api.http.middleware.access import add_log_fields, set_photograph_counts
from api.http.request_body import read_body
from api.http.request_params import DeadlineDep
from api.http.roles import require_role
from api.inspecting.dependencies import ModelVersionDep, NamedModelDep, ServiceDep, check_alive
from api.inspecting.inspector import Source
from api.inspecting.protocol_v2.inference_request import INPUTS, InferenceRequest, parse_inference_request
from api.inspecting.protocol_v2.input_tensors import HEADER_LENGTH
from api.inspecting.protocol_v2.outputs import (
    PhotographOutputs,
    describe_outputs,
    encode_answer,
    make_outputs,
)
from api.inspecting.protocol_v2.schemas import (
    IndexEntry,
    InferAnswer,
    InferRequest,
    ModelMetadata,
    ModelParameters,
    ModelReady,
    ServerLive,
    ServerMetadata,
    ServerReady,
)
from api.inspecting.service import InspectionService
from api.models.registry import ServedModel
from segdec import __version__
from segdec.errors import ImageError

TAGS: list[str | Enum] = ["Open Inference Protocol v2"]
public_router = APIRouter(prefix="/v2", tags=TAGS, dependencies=require_role("anyone"))
router = APIRouter(prefix="/v2", tags=TAGS, dependencies=require_role("predict"))

HEADER: dict[str, Any] = {"schema": {"type": "integer"}, "description": "bytes of the JSON part"}
HeaderLength = Annotated[
    Annotated[str, WithJsonSchema(HEADER["schema"])] | SkipJsonSchema[None],
    Header(alias=HEADER_LENGTH, description=HEADER["description"]),
]
INFER: dict[str, Any] = {
    "response_model": InferAnswer,
    "responses": {
        200: {
            "description": "The outputs; those requested with binary_data follow the JSON part",
            "content": {"application/octet-stream": {"schema": BINARY_SCHEMA}},
            "headers": {HEADER_LENGTH: HEADER},
        },
        **document_problems(400, 404, 408, 413, 415, 422, 500, 503, 504),
    },
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "description": "JSON, followed by the binary inputs, if there are any. Then the header "
            f"{HEADER_LENGTH} has the length of the JSON part. Photographs in JSON are base64.",
            "content": {
                "application/json": {"schema": inline_schema(InferRequest)},
                "application/octet-stream": {"schema": BINARY_SCHEMA},
            },
        }
    },
}
METADATA: dict[str, Any] = {"responses": document_problems(404, 503), "response_model_exclude_none": True}


# === Health and metadata ===


@public_router.get("", responses=document_problems())
async def describe_server() -> ServerMetadata:
    """Returns the name of the server, its version and its extensions."""
    return ServerMetadata(name="segdec", version=__version__, extensions=["binary_tensor_data"])


@public_router.get("/health/live", responses=document_problems(503))
async def live(request: Request) -> ServerLive:
    """The process answers; 503 if one of its threads has been hanging so long that the process must be
    restarted.
    """
    check_alive(request)
    return ServerLive(live=True)


@public_router.get("/health/ready", responses=document_problems(503))
async def ready(service: ServiceDep) -> ServerReady:
    """The models are loaded and warm; 503 before that, while a thread hangs, and during shutdown."""
    service.check_ready()
    return ServerReady(ready=True)


@router.get("/models/{name}", **METADATA)
async def describe_model(service: ServiceDep, model: NamedModelDep) -> ModelMetadata:
    """Returns the inputs and outputs of the stable version of a model."""
    return _describe(service, model)


@router.get("/models/{name}/versions/{version}", **METADATA)
async def describe_version(service: ServiceDep, model: ModelVersionDep) -> ModelMetadata:
    """Returns the inputs and outputs of a version, given by its number or an alias."""
    return _describe(service, model)


@router.get("/models/{name}/ready", responses=document_problems(404, 503))
async def model_ready(model: NamedModelDep) -> ModelReady:
    """Returns whether a model answers requests; 404 if it is not served."""
    return ModelReady(name=model.identity.name, ready=True)


@router.get("/models/{name}/versions/{version}/ready", responses=document_problems(404, 503))
async def version_ready(model: ModelVersionDep) -> ModelReady:
    """Returns whether a version, given by its number or an alias, answers requests; 404 if not served."""
    return ModelReady(name=model.identity.name, ready=True)


@router.post("/repository/index", responses=document_problems(503))
async def index(service: ServiceDep) -> list[IndexEntry]:
    """Lists every served version of every model, in the form of Triton's repository index."""
    service.check_state()
    identities = [model.identity for model in service.models.all()]
    return [IndexEntry(name=i.name, version=i.version, state="READY", reason="") for i in identities]


def _describe(service: InspectionService, model: ServedModel) -> ModelMetadata:
    name, config = model.identity.name, model.config
    return ModelMetadata(
        name=name,
        versions=list(service.models.versions(name)),
        platform="segdec_artifact",
        inputs=INPUTS,
        outputs=describe_outputs(config),
        parameters=ModelParameters(
            version=model.identity.version,
            aliases=list(model.aliases),
            classes=list(config.classes),
            threshold=config.thresholds.score,
            review_threshold=config.thresholds.review,
        ),
    )


# === Inference ===


@router.post("/models/{name}/infer", **INFER)
async def infer(
    request: Request,
    service: ServiceDep,
    model: NamedModelDep,
    deadline: DeadlineDep,
    header_length: HeaderLength = None,
) -> Response:
    """Inspects one or several photographs with the stable version of a model."""
    return await _respond(request, service, model, deadline, header_length)


@router.post("/models/{name}/versions/{version}/infer", **INFER)
async def infer_with_version(
    request: Request,
    service: ServiceDep,
    model: ModelVersionDep,
    deadline: DeadlineDep,
    header_length: HeaderLength = None,
) -> Response:
    """Inspects one or several photographs with a version, given by its number or an alias."""
    return await _respond(request, service, model, deadline, header_length)


async def _respond(
    request: Request,
    service: InspectionService,
    model: ServedModel,
    deadline: float,
    header_length: str | None,
) -> Response:
    started = time.perf_counter()
    service.queue.check()  # a full service does not read the body first
    settings = service.settings
    with model.usage, service.bodies.reserve() as reservation:
        add_log_fields(request, model=model.identity.name, version=model.identity.version)
        reading = partial(read_body, request, settings.max_body_bytes)
        body = await service.bodies.receive(request, reading, reservation, deadline)
        async with deadline_timeout(deadline):
            parse = partial(parse_inference_request, body, header_length, settings, model.config)
            asked = await asyncio.to_thread(parse)
        set_photograph_counts(request, len(asked.sources))
        if asked.timeout_us:
            deadline = min(deadline, started + asked.timeout_us / 1e6)
        outputs = await cancel_on_disconnect(request, _inspect_all(service, model, asked, deadline))
    content, headers = await asyncio.to_thread(
        encode_answer, asked.id, model.identity, asked.outputs, outputs
    )
    return Response(content, headers=headers)


async def _inspect_all(
    service: InspectionService, model: ServedModel, asked: InferenceRequest, deadline: float
) -> Sequence[PhotographOutputs]:
    """Inspects the photographs; returns the outputs in the same order. The first failure ends the request."""
    group = service.inspector.open_group()
    make = partial(make_outputs, names=asked.outputs)

    async def inspect(source: Source) -> PhotographOutputs:
        with service.inspector.open(model, deadline) as inspection:
            inferred = await inspection.infer(source, threshold=asked.threshold)
            _, outputs = await inspection.encode(inferred, make)
        return outputs

    async def inspect_one(index: int, source: Source) -> PhotographOutputs:
        try:
            return await group.run_when_memory_is_free(partial(inspect, source))
        except ImageError as error:
            raise ImageError(f"{asked.input}[{index}]: {error}", code=error.code) from error

    return await group.gather(partial(inspect_one, *item) for item in enumerate(asked.sources))
