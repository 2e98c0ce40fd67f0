"""Answers about imports, checks and proposals, as JSON."""

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field

from api.http.sent_model import SentModel
from api.jobs.schemas import JobAnswer
from api.messages.causes import Cause, Failure
from segdec.schemas import AnswerPart

FindingKind = Literal["problem", "equal", "near_duplicates", "size", "one_colour"]


class ImportProblem(AnswerPart):
    """A photograph, or a part of its annotation, that could not be used."""

    name: str = Field(description="of the photograph; empty if unknown")
    text: str = Field(description="what is wrong, and what to do")
    cause: Cause | None = Field(None, description="of the text")


class ImportResult(AnswerPart):
    """What an import has done so far."""

    found: int | None = Field(
        None, description="usable photographs in the archive; null: it is still being read"
    )
    added: int = 0
    restored: int = Field(0, description="had been removed from the data set")
    present: int = Field(0, description="were in the data set already")
    labelled: int = Field(0, description="got the label of the archive")
    kept: int = Field(0, description="kept the label that they had, or a person has them open to label them")
    left_out: int = Field(0, description="could not be used; see the problems")
    problems: list[ImportProblem] = Field([], description="the first 200")
    notes: list[str] = Field([], description="how the archive was read")
    unclear_labels: list[str] = Field(
        [], description="may mean good: their photographs are left out until somebody answers; the first 100"
    )
    unclear_rotation: bool = Field(
        False, description="annotations may have been drawn before the EXIF rotation of their photographs"
    )

    @property
    def has_questions(self) -> bool:
        """Whether somebody has to answer before all photographs can be read."""
        return bool(self.unclear_labels) or self.unclear_rotation


class ImportAnswers(SentModel):
    """Answers to the questions of an import; a question without one stays open."""

    good_labels: tuple[str, ...] = Field((), description="unclear labels that mean good")
    defect_labels: tuple[str, ...] = Field((), description="unclear labels that are classes of defects")
    annotations_before_rotation: bool | None = Field(
        None, description="whether annotations were drawn before the EXIF rotation of their photographs"
    )


class ImportProgress(AnswerPart):
    """An archive, and what its import has done so far."""

    name: str = Field(description="of the archive")
    result: ImportResult = ImportResult()
    answers: ImportAnswers = Field(
        ImportAnswers(), description="to the questions of earlier imports of this archive"
    )


class DataSetImport(JobAnswer, ImportProgress):
    """An archive that is or was added to a data set."""

    answerable_until: datetime | None = Field(
        None, description="its questions can be answered until then; null: none is open"
    )


class ImportList(AnswerPart):
    """The imports of a data set, the newest first; at most 100."""

    imports: list[DataSetImport]


class FoundPhotograph(AnswerPart):
    """A photograph that a finding is about."""

    id: int
    name: str


class Finding(AnswerPart):
    """What is unusual about photographs of a data set."""

    kind: FindingKind = Field(
        description="problem: training would leave it out; equal, near_duplicates: photographs that show the "
        "same; size: another size than most; one_colour: it shows nothing"
    )
    photographs: list[FoundPhotograph] = Field(description="without those that were removed meanwhile")
    text: str
    cause: Cause | None = Field(description="of the text")


class CheckProgress(AnswerPart):
    """A check as it is stored; its findings name the photographs."""

    checked: int
    findings: list[dict[str, Any]] = Field([], description="kind, names, text and cause of each")


class StoredCheck(JobAnswer, CheckProgress):
    """A check with its state."""


class DataSetCheck(JobAnswer):
    """The latest check of the labelled photographs of a data set."""

    checked: int = Field(description="number of photographs")
    findings: list[Finding] = Field(description="the first 500")
    found: int = Field(description="number of findings")


class ProposalProgress(AnswerPart):
    """A model, and on how many of the photographs without a label it has run."""

    model: str
    version: str
    photographs: int = Field(description="without a label at the start")
    done: int = 0
    proposed: int = Field(0, description="the others are labelled meanwhile, or left out")
    left_out: int = Field(0, description="could not be inspected")
    problem: str | None = Field(None, description="of the first photograph that was left out")
    problem_cause: Cause | None = Field(None, description="of the problem, with the name of the photograph")

    def with_photograph(self, *, is_proposed: bool) -> Self:
        """Counts a photograph on which the model has run."""
        return self.model_copy(update={"done": self.done + 1, "proposed": self.proposed + is_proposed})

    def with_problem(self, problem: Failure) -> Self:
        """Counts a photograph that cannot be inspected; the first problem is kept."""
        update: dict[str, Any] = {"done": self.done + 1, "left_out": self.left_out + 1}
        if self.problem is None:
            update |= {"problem": problem.text, "problem_cause": problem.cause}
        return self.model_copy(update=update)


class ProposalRun(JobAnswer, ProposalProgress):
    """The latest run of a model on the photographs of a data set without a label."""


class ProposingModelChoice(AnswerPart):
    """A model that can propose labels."""

    model: str
    version: str
    training_job: int | None = Field(
        description="finished training of this data set; null: another served model"
    )
    ended_at: datetime | None = Field(description="end of this training")
    aliases: list[str] = Field(description="of the served version; empty: the model is not in use")


class ProposingModelList(AnswerPart):
    """The models that can propose labels; the first one does if none is named."""

    models: list[ProposingModelChoice]
