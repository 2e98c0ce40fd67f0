"""Answers about trends, as JSON."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from segdec.schemas import AnswerPart


class TrendPeriod(AnswerPart):
    """A day, week or month."""

    begin: datetime
    end: datetime
    inspected: int
    review: int = Field(description="verdict `review`")
    defective: int
    centre: float | None = Field(description="defect rate of all finished periods; null: too few inspections")
    low: float | None = Field(description="lower control limit of the defect rate; null: too few inspections")
    high: float | None
    out: Literal["high", "low"] | None = Field(description="the limit that the rate exceeds")
    log_odds: float | None = Field(description="mean of the last model; null: it inspected nothing")
    versions: list[str] = Field(description="models with their versions that inspected")


class TrendClass(AnswerPart):
    """How often a class of defects was found."""

    label: str
    count: int


class TrendGroup(AnswerPart):
    """The inspections of a station or of a model version."""

    name: str
    inspected: int
    review: int
    defective: int


class TrendReport(AnswerPart):
    """Trends of consecutive periods. Lists of names have at most 100, those with the most inspections."""

    by: Literal["day", "week", "month"]
    zone: str = Field(description="time zone of the plant, in which periods begin")
    periods: list[TrendPeriod]
    classes: list[TrendClass] = Field(description="the most frequent first")
    stations: list[TrendGroup]
    versions: list[TrendGroup]
