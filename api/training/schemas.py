"""Answers about training jobs, as JSON."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from api.messages.causes import Cause
from segdec.schemas import AnswerPart

JobState = Literal["queued", "leased", "running", "done", "failed", "cancelled"]
"""`leased`: a worker fetches the data; `running`: it trains."""
EventKind = Literal["state", "metrics", "output"]
Command = Literal["continue", "cancel", "stop"]
"""What a worker must do: continue, stop without a model, or stop with the best weights so far."""


class JobSettings(AnswerPart):
    """The settings of a job; null: chosen by the training."""

    minutes: float = Field(description="time limit of the training")
    all_steps: bool = Field(
        False, description="the training takes all its steps; `minutes` only limits a slow machine"
    )
    encoder: str | None = Field(None, description="see `python -m training encoders`")
    area: int | None = Field(None, description="pixels of the network's input")
    classes: list[str] | None = Field(
        None,
        description="classes of defects that are learned: photographs of other classes are left out, and "
        "their areas in masks are ignored",
    )


class CheckpointFacts(AnswerPart):
    """The last checkpoint that a worker uploaded."""

    position: str = Field(description="of the training, for example `stage joint, step 120`")
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
    """Events of a job, in their order. A job that continued from a checkpoint repeats records of metrics."""

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


# === For workers ===


class SentFile(AnswerPart):
    """A file of a checkpoint or a result: its path and the digests of its chunks, in order."""

    path: str
    chunks: list[str] = Field(description="SHA-256, hexadecimal")


class LeasedJob(AnswerPart):
    """A job that a worker has leased."""

    id: int
    lease: str = Field(description="for the header X-Lease of all further requests")
    lease_s: float = Field(description="duration of the lease; each heartbeat renews it")
    model: str
    version: str
    settings: JobSettings
    data_set_name: str
    data_set_version: int
    digest: str = Field(description="SHA-256 of the manifest, hexadecimal")
    classes: list[str]
    checkpoint: list[SentFile] | None = Field(description="to continue from; null: start")
    checkpoint_position: str | None
    rank: int = Field(description="in the group that trains it; 0 for the chief, and for one machine")
    addresses: list[str] = Field(description="of the group, by rank; empty for one machine")


class Lease(AnswerPart):
    """A leased job; null if there is none for this worker."""

    job: LeasedJob | None
    reason: str | None = Field(None, description="why it gets none, although one waits")


class HeartbeatAnswer(AnswerPart):
    """What the worker must do next."""

    command: Command
    has_steps: bool = Field(description="whether the training has reported a step since the job was leased")


class MissingChunks(AnswerPart):
    """Which of the named chunks are not stored yet."""

    missing: list[str]
