"""Answers about the state of the line, as JSON."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from segdec.schemas import AnswerPart


class LineInspection(AnswerPart):
    """A short form of an inspection."""

    record_id: int
    inspected_at: datetime
    station: str = Field(description="empty if not given")
    part_id: str | None
    verdict: Literal["good", "review", "defect"]
    label: str
    score: float
    threshold: float


class LastUninspected(AnswerPart):
    """The last photograph of a station that was not inspected."""

    at: datetime
    station: str = Field(description="empty if not given, or the request could not be parsed that far")
    part_id: str | None
    status: int = Field(description="HTTP status")
    code: str
    detail: str
    followed: bool = Field(description="whether its station (if unknown: any station) has inspected since")


class LineCounts(AnswerPart):
    """Counts of a shift or a day until now."""

    begin: datetime
    end: datetime
    inspected: int
    good: int
    review: int
    defective: dict[str, int] = Field(description="by class")
    not_inspected: int


class ChartHour(AnswerPart):
    """An hour in the chart of the defect rate."""

    hour: datetime = Field(description="start of the hour")
    inspected: int
    defective: int
    low: float | None = Field(description="lower control limit; null: too few inspections")
    high: float | None
    out: Literal["high", "low"] | None = Field(description="the limit that the rate exceeds")
    log_odds: float | None = Field(description="mean of the current model; null: none")


class DefectChart(AnswerPart):
    """The defect rate of the last 24 hours, the current one included, with control limits."""

    centre: float | None = Field(description="the rate of the week before; null: too few inspections")
    spread: float | None = Field(description="factor by which limits are wider than chance requires")
    hours: list[ChartHour]


class ScoreDrift(AnswerPart):
    """Mean log-odds of the last hours and of the week before, of the current model."""

    now: float
    before: float
    least: float = Field(description="smallest difference that counts as drift")
    towards: Literal["defective", "good"] | None = Field(description="null: no drift")
    hours: int = Field(description="number of last hours")


class MeasureDistance(AnswerPart):
    """Median distance of photographs to those of the training, as a multiple of the limit."""

    measure: str
    now: float = Field(description="of the last photographs")
    start: float | None = Field(description="of the first ones of this model version; null: unknown")


class TrainingDistance(AnswerPart):
    """How far the photographs of a station are from those of the training."""

    station: str
    model: str
    version: str
    measures: list[MeasureDistance] = Field(description="the highest first")
    near_limit: bool = Field(description="whether the highest is at least 0.7 of its limit")


class UnlikePhotographs(AnswerPart):
    """Photographs of a station that are for review and unlike those of the training."""

    station: str
    model: str
    version: str
    photographs: int = Field(description="number of the last photographs that were looked at")
    unlike: int = Field(description="number of those that are unlike the training by the present limits")
    reason: str = Field(description="the most frequent warning")
    records: list[int] = Field(description="record ids of the newest ones, at most 12")


class QuietStation(AnswerPart):
    """A station that inspected regularly and has stopped."""

    station: str
    last_at: datetime
    usual_gap_s: float


class LineStatus(AnswerPart):
    """The status of a line."""

    at: datetime = Field(description="time of the service's clock, like all times here")
    zone: str = Field(description="time zone of the plant")
    station: str | None = Field(description="the requested station; null: all")
    stations: list[str] = Field(description="of the last week")
    last: LineInspection | None
    uninspected: list[LastUninspected] = Field(
        description="the last one of each station in this shift and the twelve hours before; newest first"
    )
    shift: LineCounts | None = Field(description="null: the record cannot be read")
    day: LineCounts | None
    chart: DefectChart | None
    drift: ScoreDrift | None = Field(description="null: too few inspections")
    training: list[TrainingDistance] = Field(
        [], description="of each station, the highest first; without those with too few photographs"
    )
    unlike: list[UnlikePhotographs] = Field(
        [], description="of each station where at least 5 and 10 % of the last 100 are unlike the training"
    )
    defects: list[LineInspection] = Field(description="the last ones of the last week, newest first")
    quiet: list[QuietStation]
    unavailable: str | None = Field(
        description="why the record cannot be read; the answer then has only what this replica knows"
    )
