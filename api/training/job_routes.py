"""Training jobs: ordered, watched, ended early, their models put into use. Served if the service records."""

from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from api.data_sets.data_set_params import BODY_PROBLEMS, CHANGE, PROBLEMS, READ
from api.errors import RequestError, document_problems
from api.http.body_schemas import BINARY_SCHEMA
from api.http.caching import REVALIDATED
from api.http.callers import author_of
from api.http.json_body import json_body
from api.http.middleware.access import caller_fields
from api.http.number_text import MAX_ID, WHOLE_NUMBER
from api.inspecting.dependencies import ServiceDep
from api.inspecting.model_report_routes import HEADERS
from api.training import job_view, jobs
from api.training.file_sets import list_files
from api.training.job_deletion import delete_job as delete_ended_job
from api.training.job_events import list_events
from api.training.model_deployment import deploy_model
from api.training.result_comparison import compare_results, read_predictions
from api.training.schemas import (
    JobEventPage,
    JobState,
    NewTrainingJob,
    ResultComparison,
    TrainingJob,
    TrainingJobPage,
    TrainingWorkerList,
)
from api.training.training_params import JobId, TrainingDep
from api.training.training_store import TrainingStore
from segdec.schemas import ReloadAnswer

router = APIRouter(prefix="/v1/training", tags=["training"])

MAX_PAGE_SIZE, MAX_EVENTS = 200, 1000
REPORT, PREDICTIONS = "report.html", "predictions.csv"
QueriedJob = Annotated[int, WHOLE_NUMBER, Query(gt=0, le=MAX_ID, description="id of a finished job")]
CHANGE_PROBLEMS = document_problems(400, 404, 409, 503)


@router.get("/jobs", responses=PROBLEMS, dependencies=READ)
async def list_jobs(
    training: TrainingDep,
    state: Annotated[JobState | None, Query()] = None,
    before: Annotated[
        int | None, WHOLE_NUMBER, Query(gt=0, le=MAX_ID, description="only ids below it")
    ] = None,
    limit: Annotated[int, WHOLE_NUMBER, Query(gt=0, le=MAX_PAGE_SIZE)] = 50,
) -> TrainingJobPage:
    """Training jobs, the newest first."""
    return await training.read(job_view.list_jobs, state, before, limit, datetime.now(UTC))


@router.post("/jobs", status_code=201, responses=BODY_PROBLEMS, dependencies=CHANGE)
async def create_job(
    sent: Annotated[NewTrainingJob, json_body(NewTrainingJob)],
    request: Request,
    service: ServiceDep,
    training: TrainingDep,
) -> TrainingJob:
    """Orders a training; a worker gets it as soon as one is free. It needs three good photographs."""
    await training.read(jobs.check_version, sent.data_set, sent.data_set_version)
    now = datetime.now(UTC)
    used = await training.run_in_thread(partial(service.stored_versions, sent.model))
    job_id = await training.write(jobs.create_job, sent, used, author_of(request), now)
    return await _show(training, job_id)


@router.get("/jobs/{job_id}", responses=PROBLEMS, dependencies=READ)
async def show_job(training: TrainingDep, job_id: JobId) -> TrainingJob:
    """One training job."""
    return await _show(training, job_id)


async def _show(training: TrainingStore, job_id: int) -> TrainingJob:
    return await training.read(job_view.show_job, job_id, datetime.now(UTC))


@router.delete("/jobs/{job_id}", status_code=204, responses=CHANGE_PROBLEMS, dependencies=CHANGE)
async def delete_job(request: Request, service: ServiceDep, training: TrainingDep, job_id: JobId) -> None:
    """Deletes a job that has ended, with its log, checkpoint, model and report. A model that was put into the
    folder of models stays there.
    """
    async with training.using:
        job = await training.read(jobs.find_job, job_id)
        served = set(service.models.versions(job["model"]))
        await training.write(delete_ended_job, job_id, served, author_of(request))
    await training.delete_unused(datetime.now(UTC))


@router.get("/jobs/{job_id}/events", responses=PROBLEMS, dependencies=READ)
async def list_job_events(
    training: TrainingDep,
    job_id: JobId,
    after: Annotated[int, WHOLE_NUMBER, Query(ge=0, le=MAX_ID, description="only ids above it")] = 0,
    limit: Annotated[int, WHOLE_NUMBER, Query(gt=0, le=MAX_EVENTS)] = MAX_EVENTS,
) -> JobEventPage:
    """What happened in a job: states, metrics for curves, printed lines."""
    await training.read(jobs.find_job, job_id)
    return await training.read(list_events, job_id, after, limit)


