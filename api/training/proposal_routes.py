"""Labels that a model proposes for photographs of data sets. Served if the service records."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from api.data_sets.data_set_params import (
    BODY_PROBLEMS,
    CHANGE,
    PROBLEMS,
    READ,
    DataSetId,
    DataSetsDep,
    PhotographId,
    describe_file,
)
from api.data_sets.job_schemas import ProposalRun, ProposingModelList
from api.data_sets.proposal_start import ProposalStarter
from api.data_sets.proposals import find_proposed_mask, show_run
from api.http.caching import PNG, REVALIDATED
from api.http.callers import author_of
from api.http.components import component
from api.http.json_body import json_body
from api.http.sent_model import SentModel
from api.inspecting.dependencies import ServiceDep
from api.training import proposals_after_training
from api.training.proposal_orders import show_training
from api.training.proposing_models import choose_model, list_choices
from api.training.schemas import AskedProposals, ProposalTraining
from api.training.training_params import TrainingDep
from segdec.training_schemas import MAX_MINUTES, MIN_MINUTES

router = APIRouter(prefix="/v1/data-sets/{data_set_id}", tags=["data sets"])
DEFAULT_MINUTES = 2.0
"""Of a training for proposals."""


class AskedTraining(SentModel):
    """A training for proposals."""

    minutes: float = Field(
        DEFAULT_MINUTES,
        ge=MIN_MINUTES,
        le=MAX_MINUTES,
        allow_inf_nan=False,
        strict=True,
        description="its time limit",
    )


@router.post("/proposals", status_code=202, responses=BODY_PROBLEMS, dependencies=CHANGE)
async def start_proposals(
    asked: Annotated[AskedProposals, json_body(AskedProposals)],
    request: Request,
    service: ServiceDep,
    starter: Annotated[ProposalStarter, component(ProposalStarter)],
    data_sets: DataSetsDep,
    training: TrainingDep,
    data_set_id: DataSetId,
) -> ProposalRun:
    """Runs a model on all photographs without a label, in the background; replaces earlier proposals."""
    model = await choose_model(service, training, data_set_id, asked)
    await starter.start(data_set_id, model, author_of(request))
    started = await data_sets.read(show_run, data_set_id, datetime.now(UTC))
    assert started is not None, "its row was just stored"
    return started


@router.get("/proposals/models", responses=PROBLEMS, dependencies=READ)
async def list_proposing_models(
    service: ServiceDep, training: TrainingDep, data_set_id: DataSetId
) -> ProposingModelList:
    """The models that can propose labels: those of the data set's finished trainings, and the served ones."""
    return ProposingModelList(models=await list_choices(service, training, data_set_id))


@router.get("/proposals", responses=PROBLEMS, dependencies=READ)
async def get_proposals(data_sets: DataSetsDep, data_set_id: DataSetId) -> ProposalRun | None:
    """The latest run, with what it has done so far; null if there is none."""
    return await data_sets.read(show_run, data_set_id, datetime.now(UTC))


@router.post("/proposals/training", status_code=202, responses=BODY_PROBLEMS, dependencies=CHANGE)
async def train_and_propose(
    asked: Annotated[AskedTraining, json_body(AskedTraining)],
    request: Request,
    service: ServiceDep,
    data_sets: DataSetsDep,
    training: TrainingDep,
    data_set_id: DataSetId,
) -> ProposalTraining:
    """Orders a short training on the labels so far; when it is done, its model proposes those of the rest."""
    who = author_of(request)
    await proposals_after_training.train_and_propose(
        service, data_sets, training, data_set_id, asked.minutes, who
    )
    return await training.read(show_training, data_set_id)


@router.get("/proposals/training", responses=PROBLEMS, dependencies=READ)
async def get_proposal_training(training: TrainingDep, data_set_id: DataSetId) -> ProposalTraining:
    """Whether the labels suffice for a training, and what became of the latest one for proposals."""
    return await training.read(show_training, data_set_id)


@router.get("/photographs/{photograph_id}/proposal/mask", **describe_file(PNG), dependencies=READ)
async def show_proposed_mask(
    data_sets: DataSetsDep, data_set_id: DataSetId, photograph_id: PhotographId
) -> Response:
    """The proposed mask, a grey PNG of the classes of the data set, as masks of annotations are."""
    mask = await data_sets.read(find_proposed_mask, data_set_id, photograph_id)
    return Response(mask, headers=REVALIDATED, media_type=PNG)
