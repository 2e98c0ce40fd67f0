"""Why a job failed, as it is stored: a text in English, and code and values for other languages."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from pydantic import Field
from sqlalchemy import RowMapping

from api.errors import RequestError, values_of
from segdec.errors import ArtifactError, ImageError, SegdecError
from segdec.schemas import AnswerPart


class Cause(AnswerPart):
    """The kind of an error, and what its text states."""

    code: str = Field(description="for programs, as that of a problem")
    values: dict[str, str | int | float] = Field({}, description="names and numbers of the text")

    def map_texts(self, change: Callable[[str], str]) -> "Cause":
        """Returns the cause with each text among its values changed."""
        items = self.values.items()
        values = {name: change(value) if isinstance(value, str) else value for name, value in items}
        return Cause(code=self.code, values=values)


class JobError(SegdecError):
    """Why a job cannot continue: a text for the user, and its cause."""

    def __init__(self, message: str, cause: Cause) -> None:
        super().__init__(message)
        self.cause = cause


@dataclass(frozen=True)
class Failure:
    """Why a job, or a part of it, failed.

    Attributes:
        text: In English.
        cause: None if the error has no code: the pages show the text in English.
    """

    text: str
    cause: Cause | None = None

    @classmethod
    def of(cls, error: SegdecError) -> Self:
        """Returns what is stored about an error."""
        return cls(str(error), cause_of(error))


def cause_of(error: SegdecError) -> Cause | None:
    """Returns the cause of an error; None if it has no code."""
    if isinstance(error, JobError):
        return error.cause
    if isinstance(error, RequestError | ImageError):
        return Cause(code=error.code, values=dict(values_of(error)))
    return Cause(code="unusable_model") if isinstance(error, ArtifactError) else None


# === In tables ===


def failure_columns(failure: Failure | None) -> dict[str, str | None]:
    """Returns the values of the columns `error` and `error_cause`."""
    if failure is None:
        return {"error": None, "error_cause": None}
    return {"error": failure.text, "error_cause": dump_cause(failure.cause)}


def read_failure(row: RowMapping) -> Failure | None:
    """Returns what the columns `error` and `error_cause` of a row state; None: nothing failed."""
    return None if row["error"] is None else Failure(row["error"], load_cause(row["error_cause"]))


def dump_cause(cause: Cause | None) -> str | None:
    """Returns a cause as JSON."""
    return None if cause is None else cause.model_dump_json()


def load_cause(stored: str | None) -> Cause | None:
    """Returns a stored cause; None for rows of earlier versions."""
    return None if stored is None else Cause.model_validate_json(stored)
