"""Labels that a served model proposes for photographs of data sets. Served if the service records."""

from datetime import UTC, datetime

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from api.accounts.access import author_of
from api.data_sets.definitions import classes_of, find_data_set
from api.data_sets.job_schemas import ProposalRun
from api.data_sets.proposal_job import ProposalJob
from api.data_sets.proposals import find_proposed_mask, find_trained_model, list_unlabelled, show_run
from api.errors import RequestError, document_problems
from api.models.registry import ServedModel
from api.routes.body_schemas import describe_json_body
from api.routes.data_set_params import BODY_PROBLEMS, DataSetId, DataSetsDep, PhotographId, describe_file
from api.routes.dependencies import ServiceDep
from api.routes.json_body import read_json_body
from api.routes.records import PNG, REVALIDATED
from api.routes.request_params import DeadlineDep, RequiredName
from api.routes.roles import require_role
from api.service import Service

router = APIRouter(prefix="/v1/data-sets/{data_set_id}", tags=["data sets"])
READ, CHANGE = require_role("reviewer"), require_role("engineer")


class AskedProposals(BaseModel):
    """Which model proposes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: RequiredName | None = Field(
        None,
        description="name; null: the model that was trained on this data set and used last, else the default",
    )
    version: RequiredName | None = Field(None, description="version or label; null: the stable one")


@router.post(
    "/proposals",
    status_code=202,
    responses=document_problems(*BODY_PROBLEMS),
    openapi_extra=describe_json_body(AskedProposals),
    dependencies=CHANGE,
)
async def start_proposals(
    request: Request,
    service: ServiceDep,
    data_sets: DataSetsDep,
    data_set_id: DataSetId,
    deadline: DeadlineDep,
) -> ProposalRun:
    """Runs a model on all photographs without a label, in the background; replaces earlier proposals."""
    asked = await read_json_body(request, service, AskedProposals, deadline)
    jobs = service.proposal_jobs
    assert jobs is not None, "these routes are served only with a record"
    classes = classes_of(await data_sets.read(find_data_set, data_set_id))
    trained = await data_sets.read(find_trained_model, data_set_id)
    model = _choose_model(service, asked, trained)
    waiting = await data_sets.read(list_unlabelled, data_set_id)
    if not classes:
        detail = "The data set has no classes of defects. Add one first: a proposal needs it."
        raise RequestError(409, "no_classes", detail)
    if not waiting:
        raise RequestError(409, "nothing_unlabelled", "All photographs of the data set are labelled.")
    await jobs.remove_abandoned()
    with jobs.open_folder() as folder:
        job = ProposalJob(
            data_sets,
            data_set_id,
            classes,
            waiting,
            service.background_inspector,
            service.models,
            model.identity,
            author_of(request),
        )
        await jobs.start(folder, job)
    return await data_sets.read(show_run, data_set_id, datetime.now(UTC))


def _choose_model(service: Service, asked: AskedProposals, trained: str | None) -> ServedModel:
    name = asked.model
    if name is None and trained is not None and service.models.versions(trained):
        name = trained
    return service.find_model(name, asked.version)


@router.get("/proposals", responses=document_problems(400, 404, 503), dependencies=READ)
async def get_proposals(data_sets: DataSetsDep, data_set_id: DataSetId) -> ProposalRun:
    """The latest run, with what it has done so far."""
    return await data_sets.read(show_run, data_set_id, datetime.now(UTC))


@router.get("/photographs/{photograph_id}/proposal/mask", **describe_file(PNG), dependencies=READ)
async def show_proposed_mask(
    data_sets: DataSetsDep, data_set_id: DataSetId, photograph_id: PhotographId
) -> Response:
    """The proposed mask, a grey PNG of the classes of the data set, as masks of annotations are."""
    mask = await data_sets.read(find_proposed_mask, data_set_id, photograph_id)
    return Response(mask, headers=REVALIDATED, media_type=PNG)
