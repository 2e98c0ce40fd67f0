"""A kind of jobs, and what the runner needs of a job."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from sqlalchemy import Connection

from api.jobs.schemas import JobAnswer
from api.messages.causes import Failure
from segdec.schemas import AnswerPart

A = TypeVar("A", bound=JobAnswer)


@dataclass(frozen=True)
class JobKind(Generic[A]):
    """A kind of jobs.

    Attributes:
        name: In the table and in errors.
        answer: Shows a job: the members of `JobAnswer`, and those of the progress of this kind.
        interrupted: For the user if the service ends before the job.
        queue: Jobs with the same queue run one after the other, also those of different kinds.
        only_latest: A data set keeps the latest job of this kind, and none starts while one is running.
    """

    name: str
    answer: type[A]
    interrupted: Failure
    queue: str
    only_latest: bool = False


class Job(Protocol):
    """A job to be run."""

    @property
    def kind(self) -> JobKind[Any]: ...

    @property
    def progress(self) -> AnswerPart:
        """What it has done so far; it is stored while the job runs and at its end."""

    def start_row(self, connection: Connection, now: datetime) -> int:
        """Adds the row of the job, with `start_job`, in a writing transaction; returns its id."""

    async def run(self) -> None:
        """Does the work; raises a SegdecError or a RequestError with a text for the user."""
