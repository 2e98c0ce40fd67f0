"""Changes which models and versions are served."""

from typing import Annotated, Self

from fastapi import APIRouter
from pydantic import Field, model_validator
from starlette.requests import Request

from api.errors import document_problems
from api.http.json_body import json_body
from api.http.middleware.access import caller_fields
from api.http.request_params import RequiredName
from api.http.roles import require_role
from api.http.sent_model import SentModel
from api.inspecting.dependencies import ServiceDep
from api.models.aliases import PROMOTE, ROLL_BACK, set_candidate
from api.models.thresholds import Score, ThresholdChange, check_order
from segdec.schemas import ReloadAnswer

router = APIRouter(prefix="/v1/admin", tags=["admin"], dependencies=require_role("engineer"))


class CandidateChoice(SentModel):
    """Which version runs in shadow mode."""

    version: RequiredName | None = Field(description="name of its folder; null: none")


class ThresholdChoice(SentModel):
    """Thresholds of a version; null for both: those of its manifest again."""

    version: RequiredName = Field(description="name of its folder, or an alias")
    score: Score | None = Field(description="image score from which a photograph is a defect")
    review: Score | None = Field(
        description="image score, below `score`, from which a photograph is for review; null: no review"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.score is not None:
            check_order(self.score, self.review)
        elif self.review is not None:
            raise ValueError(f"review={self.review} without a score; expected both, or null for both")
        return self


@router.post("/models/{name}/reload", responses=document_problems(404, 409, 422, 500, 503))
async def reload_model(name: str, request: Request, service: ServiceDep) -> ReloadAnswer:
    """Reloads a model from disk: load, check, self-test, warm, swap, drain; a failure changes nothing."""
    return await service.reload(name, caller_fields(request.scope))


@router.post(
    "/models/{name}/candidate", responses=document_problems(400, 404, 408, 409, 413, 415, 422, 500, 503)
)
async def choose_candidate(
    choice: Annotated[CandidateChoice, json_body(CandidateChoice, any_type=True)],
    name: str,
    request: Request,
    service: ServiceDep,
) -> ReloadAnswer:
    """Runs a version in shadow mode: it processes the same photographs as the stable version; clients do not
    get its answers.
    """
    return await service.change_model(name, set_candidate(choice.version), caller_fields(request.scope))


@router.post("/models/{name}/promote", responses=document_problems(404, 409, 422, 500, 503))
async def promote(name: str, request: Request, service: ServiceDep) -> ReloadAnswer:
    """Makes the candidate the stable version, and the stable version `previous`."""
    return await service.change_model(name, PROMOTE, caller_fields(request.scope))


@router.post("/models/{name}/rollback", responses=document_problems(404, 409, 422, 500, 503))
async def roll_back(name: str, request: Request, service: ServiceDep) -> ReloadAnswer:
    """Makes stable the version that was stable before the last promotion."""
    return await service.change_model(name, ROLL_BACK, caller_fields(request.scope))


@router.post(
    "/models/{name}/thresholds", responses=document_problems(400, 404, 408, 409, 413, 415, 422, 500, 503)
)
async def set_thresholds(
    choice: Annotated[ThresholdChoice, json_body(ThresholdChoice, any_type=True)],
    name: str,
    request: Request,
    service: ServiceDep,
) -> ReloadAnswer:
    """Sets the thresholds by which a served version decides, until they are set again; the model itself stays
    as it was signed. Other versions keep theirs.
    """
    change = ThresholdChange(choice.version, choice.score, choice.review)
    return await service.change_model(name, change, caller_fields(request.scope))
