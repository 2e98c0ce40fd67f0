"""What is answered of the record, as JSON: inspections, reviews, how the line does, what others are told."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from segdec.schemas import Answer, AnswerPart, MaskAnswer, ModelIdentity

# === Inspections ===


class PictureFacts(AnswerPart):
    """The photograph as it was sent."""

    sha256: str
    bytes: int
    format: str = Field(description="jpeg, png, …, judged from the content")
    state: Literal["kept", "expiring", "expired", "lost"] = Field(
        description="kept: it can be had; expired: deleted, by the rules of retention or by a person; lost: "
        "its file is gone"
    )


class Review(AnswerPart):
    """What a person says of an inspection."""

    label: str = Field(description="`good`, a class of defects, or `unsure`")
    reviewer: str
    reviewed_at: datetime
    reason: str | None
    mended_mask: MaskAnswer | None = Field(description="the mask as it should be; null: not touched")


class Draw(AnswerPart):
    """Whether a person is asked about an inspection."""

    drawn: bool
    reason: Literal["defect", "review", "near", "chance"] = Field(
        description="the verdict, a score near the threshold, or by chance"
    )
    probability: float = Field(description="that such an inspection is drawn")


class InspectionRecord(AnswerPart):
    """An inspection as it is kept."""

    record_id: int = Field(description="in the order in which they were kept")
    inspected_at: datetime
    station: str = Field(description="empty where none was named")
    part_id: str | None
    metadata: dict[str, Any]
    client: str = Field(description="name of the API key; empty without one")
    engine: str
    picture: PictureFacts
    answer: Answer = Field(description="as it was given; its mask is had by itself")
    draw: Draw
    review: Review | None
    revision: int = Field(description="of the review; the ETag with which it is changed")


class CandidateVerdicts(AnswerPart):
    """Who was right where a candidate differs, of those that a person has looked at."""

    candidate: int = 0
    serving: int = Field(0, description="what was answered")
    neither: int = 0
    unsure: int = Field(0, description="neither could the person tell")


class CandidateReport(AnswerPart):
    """What a candidate says of the photographs that another version answers."""

    model: ModelIdentity
    serving: str = Field(description="version that answers now")
    since: datetime | None = Field(description="the first photograph that it answered; null: none yet")
    answered: int
    differing: int = Field(description="those of them with another label than was answered")
    skipped: dict[str, int] = Field(
        description="photographs without its answer, by reason, since the start of the replica that was asked"
    )
    reviewed: CandidateVerdicts = Field(description="of the differing ones")


class CandidateList(AnswerPart):
    """The candidates of all models."""

    candidates: list[CandidateReport]


class RecordPage(AnswerPart):
    """Inspections, the newest first."""

    records: list[InspectionRecord]
    next_before: int | None = Field(description="`before` of the next page; null: this is the last")


# === Reviews ===

ReviewReason = Literal["candidate_differs", "chance", "doubtful", "defect", "asked"]
"""Why somebody is asked about an inspection."""


class ShadowVerdict(AnswerPart):
    """What a candidate says of a photograph that another version answered."""

    model: str
    version: str
    label: str
    score: float = Field(description="1 − P(good)")


class ReviewTask(AnswerPart):
    """An inspection that somebody is asked about."""

    record: InspectionRecord
    why: ReviewReason = Field(
        description="a candidate says something else; drawn by chance; for review, or near the threshold; "
        "called defective; put up again by a person"
    )
    labels: list[str] = Field(description="what it may be called beside `unsure`; the good one first")
    lease_until: datetime = Field(description="nobody else gets it before")
    shadows: list[ShadowVerdict]


class ReviewTasks(AnswerPart):
    """What a session has to look at."""

    tasks: list[ReviewTask] = Field(description="in the order in which they are to be shown")
    waiting: int = Field(description="records that wait, these among them; no more than 10,000 are counted")


class Estimate(AnswerPart):
    """A number that is reckoned from a sample, with its interval of 95 %."""

    value: float | None = Field(description="null: nothing of some kind was reviewed yet, or there is none")
    low: float | None
    high: float | None


class ReviewStatistics(AnswerPart):
    """How right the answers of a time were, as far as people have said so."""

    since: datetime | None
    until: datetime | None
    station: str | None
    inspected: int
    called_good: int
    called_defective: int
    for_review: int = Field(description="called neither")
    drawn: int = Field(description="put up by what was drawn")
    reviewed: int = Field(description="of those drawn; `unsure` among them")
    unsure: int
    defect_rate: Estimate = Field(description="share of the defective among all that were inspected")
    missed: Estimate = Field(description="number of defective ones among those called good")
    miss_rate: Estimate = Field(description="share of those called good among all defective ones")
    false_alarms: Estimate = Field(description="number of good ones among those called defective")
    false_alarm_share: Estimate = Field(description="their share of those called defective")
    notes: list[str] = Field(description="what has to be known to read the numbers")


# === The line ===


class LineInspection(AnswerPart):
    """An inspection in a few words."""

    record_id: int
    inspected_at: datetime
    station: str = Field(description="empty where none was named")
    part_id: str | None
    verdict: Literal["good", "review", "defect"]
    label: str
    score: float
    threshold: float


class LineMiss(AnswerPart):
    """The last photograph of a station that came and was not inspected: nothing is known about its part."""

    missed_at: datetime
    station: str = Field(description="empty where none was named, or the request could not be read that far")
    part_id: str | None
    status: int = Field(description="of HTTP")
    code: str
    detail: str
    followed: bool = Field(description="whether its station has inspected since; of none, any station")


class LineCounts(AnswerPart):
    """How many photographs a shift or a day has had until now."""

    begin: datetime
    end: datetime
    inspected: int
    good: int
    review: int
    defective: dict[str, int] = Field(description="by class")
    not_inspected: int


class ChartHour(AnswerPart):
    """An hour in the chart of the defect rate."""

    hour: datetime = Field(description="when it began")
    inspected: int
    defective: int
    low: float | None = Field(description="lowest rate that is usual; null: too few inspections to tell")
    high: float | None
    out: Literal["high", "low"] | None = Field(description="beyond which limit the rate lies")
    log_odds: float | None = Field(description="mean of the photographs of the model in use; null: none")


class DefectChart(AnswerPart):
    """The defect rate of each hour of the last day, the running one included, with its limits."""

    centre: float | None = Field(description="the rate of the week before; null: too few inspections to tell")
    spread: float | None = Field(description="by how much limits are wider than chance alone makes them")
    hours: list[ChartHour]


class ScoreDrift(AnswerPart):
    """Mean log-odds of the last hours and of the week before, of the model in use."""

    now: float
    before: float
    least: float = Field(description="by how much they differ where scores drift")
    towards: Literal["defective", "good"] | None = Field(description="null: they do not drift")
    hours: int = Field(description="that count as the last ones")


class QuietStation(AnswerPart):
    """A station that inspected regularly and is silent."""

    station: str
    last_at: datetime
    usual_gap_s: float


class LineStatus(AnswerPart):
    """How a line does."""

    at: datetime = Field(description="by the clock of the service, which all times here come from")
    zone: str = Field(description="time zone of the plant")
    station: str | None = Field(description="which one is meant; null: all")
    stations: list[str] = Field(description="of the last week")
    last: LineInspection | None
    misses: list[LineMiss] = Field(
        description="the last one of each station, of this shift and twelve hours before it; the newest first"
    )
    shift: LineCounts | None = Field(description="null: the record cannot be read")
    day: LineCounts | None
    chart: DefectChart | None
    drift: ScoreDrift | None = Field(description="null: too few inspections to tell")
    defects: list[LineInspection] = Field(description="the last ones of the last week, the newest first")
    quiet: list[QuietStation]
    unavailable: str | None = Field(
        description="why the record cannot be read: then this is what one replica knows by itself"
    )


# === What others are told ===


class OutboxEvent(AnswerPart):
    """An event that waits, or was given up."""

    id: int
    station: str = Field(description="empty where none was named")
    created_at: datetime
    attempts: int = Field(description="how often the receiver failed at it, as far as it may be to blame")
    next_at: datetime = Field(description="when it may be tried again")
    error: str | None = Field(description="of the last attempt; null: not tried yet, or not failed")
    event: dict[str, Any] = Field(description="the CloudEvent, as it is sent")


class OutboxSink(AnswerPart):
    """A receiver, and what lies in the outbox for it."""

    name: str
    configured: bool = Field(description="false: it was once, and what waits for it waits for its return")
    waiting: int
    oldest_at: datetime | None = Field(description="of what waits; null: nothing does")
    dead: int = Field(description="how many were given up")
    failing: list[OutboxEvent] = Field(
        description="what stations wait with, each with the first of its events, where it failed"
    )
    dead_letters: list[OutboxEvent] = Field(description="what was given up, the newest first")


class OutboxState(AnswerPart):
    """What is still to be told to others."""

    sinks: list[OutboxSink]


class OutboxChange(AnswerPart):
    """How many events are tried again, or are no more."""

    changed: int
