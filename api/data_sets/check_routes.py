"""Checks of data sets. Served if the service records."""

from datetime import UTC, datetime

from fastapi import APIRouter
from starlette.requests import Request

from api.data_sets.check_job import CheckJob
from api.data_sets.checks import CHECK_JOBS, show_check
from api.data_sets.data_set_params import (
    CHANGE,
    PROBLEMS,
    READ,
    DataSetId,
    DataSetsDep,
    DataSetSettingsDep,
    JobsDep,
)
from api.data_sets.import_routes import program_limits
from api.data_sets.job_schemas import DataSetCheck
from api.data_sets.versions import take_snapshot
from api.errors import document_problems
from api.http.callers import author_of

router = APIRouter(prefix="/v1/data-sets/{data_set_id}/check", tags=["data sets"])


@router.post("", status_code=202, responses=document_problems(400, 404, 409, 503), dependencies=CHANGE)
async def start_check(
    request: Request,
    settings: DataSetSettingsDep,
    jobs: JobsDep,
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
) -> DataSetCheck:
    """Checks the labelled photographs in the background: near duplicates, contradictions, unusual sizes."""
    who = author_of(request)
    snapshot = await data_sets.read(take_snapshot, data_set_id)
    async with jobs.open_folder(CHECK_JOBS) as folder:
        limits = program_limits(settings)
        await jobs.start(folder, CheckJob(data_sets, data_set_id, snapshot, folder.path, limits, who))
    started = await data_sets.read(show_check, data_set_id, datetime.now(UTC))
    assert started is not None, "its row was just stored"
    return started


@router.get("", responses=PROBLEMS, dependencies=READ)
async def get_check(data_sets: DataSetsDep, data_set_id: DataSetId) -> DataSetCheck | None:
    """The latest check with its findings; null if there is none."""
    return await data_sets.read(show_check, data_set_id, datetime.now(UTC))
