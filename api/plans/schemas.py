"""JSON about inspection plans: what clients send, and what they get."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from api.http.request_params import Name
from api.http.sent_model import SentModel
from api.models.plans import PlanNumber
from segdec.plan.inspection_plan import Plan
from segdec.schemas import AnswerPart, PlanSummary

Reason = Annotated[str, Field(max_length=500, pattern=r"\S", description="why; not empty")]
SentNumber = Annotated[PlanNumber, Field(strict=True)]


class NewPlanVersion(SentModel):
    """A plan to store."""

    plan: Plan
    reason: Reason = Field(description="why there is this version")


class PlanChoice(SentModel):
    """Which plan decides at a station."""

    version: SentNumber | None = Field(description="null: no plan of its own")
    station: Name = Field("", description="empty: all stations without a plan of their own")
    reason: Reason


class PlanToSimulate(SentModel):
    """A stored version, or a plan that is not stored."""

    version: SentNumber | None = None
    plan: Plan | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.version is None) == (self.plan is None):
            raise ValueError("version and plan; expected one of them")
        return self


class PlanList(AnswerPart):
    """Stored versions of plans, the newest first."""

    plans: list[PlanSummary]
    next_before: int | None = Field(description="`before` of the next page; null: this is the last")
    can_store: bool = Field(
        True, description="false: the service was not started with the folder of its models"
    )


class PlanDetail(PlanSummary):
    """A stored version of a plan with its content."""

    plan: dict[str, object] = Field(description="as in a plan file; masks in base64")
    sentences: list[str] = Field(description="its zones and rules")
