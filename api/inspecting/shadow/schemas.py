"""Answers about candidates in shadow mode, as JSON."""

from datetime import datetime

from pydantic import Field

from segdec.schemas import AnswerPart, ModelIdentity


class CandidateVerdicts(AnswerPart):
    """Which model was right in the reviewed differences."""

    candidate: int = 0
    serving: int = Field(0, description="the model that answered")
    neither: int = 0
    unsure: int = Field(0, description="the reviewer could not tell")


class CandidateReport(AnswerPart):
    """How a candidate's predictions differ from the answers."""

    model: ModelIdentity
    serving: str = Field(description="version that answers now")
    since: datetime | None = Field(description="the first photograph that it predicted; null: none yet")
    answered: int
    differing: int = Field(description="predictions with another label than the answer")
    not_inspected: int = Field(
        description="of the differing ones: not inspected because they are unlike its training photographs"
    )
    skipped: dict[str, int] = Field(
        description="photographs without a prediction, by reason, since the start of this replica"
    )
    reviewed: CandidateVerdicts = Field(description="reviews of the differing ones")


class CandidateList(AnswerPart):
    """The candidates of all models."""

    candidates: list[CandidateReport]


class ModelVerdict(AnswerPart):
    """What a version of a model says about a photograph."""

    version: str
    label: str = Field(description="`not_inspected`: no verdict, it is unlike those of the training")
    score: float | None = Field(description="null: not inspected")


class Difference(AnswerPart):
    """A photograph on which a candidate and the version that answered have other labels."""

    record_id: int
    part_id: str | None
    station: str
    inspected_at: datetime
    serving: ModelVerdict
    candidate: ModelVerdict
    reviewed_label: str | None = Field(description="null: not reviewed yet")


class DifferencePage(AnswerPart):
    """Photographs on which a candidate differs, the newest first."""

    model: ModelIdentity = Field(description="the candidate")
    differences: list[Difference]
    next_before: int | None = Field(description="`before` of the next page; null: this is the last")
