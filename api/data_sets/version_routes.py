"""Versions of data sets: made, listed, compared, fetched. Served if the service records."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from api.data_sets import versions
from api.data_sets.data_set_params import (
    BODY_PROBLEMS,
    CHANGE,
    PROBLEMS,
    READ,
    DataSetId,
    DataSetsDep,
    VersionNumber,
    describe_file,
)
from api.data_sets.data_set_store import DataSetStore
from api.data_sets.schemas import Version, VersionComparison, VersionList
from api.data_sets.version_comparison import compare_versions
from api.data_sets.version_export import VersionFormat, export_version
from api.http.caching import IMMUTABLE
from api.http.callers import author_of
from api.http.export_limit import take_export_slot
from api.http.json_body import json_body
from api.http.number_text import WHOLE_NUMBER
from api.http.request_params import Name
from api.http.sent_model import SentModel

router = APIRouter(prefix="/v1/data-sets/{data_set_id}/versions", tags=["data sets"])
JSON_LINES, ZIP = "application/jsonl", "application/zip"
QueriedVersion = Annotated[int, WHOLE_NUMBER, Query(gt=0, le=2**31 - 1)]


class NewVersion(SentModel):
    """A version to make."""

    note: Name = Field("", description="what changed, or what it is for")


@router.get("", responses=PROBLEMS, dependencies=READ)
async def list_versions(data_sets: DataSetsDep, data_set_id: DataSetId) -> VersionList:
    """The newest 1000 versions of a data set, the newest first."""
    return await data_sets.read(versions.list_versions, data_set_id)


@router.post("", status_code=201, responses=BODY_PROBLEMS, dependencies=CHANGE)
async def create_version(
    sent: Annotated[NewVersion, json_body(NewVersion)],
    request: Request,
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
) -> Version:
    """Makes a version of the labelled photographs; the latest one is answered if its content is equal."""
    snapshot = await data_sets.read(versions.take_snapshot, data_set_id)
    who, now, files = author_of(request), datetime.now(UTC), [snapshot.manifest]
    number = await data_sets.write(
        versions.create_version, data_set_id, snapshot, sent.note, who, now, files=files
    )
    return await data_sets.read(versions.show_version, data_set_id, number)


@router.get("/compare", responses=PROBLEMS, dependencies=READ)
async def compare(
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
    first: Annotated[QueriedVersion, Query(alias="from")],
    second: Annotated[QueriedVersion, Query(alias="to")],
) -> VersionComparison:
    """In what two versions differ."""
    manifests = [(number, await _read_manifest(data_sets, data_set_id, number)) for number in (first, second)]
    return await data_sets.decode(lambda: compare_versions(*manifests))


@router.get("/{number}", responses=PROBLEMS, dependencies=READ)
async def show_version(data_sets: DataSetsDep, data_set_id: DataSetId, number: VersionNumber) -> Version:
    """One version."""
    return await data_sets.read(versions.show_version, data_set_id, number)


@router.get("/{number}/manifest", **describe_file(JSON_LINES), dependencies=READ)
async def show_manifest(data_sets: DataSetsDep, data_set_id: DataSetId, number: VersionNumber) -> Response:
    """The photographs of a version as JSON lines, with label, name, group and the files by their SHA-256."""
    content = await _read_manifest(data_sets, data_set_id, number)
    return Response(content, headers=IMMUTABLE, media_type=JSON_LINES)


@router.get("/{number}/files/{sha256}", **describe_file("image/*"), dependencies=READ)
async def show_file(
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
    number: VersionNumber,
    sha256: Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="of the manifest")],
) -> Response:
    """A photograph or a mask of a version."""
    await data_sets.read(versions.find_version, data_set_id, number)
    row = await data_sets.read(versions.find_file, data_set_id, bytes.fromhex(sha256))
    content = await data_sets.read_file(bytes.fromhex(sha256))
    headers = {**IMMUTABLE, "ETag": f'"{sha256}"'}
    return Response(content, headers=headers, media_type=f"image/{row['format']}")


@router.get("/{number}/export", dependencies=[*READ, Depends(take_export_slot)], **describe_file(ZIP))
async def export(
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
    number: VersionNumber,
    file_format: Annotated[
        VersionFormat, Query(alias="format", description="a folder for `python -m training`, or COCO")
    ] = "folder",
) -> StreamingResponse:
    """A version with its photographs as a ZIP file."""
    version = await data_sets.read(versions.find_exported, data_set_id, number)
    pieces = await data_sets.stream(lambda _engine, pictures: export_version(version, file_format, pictures))
    name = f"data-set-{data_set_id}-version-{number}-{file_format}.zip"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(pieces, headers=headers, media_type=ZIP)


async def _read_manifest(data_sets: DataSetStore, data_set_id: int, number: int) -> bytes:
    row = await data_sets.read(versions.find_version, data_set_id, number)
    return await data_sets.read_file(bytes(row["digest"]))