@router.get(
    "/jobs/{job_id}/panel",
    response_class=Response,
    responses={200: {"content": {"image/png": {"schema": BINARY_SCHEMA}}}, **PROBLEMS},
    dependencies=READ,
)
async def show_panel(training: TrainingDep, job_id: JobId) -> Response:
    """The latest picture of predictions on validation photographs."""
    picture = await training.read(job_view.read_panel, job_id)
    if picture is None:
        detail = f"The training job {job_id} has no picture yet: its first validation makes one."
        raise RequestError(404, "no_panel", detail)
    return Response(picture, headers=REVALIDATED, media_type="image/png")


@router.get("/jobs/{job_id}/report", response_class=HTMLResponse, responses=PROBLEMS, dependencies=READ)
async def show_report(training: TrainingDep, job_id: JobId) -> HTMLResponse:
    """The report of the evaluation: a page in one file."""
    return HTMLResponse(await _read_result(training, job_id, REPORT, "no_report"), headers=HEADERS)


@router.get("/comparison", responses=CHANGE_PROBLEMS, dependencies=READ)
async def compare_jobs(training: TrainingDep, first: QueriedJob, second: QueriedJob) -> ResultComparison:
    """Compares two finished trainings on the photographs that both were measured on."""
    files = [
        await _read_result(training, job_id, PREDICTIONS, "no_predictions") for job_id in (first, second)
    ]
    return await training.run_in_thread(lambda: compare_results(*map(read_predictions, files)))


async def _read_result(training: TrainingStore, job_id: int, name: str, code: str) -> bytes:
    """Returns a file of the result of a job; raises RequestError 404 without one."""
    await training.read(jobs.find_job, job_id)
    files = {file.path: file for file in await training.read(list_files, job_id, "result")}
    if name not in files:
        raise RequestError(404, code, f"The training job {job_id} has no {name}: it is not done.")
    return b"".join([await training.read_chunk(bytes.fromhex(chunk)) for chunk in files[name].chunks])


@router.post("/jobs/{job_id}/cancel", responses=CHANGE_PROBLEMS, dependencies=CHANGE)
async def cancel_job(request: Request, training: TrainingDep, job_id: JobId) -> TrainingJob:
    """Cancels a job; a worker that has it ends within seconds."""
    await training.write(jobs.cancel_job, job_id, author_of(request), datetime.now(UTC))
    return await _show(training, job_id)


@router.post("/jobs/{job_id}/stop", responses=CHANGE_PROBLEMS, dependencies=CHANGE)
async def stop_job(request: Request, training: TrainingDep, job_id: JobId) -> TrainingJob:
    """Ends the training with the best weights so far; they are evaluated, and the model is uploaded."""
    await training.write(jobs.stop_job, job_id, author_of(request), datetime.now(UTC))
    return await _show(training, job_id)


@router.post("/jobs/{job_id}/continue", responses=CHANGE_PROBLEMS, dependencies=CHANGE)
async def continue_job(request: Request, training: TrainingDep, job_id: JobId) -> TrainingJob:
    """Queues a failed job again, after its cause was corrected; it continues from its last checkpoint."""
    await training.write(jobs.continue_job, job_id, author_of(request), datetime.now(UTC))
    return await _show(training, job_id)


@router.post(
    "/jobs/{job_id}/use", responses=document_problems(400, 404, 409, 422, 500, 503), dependencies=CHANGE
)
async def use_job(
    request: Request, service: ServiceDep, training: TrainingDep, job_id: JobId
) -> ReloadAnswer:
    """Puts the model of a finished job into the folder of models: as the candidate, which runs in shadow
    mode, or as the stable version if the name is new.
    """
    async with training.using:
        return await deploy_model(service, training, job_id, author_of(request), caller_fields(request.scope))


@router.get("/workers", responses=document_problems(503), dependencies=READ)
async def list_workers(training: TrainingDep) -> TrainingWorkerList:
    """The workers that have asked for jobs."""
    return await training.read(job_view.list_workers)
