"""JSON answers about the record: inspections, reviews, the status of the line, the outbox."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from segdec.schemas import Answer, AnswerPart, ImageFacts, MaskAnswer, ModelIdentity

# === Settings ===


class SettingView(AnswerPart):
    """A setting of the service."""

    name: str = Field(description="of the flag, with underscores")
    value: float | int | str | None = Field(description="that counts now; null: none, without limit")
    started: float | int | str | None = Field(description="with which the service was started")
    is_changeable: bool = Field(description="false: only by a flag or a variable at the start")
    changed_by: str | None = Field(None, description="null: the value of the start counts")
    changed_at: datetime | None = None


class SettingList(AnswerPart):
    """The settings of the service."""

    settings: list[SettingView]


# === Inspections ===


class PictureFacts(AnswerPart):
    """The photograph as it was sent."""

    sha256: str
    bytes: int
    format: str = Field(description="jpeg, png, …, detected from the content")
    state: Literal["kept", "expiring", "expired", "lost"] = Field(
        description="kept: available; expired: deleted by the retention rules or by a person; lost: its file "
        "is missing"
    )
    deleted_at: datetime | None = Field(None, description="null: not deleted, or by an earlier version")
    deleted_by: str | None = Field(None, description="a person; null with `deleted_at`: the retention rules")


class Review(AnswerPart):
    """The review of an inspection."""

    label: str = Field(description="`good`, a defect class, or `unsure`")
    reviewer: str
    reviewed_at: datetime
    reason: str | None
    corrected_mask: MaskAnswer | None = Field(description="the corrected mask; null: not changed")


class Draw(AnswerPart):
    """Whether an inspection is queued for review."""

    drawn: bool
    reason: Literal["defect", "review", "near", "chance"] = Field(
        description="the verdict, a score near the threshold, or by chance"
    )
    probability: float = Field(description="sampling probability of such an inspection")


class Refusal(AnswerPart):
    """Why a photograph got no verdict."""

    code: str
    detail: str
    model: ModelIdentity = Field(description="the model that refused it")
    image: ImageFacts
    labels: list[str] = Field(description="classes of the model, the good one first")


class InspectionRecord(AnswerPart):
    """A stored inspection, or a photograph without a verdict that is kept for review."""

    record_id: int = Field(description="in the order of storing")
    inspected_at: datetime
    station: str = Field(description="empty if not given")
    part_id: str | None
    metadata: dict[str, Any]
    client: str = Field(description="name of the API key; empty without one")
    engine: str
    picture: PictureFacts
    answer: Answer | None = Field(description="as it was given, without its mask; null: not inspected")
    refusal: Refusal | None = Field(None, description="why it was not inspected; null: it was")
    distances: dict[str, float] | None = Field(
        None,
        description="of each measure to the training photographs, as a multiple of its limit; null: unknown",
    )
    draw: Draw | None = Field(description="null: not inspected")
    has_heat_map: bool = Field(description="whether the mask scores are stored")
    review: Review | None
    revision: int = Field(description="of the review; also the ETag")


class CandidateVerdicts(AnswerPart):
    """Which model was right in the reviewed differences."""

    candidate: int = 0
    serving: int = Field(0, description="the model that answered")
    neither: int = 0
    unsure: int = Field(0, description="the reviewer could not tell")


class CandidateReport(AnswerPart):
    """How a candidate's predictions differ from the answers."""

    model: ModelIdentity
    serving: str = Field(description="version that answers now")
    since: datetime | None = Field(description="the first photograph that it predicted; null: none yet")
    answered: int
    differing: int = Field(description="predictions with another label than the answer")
    not_inspected: int = Field(
        description="of the differing ones: not inspected because they are unlike its training photographs"
    )
    skipped: dict[str, int] = Field(
        description="photographs without a prediction, by reason, since the start of this replica"
    )
    reviewed: CandidateVerdicts = Field(description="reviews of the differing ones")


class CandidateList(AnswerPart):
    """The candidates of all models."""

    candidates: list[CandidateReport]


class ModelVerdict(AnswerPart):
    """What a version of a model says about a photograph."""

    version: str
    label: str = Field(description="`not_inspected`: no verdict, it is unlike those of the training")
    score: float | None = Field(description="null: not inspected")


class Difference(AnswerPart):
    """A photograph on which a candidate and the version that answered have other labels."""

    record_id: int
    part_id: str | None
    station: str
    inspected_at: datetime
    serving: ModelVerdict
    candidate: ModelVerdict
    reviewed_label: str | None = Field(description="null: not reviewed yet")


class DifferencePage(AnswerPart):
    """Photographs on which a candidate differs, the newest first."""

    model: ModelIdentity = Field(description="the candidate")
    differences: list[Difference]
    next_before: int | None = Field(description="`before` of the next page; null: this is the last")


class RecordPage(AnswerPart):
    """Inspections, the newest first."""

    records: list[InspectionRecord]
    next_before: int | None = Field(description="`before` of the next page; null: this is the last")


class RecordNames(AnswerPart):
    """Names in the record, each list at most the first 1,000 in alphabetical order."""

    stations: list[str] = Field(description="all, or those that contain the text of the request")
    labels: list[str] = Field(description="verdicts with the classes of defects")
    reviewers: list[str]
    metadata: list[str] = Field(description="keys")


