"""What the answers about jobs of all kinds have."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from api.messages.causes import Cause
from segdec.schemas import AnswerPart

JobState = Literal["running", "done", "failed"]


class JobAnswer(AnswerPart):
    """A job; each kind adds what its jobs have done so far."""

    id: int
    state: JobState = Field(description="after `failed`, what was stored before stays")
    started_at: datetime
    started_by: str
    finished_at: datetime | None
    error: str | None = Field(description="why it failed")
    error_cause: Cause | None = Field(description="of the error")
