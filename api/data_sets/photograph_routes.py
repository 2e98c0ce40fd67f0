"""Photographs of a data set: sent, listed, removed. Served if the service records."""

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import AfterValidator, Field
from starlette.requests import Request
from starlette.responses import Response

from api.data_sets import photographs
from api.data_sets.data_set_params import (
    BODY_PROBLEMS,
    CHANGE,
    PROBLEMS,
    READ,
    AfterId,
    DataSetId,
    DataSetsDep,
    DataSetSettingsDep,
    PhotographId,
    describe_file,
)
from api.data_sets.data_set_store import DataSetStore
from api.data_sets.definitions import find_data_set
from api.data_sets.photographs import (
    LABEL_DESCRIPTION,
    MAX_NAME,
    STATE_DESCRIPTION,
    NewPhotograph,
    PhotographFilters,
)
from api.data_sets.received_photographs import (
    check_photograph,
    find_thumbnail,
    make_thumbnail,
    set_thumbnail,
    use_pixels,
)
from api.data_sets.schemas import AddedPhotographAnswer, PhotographPage, StoredPhotograph
from api.errors import RequestError, document_problems
from api.http.body_receiver import BodiesDep
from api.http.caching import IMMUTABLE, PNG
from api.http.callers import author_of
from api.http.components import component
from api.http.number_text import WHOLE_NUMBER
from api.http.request_params import DeadlineDep, Name
from api.inference.memory_budget import MemoryBudget
from api.inspecting.predict_routes import describe_photograph
from api.inspecting.uploads import JsonImage, Upload, read_upload
from segdec.data_set_schemas import Split
from segdec.images import encode_png
from segdec.runtime.identifiers import SCHEMA_PATTERN, check_identifier

MemoryDep = Annotated[MemoryBudget, component(MemoryBudget)]

router = APIRouter(prefix="/v1/data-sets/{data_set_id}/photographs", tags=["data sets"])
MAX_PAGE_SIZE = 500
PhotographName = Annotated[
    str,
    Field(max_length=MAX_NAME, json_schema_extra={"pattern": SCHEMA_PATTERN}),
    AfterValidator(check_identifier),
]


@router.post(
    "",
    status_code=201,
    response_model=AddedPhotographAnswer,
    responses={
        200: {"model": AddedPhotographAnswer, "description": "it was there already, or had been removed"},
        **BODY_PROBLEMS,
        **document_problems(422, 507),
    },
    openapi_extra={"requestBody": describe_photograph(JsonImage, {})},
    dependencies=CHANGE,
)
async def add_photograph(
    request: Request,
    bodies: BodiesDep,
    settings: DataSetSettingsDep,
    memory: MemoryDep,
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
    deadline: DeadlineDep,
    name: Annotated[
        PhotographName, Query(description="default: from its content; a number is added to one that is taken")
    ] = "",
    part: Annotated[Name, Query(description="photographs of one part stay in one split")] = "",
    split: Annotated[
        Split | None,
        Query(description="the published split that it comes with; one that is there gets it if it has none"),
    ] = None,
) -> Response:
    """Adds a photograph, which is stored as it was sent; sending it again adds at most a split."""
    await data_sets.read(find_data_set, data_set_id)
    with bodies.reserve() as reservation:
        reading = partial(read_upload, request, settings.max_body_bytes)
        upload: Upload = await bodies.receive(request, reading, reservation, deadline)
        received = await data_sets.decode(partial(check_photograph, upload, settings, memory))
        await data_sets.check_space(data_set_id, [received.file], "photograph")
        new, now = NewPhotograph(received.file, name, part, split=split), datetime.now(UTC)
        added = await data_sets.write(
            photographs.add_photograph, data_set_id, new, author_of(request), now, files=[received.file]
        )
    shown = await data_sets.read(photographs.show_photograph, data_set_id, added.id, now)
    answer = AddedPhotographAnswer(outcome=added.outcome, photograph=shown, warnings=list(received.warnings))
    status = 201 if added.outcome == "added" else 200
    return Response(answer.model_dump_json(), status, media_type="application/json")


@router.get("", responses=PROBLEMS, dependencies=READ)
async def list_photographs(
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
    state: Annotated[
        photographs.State | None,
        Query(description=f"without it, removed photographs are left out; {STATE_DESCRIPTION}"),
    ] = None,
    label: Annotated[Name | None, Query(description=LABEL_DESCRIPTION)] = None,
    search: Annotated[PhotographName | None, Query(description="a part of the name or of the part")] = None,
    after: AfterId = 0,
    limit: Annotated[int, WHOLE_NUMBER, Query(gt=0, le=MAX_PAGE_SIZE)] = 100,
) -> PhotographPage:
    """Photographs in the order in which they were added; pass `next_after` to get the next page."""
    filters = PhotographFilters(state, label, search)
    now = datetime.now(UTC)
    return await data_sets.read(photographs.list_photographs, data_set_id, filters, after, limit, now)


@router.get("/{photograph_id}", responses=PROBLEMS, dependencies=READ)
async def show_photograph(
    data_sets: DataSetsDep, data_set_id: DataSetId, photograph_id: PhotographId
) -> StoredPhotograph:
    """One photograph with its latest annotation."""
    now = datetime.now(UTC)
    return await data_sets.read(photographs.show_photograph, data_set_id, photograph_id, now)


@router.delete("/{photograph_id}", responses=PROBLEMS, dependencies=CHANGE)
async def remove_photograph(
    request: Request, data_sets: DataSetsDep, data_set_id: DataSetId, photograph_id: PhotographId
) -> StoredPhotograph:
    """Removes a photograph from the data set; versions that contain it do not change."""
    who, now = author_of(request), datetime.now(UTC)
    await data_sets.write(photographs.remove_photograph, data_set_id, photograph_id, who, now)
    return await data_sets.read(photographs.show_photograph, data_set_id, photograph_id, now)


@router.get("/{photograph_id}/image", **describe_file("image/*"), dependencies=READ)
async def show_image(
    memory: MemoryDep,
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
    photograph_id: PhotographId,
    form: Annotated[
        Literal["sent", "png", "thumbnail"],
        Query(description="as sent; upright with 8 bits; or a JPEG of at most 320 px"),
    ] = "sent",
) -> Response:
    """The photograph."""
    row = await data_sets.read(photographs.find_photograph, data_set_id, photograph_id)
    sha256 = bytes(row["sha256"])
    if form == "thumbnail":
        return Response(
            await _thumbnail(data_sets, memory, sha256), headers=IMMUTABLE, media_type="image/jpeg"
        )
    data = await data_sets.read_file(sha256)
    if form == "sent":
        return Response(data, headers=IMMUTABLE, media_type=f"image/{row['format']}")
    picture = await data_sets.decode(lambda: use_pixels(data, memory, encode_png))
    return Response(picture, headers=IMMUTABLE, media_type=PNG)


async def _thumbnail(data_sets: DataSetStore, memory: MemoryBudget, sha256: bytes) -> bytes:
    """Returns the thumbnail of a photograph; makes and stores it if there is none."""
    known = await data_sets.read(find_thumbnail, sha256)
    if known is not None:
        return known
    data = await data_sets.read_file(sha256)
    made = await data_sets.decode(lambda: use_pixels(data, memory, make_thumbnail))
    with suppress(RequestError):  # a full disk: it is made again
        await data_sets.write(set_thumbnail, sha256, made)
    return made
