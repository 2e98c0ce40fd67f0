"""Data sets: created, listed, changed. Served if the service records."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from sqlalchemy import Connection
from starlette.requests import Request

from api.data_sets import definitions, deletion, recorded_parts
from api.data_sets.data_set_params import (
    BODY_PROBLEMS,
    CHANGE,
    PROBLEMS,
    READ,
    DataSetId,
    DataSetsDep,
    UnansweredDep,
)
from api.data_sets.photographs import find_missing
from api.data_sets.schemas import AddedParts, DataSet, DataSetList
from api.errors import document_problems
from api.http.callers import author_of
from api.http.json_body import json_body
from api.http.number_text import MAX_ID, WHOLE_NUMBER
from api.http.request_params import RequiredName
from api.http.sent_model import SentModel
from api.record.record_params import FiltersDep, RecordDep
from segdec.data_set_schemas import MissingPhotographs

router = APIRouter(prefix="/v1/data-sets", tags=["data sets"])

MAX_DIGESTS = 1000
MISSING_BYTES = 128 * 1024
"""Largest body that names digests."""
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
RecordedId = Annotated[int, WHOLE_NUMBER, Field(gt=0, le=MAX_ID)]
Classes = Annotated[list[RequiredName], Field(max_length=200)]


class NewDataSet(SentModel):
    """A data set to create."""

    name: RequiredName
    classes: Classes = Field([], description="of defects, in the order of their mask values 1, 2, …")


class DataSetChange(SentModel):
    """What to change of a data set."""

    name: RequiredName | None = Field(None, description="null: not changed")
    add_classes: Classes = Field([], description="are added at the end; a class is never removed")
    unclear_are_defects: bool = Field(
        False, description="whether added names that may mean a good part, such as `no burr`, are defects"
    )


class KnownDigests(SentModel):
    """Photographs that a client could send."""

    sha256: list[Digest] = Field(max_length=MAX_DIGESTS, description="of each file, hexadecimal")


@router.get("", responses=document_problems(503), dependencies=READ)
async def list_data_sets(data_sets: DataSetsDep) -> DataSetList:
    """All data sets, by name."""
    return await data_sets.read(definitions.list_data_sets)


@router.post("", status_code=201, responses=BODY_PROBLEMS, dependencies=CHANGE)
async def create_data_set(
    sent: Annotated[NewDataSet, json_body(NewDataSet)], request: Request, data_sets: DataSetsDep
) -> DataSet:
    """Creates an empty data set."""
    who, now = author_of(request), datetime.now(UTC)
    number = await data_sets.write(definitions.create_data_set, sent.name, sent.classes, who, now)
    return await data_sets.read(definitions.show_data_set, number)


@router.get("/{data_set_id}", responses=PROBLEMS, dependencies=READ)
async def show_data_set(data_sets: DataSetsDep, data_set_id: DataSetId) -> DataSet:
    """One data set with the numbers of its photographs."""
    return await data_sets.read(definitions.show_data_set, data_set_id)


@router.patch("/{data_set_id}", responses=BODY_PROBLEMS, dependencies=CHANGE)
async def change_data_set(
    sent: Annotated[DataSetChange, json_body(DataSetChange)],
    request: Request,
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
) -> DataSet:
    """Renames a data set, or adds classes."""
    await data_sets.write(
        definitions.change_data_set,
        data_set_id,
        sent.name,
        sent.add_classes,
        sent.unclear_are_defects,
        author_of(request),
    )
    return await data_sets.read(definitions.show_data_set, data_set_id)


@router.delete(
    "/{data_set_id}", status_code=204, responses=document_problems(400, 404, 409, 503), dependencies=CHANGE
)
async def delete_data_set(
    request: Request,
    data_sets: DataSetsDep,
    unanswered: UnansweredDep,
    data_set_id: DataSetId,
    name: Annotated[RequiredName, Query(description="of the data set, to confirm what is deleted")],
) -> None:
    """Deletes a data set with its photographs, annotations and versions; not while trainings name it."""
    who, now = author_of(request), datetime.now(UTC)

    def delete(connection: Connection) -> None:
        data_sets.check_unused(connection, data_set_id)
        deletion.delete_data_set(connection, data_set_id, name, who, now)

    await data_sets.write(delete)
    await asyncio.to_thread(unanswered.delete_data_set, data_set_id)
    await data_sets.delete_unused()


@router.post("/{data_set_id}/missing", responses=BODY_PROBLEMS, dependencies=READ)
async def list_missing(
    sent: Annotated[KnownDigests, json_body(KnownDigests, MISSING_BYTES)],
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
) -> MissingPhotographs:
    """Which photographs the data set does not have, so that an interrupted transfer continues."""
    digests = [bytes.fromhex(digest) for digest in dict.fromkeys(sent.sha256)]
    return await data_sets.read(find_missing, data_set_id, digests)


@router.post("/{data_set_id}/parts", responses=document_problems(400, 404, 503, 507), dependencies=CHANGE)
async def add_parts(
    request: Request,
    record: RecordDep,
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
    filters: FiltersDep,
    record_id: Annotated[
        list[RecordedId],
        Query(max_length=recorded_parts.MAX_PARTS, description="these inspections instead of a search"),
    ] = [],  # noqa: B006  # FastAPI copies it
    before: Annotated[
        int | None, WHOLE_NUMBER, Query(gt=0, le=MAX_ID, description="`next_before` of the last request")
    ] = None,
) -> AddedParts:
    """Adds photographs of the record that a search finds, with their reviews as annotations.

    A request adds the newest 200 or 64 MiB of them; repeat it with `next_before` for the others.
    """
    await data_sets.read(definitions.find_data_set, data_set_id)
    page = await record.read_all(
        lambda engine: recorded_parts.find_parts(engine, record.pictures, filters, record_id, before)
    )
    await data_sets.check_space(data_set_id, [part.file for part in page.parts], "photographs")
    who, now = author_of(request), datetime.now(UTC)
    classes = await data_sets.write(recorded_parts.add_reviewed_classes, data_set_id, page.parts, who)
    masks = await data_sets.decode(lambda: recorded_parts.make_masks(page.parts, classes))
    files = [*(part.file for part in page.parts), *masks.values()]
    return await data_sets.write(recorded_parts.add_parts, data_set_id, page, masks, who, now, files=files)
