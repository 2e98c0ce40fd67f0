"""Archives of photographs that are added to data sets. Served if the service records."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request

from api.data_sets import imports
from api.data_sets.archive_import import ARCHIVE, DISK_SPACE_FACTOR, UNPACKED, ArchiveImport, ArchiveOptions
from api.data_sets.data_set_params import (
    BODY_PROBLEMS,
    CHANGE,
    PROBLEMS,
    READ,
    DataSetId,
    DataSetsDep,
    DataSetSettingsDep,
    ImportId,
    JobsDep,
    UnansweredDep,
)
from api.data_sets.definitions import find_data_set
from api.data_sets.free_space import FreeSpace, no_space
from api.data_sets.import_program import ProgramLimits
from api.data_sets.job_schemas import DataSetImport, ImportAnswers, ImportList
from api.data_sets.settings import DataSetSettings
from api.data_sets.unanswered_archives import UnansweredArchives
from api.errors import RequestError, document_problems
from api.http.body_receiver import CLOSE_CONNECTION
from api.http.body_schemas import BINARY_SCHEMA
from api.http.callers import author_of
from api.http.json_body import json_body
from api.http.request_body import MAX_LENGTH_DIGITS, media_type, refuse_compressed
from api.http.request_params import Name

router = APIRouter(prefix="/v1/data-sets/{data_set_id}", tags=["data sets"])
ARCHIVE_TYPES = ("application/zip", "application/x-zip-compressed", "application/octet-stream")
MAX_SILENCE_S = 60.0
"""Longest time without a byte of the archive."""
BUFFER_BYTES = 2**20
BODY = {
    "requestBody": {"required": True, "content": {kind: {"schema": BINARY_SCHEMA} for kind in ARCHIVE_TYPES}}
}


@router.post(
    "/archives",
    status_code=202,
    responses=document_problems(400, 404, 408, 413, 415, 503, 507),
    openapi_extra=BODY,
    dependencies=CHANGE,
)
async def add_archive(
    request: Request,
    settings: DataSetSettingsDep,
    jobs: JobsDep,
    data_sets: DataSetsDep,
    unanswered: UnansweredDep,
    data_set_id: DataSetId,
    name: Annotated[Name, Query(description="of the archive, for the list of imports")] = "",
    labels: Annotated[
        Literal["read", "none"],
        Query(
            description="read: folders, masks and annotation files give the labels, in any layout that "
            "`datasets` reads; none: all photographs are added without labels"
        ),
    ] = "read",
) -> DataSetImport:
    """Adds the photographs of a zip archive with their labels, in the background; see the list of imports."""
    await data_sets.read(find_data_set, data_set_id)
    limit = round(settings.import_gb * 1e9)
    _check_type(request)
    declared = _declared_bytes(request, limit)
    try:
        async with jobs.open_folder(imports.IMPORT_JOBS) as folder:
            free_share = settings.record_free_share
            await asyncio.to_thread(_check_space, folder.path, free_share, declared)
            await _write_body(request, folder.path / ARCHIVE, limit, free_share)
            options = _archive_options(settings, with_labels=labels == "read")
            who = author_of(request)
            job = ArchiveImport(data_sets, data_set_id, folder.path, options, unanswered, name, who)
            number = await jobs.start(folder, job)
    except OSError as error:
        raise no_space("archive", f"{error.strerror or error}.") from error
    return await data_sets.read(imports.show_import, data_set_id, number, datetime.now(UTC))


@router.post(
    "/imports/{import_id}/answers",
    status_code=202,
    responses={**BODY_PROBLEMS, **document_problems(507)},
    dependencies=CHANGE,
)
async def answer_import(
    sent: Annotated[ImportAnswers, json_body(ImportAnswers)],
    request: Request,
    settings: DataSetSettingsDep,
    jobs: JobsDep,
    data_sets: DataSetsDep,
    unanswered: UnansweredDep,
    data_set_id: DataSetId,
    import_id: ImportId,
) -> DataSetImport:
    """Imports an archive again, with answers to the questions of its import; it need not be sent again.

    Photographs keep their labels; annotations that are rotated replace those of the earlier import, not
    those of people.
    """
    now = datetime.now(UTC)
    earlier = await data_sets.read(imports.show_import, data_set_id, import_id, now)
    options = replace(_archive_options(settings), answers=imports.combine_answers(earlier, sent))
    try:
        async with jobs.open_folder(imports.IMPORT_JOBS) as folder:
            unpacked, who = folder.path / UNPACKED, author_of(request)
            unanswered.take(data_set_id, import_id, unpacked)
            job = ArchiveImport(
                data_sets, data_set_id, folder.path, options, unanswered, earlier.name, who, repeats=import_id
            )
            try:
                number = await jobs.start(folder, job)
            except RequestError as error:
                if error.status != 404:  # the data set was deleted meanwhile
                    await asyncio.to_thread(unanswered.add, data_set_id, import_id, unpacked, now)
                raise
    except OSError as error:
        raise no_space("archive", f"{error.strerror or error}.") from error
    return await data_sets.read(imports.show_import, data_set_id, number, now)


@router.get("/imports", responses=PROBLEMS, dependencies=READ)
async def list_imports(
    data_sets: DataSetsDep, unanswered: UnansweredDep, data_set_id: DataSetId
) -> ImportList:
    """The newest imports, with what they have done so far."""
    found = await data_sets.read(imports.list_imports, data_set_id, datetime.now(UTC))
    return ImportList(imports=[_with_time_to_answer(one, unanswered, data_set_id) for one in found.imports])


@router.get("/imports/{import_id}", responses=PROBLEMS, dependencies=READ)
async def show_import(
    data_sets: DataSetsDep, unanswered: UnansweredDep, data_set_id: DataSetId, import_id: ImportId
) -> DataSetImport:
    """One import."""
    found = await data_sets.read(imports.show_import, data_set_id, import_id, datetime.now(UTC))
    return _with_time_to_answer(found, unanswered, data_set_id)


def _with_time_to_answer(
    found: DataSetImport, unanswered: UnansweredArchives, data_set_id: int
) -> DataSetImport:
    if not found.result.has_questions:
        return found
    return found.model_copy(update={"answerable_until": unanswered.answerable_until(data_set_id, found.id)})


def _archive_options(settings: DataSetSettings, *, with_labels: bool = True) -> ArchiveOptions:
    limit, limits = round(settings.import_gb * 1e9), program_limits(settings)
    return ArchiveOptions(with_labels, limit, settings.max_pixels, limits, settings.record_free_share)


def program_limits(settings: DataSetSettings) -> ProgramLimits:
    """Returns the limits of the programs that read photographs."""
    return ProgramLimits(settings.import_minutes * 60, round(settings.import_memory_gb * 1e9))


# === The body ===


def _check_type(request: Request) -> None:
    kind = media_type(request)
    if kind and kind not in ARCHIVE_TYPES:
        detail = f"The Content-Type is '{kind}'. Expected application/zip, with the archive as the body."
        raise RequestError(415, "unsupported_content_type", detail, CLOSE_CONNECTION)
    refuse_compressed(request)


def _declared_bytes(request: Request, limit: int) -> int:
    declared = request.headers.get("content-length", "")
    if not declared.isdecimal():
        return 0
    if len(declared) > MAX_LENGTH_DIGITS or int(declared) > limit:
        raise _too_large(limit)
    return int(declared)


def _check_space(folder: Path, free_share: float, declared: int, received: int = 0) -> None:
    """Raises a RequestError, 507, if the files of an archive do not fit on the disk.

    The disk has `received` of its `declared` bytes already.
    """
    FreeSpace.measure(folder, free_share).check(DISK_SPACE_FACTOR * declared - received, "archive")


def _too_large(limit: int) -> RequestError:
    return RequestError(
        413,
        "body_too_large",
        "The archive has more than {gigabytes:g} GB. Send several smaller ones, or start the service with a "
        "larger --import-gb.",
        CLOSE_CONNECTION,
        gigabytes=limit / 1e9,
    )


async def _write_body(request: Request, path: Path, limit: int, free_share: float) -> None:
    """Writes the body to a file.

    Raises:
        RequestError: 413 if it has more than `limit` bytes, 507 for more than the disk may have, 408 if
            nothing arrives for a minute, 400 if it is empty.
        OSError: If the disk is full.
    """
    received, waiting = 0, bytearray()
    chunks = aiter(request.stream())
    with path.open("xb") as file:
        while True:
            try:
                async with asyncio.timeout(MAX_SILENCE_S):
                    chunk = await anext(chunks, None)
            except TimeoutError:
                detail = f"Nothing of the archive arrived for {MAX_SILENCE_S:g} s. Send it again."
                raise RequestError(408, "upload_timeout", detail, CLOSE_CONNECTION) from None
            if chunk is not None:
                received += len(chunk)
                waiting += chunk
                if received > limit:
                    raise _too_large(limit)
            if len(waiting) >= BUFFER_BYTES or chunk is None:
                written = received - len(waiting)
                await asyncio.to_thread(_check_space, path.parent, free_share, received, written)
                await asyncio.to_thread(file.write, bytes(waiting))
                waiting.clear()
            if chunk is None:
                break
    if not received:
        raise RequestError(400, "empty_archive", "The body is empty. Expected a zip archive.")
