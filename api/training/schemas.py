"""What engineers and workers send about training jobs, and the answers, as JSON."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from api.http.number_text import MAX_ID
from api.http.request_params import RequiredName
from api.http.sent_model import SentModel
from api.messages.causes import Cause
from segdec.schemas import AnswerPart
from segdec.training_schemas import JobSettings, OrderedSettings

JobState = Literal["queued", "leased", "running", "done", "failed", "cancelled"]
"""`leased`: a worker fetches the data; `running`: it trains."""
MAX_MACHINES = 16
MAX_SENT_EVENTS = 100
EventKind = Literal["state", "metrics", "output"]
LongText = Annotated[str, Field(max_length=2000)]
Number = Annotated[float, Field(allow_inf_nan=False)]


class NewTrainingJob(OrderedSettings):
    """A training to order."""

    model_config = ConfigDict(extra="forbid")

    data_set: int = Field(gt=0, le=MAX_ID, strict=True, description="id of the data set")
    data_set_version: int = Field(gt=0, lt=2**31, strict=True)
    model: RequiredName = Field(description="name of the model, letters, digits, `_`, `-` and `.`")
    retrain_of: int | None = Field(
        None, gt=0, le=MAX_ID, strict=True, description="job from which it takes over the settings not given"
    )
    machines: int = Field(1, ge=1, le=MAX_MACHINES, strict=True, description="workers that train it together")


class SentEvent(SentModel):
    """A record of the training's log, or lines that it printed."""

    kind: Literal["metrics", "output"]
    content: dict[str, Number | LongText | None] | list[LongText] = Field(max_length=200)


class Heartbeat(SentModel):
    """A sign of life of a worker."""

    is_training: bool = Field(description="false: it fetches data")
    progress: dict[RequiredName, Number | LongText | None] = Field({}, max_length=30)
    events: list[SentEvent] = Field([], max_length=MAX_SENT_EVENTS)


class AskedProposals(SentModel):
    """Which model proposes; all null: that of the data set's newest finished training, else the default."""

    model: RequiredName | None = Field(None, description="name of a served model; null: the default one")
    version: RequiredName | None = Field(None, description="version or label; null: the stable one")
    training_job: int | None = Field(
        None,
        gt=0,
        le=MAX_ID,
        strict=True,
        description="finished training job whose model proposes, in use or not; without a served model",
    )


class CheckpointFacts(AnswerPart):
    """The last checkpoint that a worker uploaded."""

    position: str = Field(
        description="of the training, for example `stage joint, step 120` or `end of stage joint`"
    )
    version: str = Field(description="of the product that wrote it")
    at: datetime


class JobMember(AnswerPart):
    """A worker of a group that trains a job together."""

    rank: int = Field(description="0: the chief, which reports and uploads")
    worker: str
    address: str = Field(description="`host:port` at which the others reach its training")


class UsedModel(AnswerPart):
    """Where the model of a job was put."""

    who: str
    at: datetime


class TrainingJob(AnswerPart):
    """A training job."""

    id: int
    model: str = Field(description="name of the model")
    version: str = Field(description="of the model")
    data_set: int
    data_set_name: str
    data_set_version: int
    settings: JobSettings
    machines: int = Field(description="workers that train it together")
    waiting: int = Field(description="workers that wait until it can begin, of `machines`")
    members: list[JobMember] = Field(description="that train it together now; empty for one machine")
    retrain_of: int | None = Field(description="the job from which it took over the settings")
    created_at: datetime
    created_by: str
    state: JobState
    request: Literal["cancel", "stop"] | None = Field(description="that a person made and the worker gets")
    attempts: int = Field(description="leases since the last checkpoint")
    worker: str | None = Field(description="that has the job, or had it last")
    is_silent: bool = Field(description="the worker has not been heard of for longer than its lease")
    started_at: datetime | None
    ended_at: datetime | None
    reason: str | None = Field(description="why it failed, or what happened last")
    progress: dict[str, Any] | None = Field(description="as the worker reports it: phase, stage, step, …")
    checkpoint: CheckpointFacts | None
    outcome: dict[str, Any] | None = Field(description="of a finished job: rating, metrics and thresholds")
    used: UsedModel | None = Field(description="null: the model was not put into use")
    for_proposals: bool = Field(description="labels are proposed with the model when it is done")
    has_panel: bool = Field(description="whether there is a picture of predictions")