class AuditChange(AnswerPart):
    """A change in the audit log."""

    id: int
    at: datetime
    who: str = Field(description="a person, an API key, or a part of the service")
    what: str = Field(description="review, undo, delete a picture, promote, …")
    record_id: int | None = Field(description="of the inspection; null: of none")
    part_id: str | None = Field(description="of that inspection")
    before: dict[str, Any] | None = Field(description="of masks only whether there is one")
    after: dict[str, Any] | None


class AuditPage(AnswerPart):
    """Changes, the newest first."""

    changes: list[AuditChange]
    next_before: int | None = Field(description="`before` of the next page; null: this is the last")


class MessageView(AnswerPart):
    """A message about an inspection to another system."""

    sink: str = Field(description="receiver")
    kind: Literal["inspected", "reviewed", "not_inspected"]
    state: Literal["waiting", "dead", "delivered"] = Field(description="dead: given up")
    delivered_at: datetime | None = Field(description="null: not delivered")
    error: str | None = Field(description="of the last attempt")


class MessageList(AnswerPart):
    """The messages about an inspection; those that were dropped or discarded are missing."""

    messages: list[MessageView]


# === Reviews ===

ReviewReason = Literal["candidate_differs", "chance", "doubtful", "defect", "asked", "not_inspected"]
"""Why an inspection is in the review queue."""


class ShadowVerdict(AnswerPart):
    """A candidate's prediction for a photograph."""

    model: str
    version: str
    label: str
    score: float | None = Field(description="1 − P(good); null: not inspected")


class ReviewTask(AnswerPart):
    """An inspection to be reviewed."""

    record: InspectionRecord
    why: ReviewReason = Field(
        description="a candidate differs; sampled by chance; `review`, or near the threshold; called "
        "defective; queued again by a person; without a verdict"
    )
    labels: list[str] = Field(description="possible labels besides `unsure`; the good one first")
    lease_until: datetime = Field(description="until then no other session gets it")
    shadows: list[ShadowVerdict]


class ReviewTasks(AnswerPart):
    """The tasks of a session."""

    tasks: list[ReviewTask] = Field(description="in the order in which to show them")
    waiting: int = Field(description="length of the queue including these; at most 10,000 are counted")


class Estimate(AnswerPart):
    """An estimate from a sample with its 95 % interval."""

    value: float | None = Field(description="null: a stratum has no reviews yet, or there are no inspections")
    low: float | None
    high: float | None


class ReviewStatistics(AnswerPart):
    """Error rates of a period, estimated from reviews."""

    since: datetime | None
    until: datetime | None
    station: str | None
    inspected: int
    called_good: int
    called_defective: int
    for_review: int = Field(description="verdict `review`")
    drawn: int = Field(description="queued by sampling")
    reviewed: int = Field(description="reviewed ones among them, `unsure` included")
    unsure: int
    defect_rate: Estimate = Field(description="share of defective parts among all inspected")
    missed: Estimate = Field(description="number of defective parts among those called good")
    miss_rate: Estimate = Field(description="share of those called good among all defective parts")
    false_alarms: Estimate = Field(description="number of good parts among those called defective")
    false_alarm_share: Estimate = Field(description="their share of those called defective")
    notes: list[str] = Field(description="caveats of the estimates")


class ReviewerAgreement(AnswerPart):
    """How often two people who reviewed the same photograph decided alike."""

    reviewed_twice: int = Field(description="pairs of reviews by different people, of the newest inspections")
    agreed: int = Field(description="pairs in which both said good, or both a defect")


# === The line ===


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


class LineMiss(AnswerPart):
    """The last photograph of a station that was not inspected."""

    missed_at: datetime
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
    near_limit: bool = Field(description="whether the highest is at least half of its limit")


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
    misses: list[LineMiss] = Field(
        description="the last one of each station in this shift and the twelve hours before; newest first"
    )
    shift: LineCounts | None = Field(description="null: the record cannot be read")
    day: LineCounts | None
    chart: DefectChart | None
    drift: ScoreDrift | None = Field(description="null: too few inspections")
    training: list[TrainingDistance] = Field(
        [], description="of each station, the highest first; without those with too few photographs"
    )
    defects: list[LineInspection] = Field(description="the last ones of the last week, newest first")
    quiet: list[QuietStation]
    unavailable: str | None = Field(
        description="why the record cannot be read; the answer then has only what this replica knows"
    )


# === Trends ===


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


# === Outbox ===


class OutboxEvent(AnswerPart):
    """A waiting event or dead letter."""

    id: int
    station: str = Field(description="empty if not given")
    created_at: datetime
    attempts: int = Field(description="failed attempts that may be the event's fault")
    next_at: datetime = Field(description="earliest time of the next attempt")
    error: str | None = Field(description="of the last attempt; null: none failed")
    event: dict[str, Any] = Field(description="the CloudEvent")


class OutboxSink(AnswerPart):
    """The queue of a receiver."""

    name: str
    remark: str | None = Field(
        None, description="about the connection of this process, for example that a broker has no MQTT 5"
    )
    configured: bool = Field(description="false: not in the settings any more; its events stay queued")
    waiting: int
    oldest_at: datetime | None = Field(description="of the waiting events; null: none")
    dead: int = Field(description="number of dead letters")
    failing: list[OutboxEvent] = Field(description="first waiting event of each station whose sending fails")
    dead_letters: list[OutboxEvent] = Field(description="events that were given up, newest first")


class OutboxState(AnswerPart):
    """The events that are still to be sent."""

    sinks: list[OutboxSink]


class OutboxChange(AnswerPart):
    """Number of requeued or discarded events."""

    changed: int
