"""What the service and its training workers exchange about jobs, as JSON."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from segdec.runtime.identifiers import SCHEMA_PATTERN, check_identifier
from segdec.schemas import AnswerPart

MIN_MINUTES, MAX_MINUTES = 0.05, 60 * 24 * 31
"""Shortest and longest time limit of a training."""
Command = Literal["continue", "cancel", "stop"]
"""What a worker must do: continue, stop without a model, or stop with the best weights so far."""
SettingText = Annotated[
    str,
    Field(min_length=1, max_length=128, json_schema_extra={"pattern": SCHEMA_PATTERN}),
    AfterValidator(check_identifier),
]


ADDRESS_PATTERN = r"^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[1-9][0-9]{0,4}$"
"""`host:port`."""


class WorkerIdentity(BaseModel):
    """A worker that asks for a job."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: SettingText
    version: SettingText = Field(description="of the product")
    machine: dict[SettingText, Annotated[str, Field(max_length=200)]] = Field(
        {}, max_length=20, description="system, processors, GPUs"
    )
    address: Annotated[str, Field(max_length=260, pattern=ADDRESS_PATTERN)] | None = Field(
        None, description="`host:port` at which other workers reach its trainings; null: no joint jobs"
    )


class OrderedSettings(BaseModel):
    """The settings in the order of a job; null: those of an earlier job, or chosen by the training."""

    model_config = ConfigDict(frozen=True)

    minutes: float | None = Field(
        None,
        ge=MIN_MINUTES,
        le=MAX_MINUTES,
        description="time limit of the training; null: 30, with all steps 720",
    )
    all_steps: bool | None = Field(
        None,
        strict=True,
        description="take all steps, however long they take; `minutes` only limits a slow machine",
    )
    encoder: SettingText | None = Field(None, description="see `python -m training encoders`")
    area: int | None = Field(
        None, ge=32**2, le=2**26, strict=True, description="pixels of the network's input"
    )
    classes: list[SettingText] | None = Field(
        None,
        max_length=200,
        description="classes of defects that are learned: photographs of other classes are left out, and "
        "their areas in masks are ignored; null: all of the version",
    )


class JobSettings(OrderedSettings):
    """The settings of a job; null: chosen by the training."""

    minutes: float
    all_steps: bool = False


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
    rank: int = Field(0, description="in the group that trains it; 0 for the chief, and for one machine")
    addresses: list[str] = Field([], description="of the group, by rank; empty for one machine")

    @property
    def is_chief(self) -> bool:
        """Whether this worker reports, and uploads checkpoints and the result: the first of a group, or the
        only one.
        """
        return self.rank == 0


class Lease(AnswerPart):
    """A leased job; null if there is none for this worker."""

    job: LeasedJob | None
    reason: str | None = Field(None, description="why it gets none, although one waits")


class HeartbeatAnswer(AnswerPart):
    """What the worker must do next."""

    command: Command
    has_steps: bool = Field(
        description="whether the training, in a group the chief's, has reported a step since the lease"
    )


class MissingChunks(AnswerPart):
    """Which of the named chunks the job does not have yet."""

    missing: list[str]