class TrainingJobPage(AnswerPart):
    """Training jobs, the newest first."""

    jobs: list[TrainingJob]
    next_before: int | None = Field(description="`before` of the next page; null: this is the last one")


class ProposalOrder(AnswerPart):
    """A training whose model proposes labels for the rest of its data set."""

    training_job: int
    model: str
    version: str
    minutes: float = Field(description="time limit of the training")
    ordered_at: datetime
    ordered_by: str
    job_state: JobState
    reason: str | None = Field(description="why the training failed, or what happened last")
    state: Literal["waiting", "started", "ended", "failed"] = Field(
        description="of the proposals. waiting: for the training; failed: they could not be started"
    )
    error: str | None = Field(description="why the proposals could not be started")
    error_cause: Cause | None = Field(description="of the error")


class ProposalTraining(AnswerPart):
    """What a data set has to learn from, and its latest training for proposals."""

    needed_parts: int = Field(description="good parts that must be labelled, and defective ones")
    good_parts: int = Field(
        description="labelled parts, or photographs whose part is unknown; not those that do not train, in "
        "`test` or left out by the published split"
    )
    defective_parts: int
    unlabelled: int = Field(description="photographs without a label")
    latest: ProposalOrder | None


class JobEvent(AnswerPart):
    """Something that happened in a job."""

    id: int
    at: datetime
    kind: EventKind = Field(
        description="state: a sentence; metrics: a record of the training's log; output: printed lines"
    )
    content: Any


class JobEventPage(AnswerPart):
    """Events of a job, in their order: a page has about 0.5 MB at most, so it may have fewer than `limit`.

    A job that continued from a checkpoint repeats records of metrics.
    """

    events: list[JobEvent]
    next_after: int | None = Field(description="`after` of the next page; null: these are all so far")


class TrainingWorker(AnswerPart):
    """A program that trains."""

    name: str
    key: str = Field(description="name of its key")
    version: str = Field(description="of the product")
    machine: dict[str, Any] = Field(description="as it describes itself: system, processors, GPUs")
    first_seen_at: datetime
    seen_at: datetime
    problem: str | None = Field(description="why it got no job; null: none")
    problem_cause: Cause | None = Field(description="of the problem")
    address: str | None = Field(
        description="at which other workers reach its trainings; null: it trains no job together with others"
    )
    job: int | None = Field(description="that it has now")
    rank: int | None = Field(description="in the group that trains this job; null: it trains alone")


class TrainingWorkerList(AnswerPart):
    """All workers, by name."""

    workers: list[TrainingWorker]


class ResultRate(AnswerPart):
    """A share of photographs, with its 95 % confidence interval."""

    count: int
    total: int
    low: float = Field(description="of the share, 0…1")
    high: float


class ComparedResult(AnswerPart):
    """The errors of a training on the photographs that both trainings have."""

    missed: ResultRate = Field(description="defective photographs that are called good")
    false_alarms: ResultRate = Field(description="good photographs that are not called good")
    correct: ResultRate = Field(description="photographs with the right label; those for review are not")


class ResultComparison(AnswerPart):
    """Two trainings on the photographs that both were measured on."""

    photographs: int
    left_out: int = Field(description="photographs that only one has, or whose label has changed")
    first: ComparedResult
    second: ComparedResult
    only_first_correct: int
    only_second_correct: int
    both_wrong: int
    p_value: float = Field(description="of McNemar's exact test; below 0.05: more than chance")
