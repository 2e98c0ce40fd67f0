"""What the inspection service answers, as JSON: written by the service, read by the client.

`Answer` is what a `segdec.postprocessing.Prediction` becomes on the wire. Its parts are no other judgements:
`Decision` holds label and scores of the prediction, `MaskAnswer` its mask, `RegionAnswer` one of its regions.
The fields of `Answer` are final; a client ignores fields that a newer service adds.
"""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from segdec.decoding.integrity import Integrity

MaskForm = Literal["none", "png", "rle", "polygon", "scores", "classes", "class_rle"]
"""Forms in which a mask can be asked for; the last two of models with a mask for each class of defects."""

RecordedMaskForm = Literal["none", "png", "rle", "polygon", "classes", "class_rle"]
"""Forms that a mask can still be given in later: of the scores, only the mask is kept."""

MaskSpace = Literal["input", "model"]
"""Grids on which a mask can be asked for: the photograph's pixels or the network's own.

The network's has one score for 8 × 8 px of its input, or for fewer where the model's `mask_stride` says so.
"""


class AnswerPart(BaseModel):
    """Base of everything answered."""

    model_config = ConfigDict(frozen=True)


# === Answer ===


class ModelIdentity(AnswerPart):
    """Which model answered."""

    name: str
    version: str
    sha256: str | None = Field(description="of the artifact's manifest; null for a model held in memory")


class ImageFacts(AnswerPart):
    """The photograph as it was decoded, upright."""

    width: int = Field(description="px")
    height: int = Field(description="px")
    bit_depth: int
    format: str = Field(description="judged from the content: jpeg, png, …; pixels for a tensor")
    integrity: Integrity = Field(
        "unchecked",
        description="checked: checksums within the file cover all that its pixels depend on, and are right; "
        "unchecked: the format has none, so damage may have gone unnoticed",
    )


class Decision(AnswerPart):
    """Label and score of the prediction: `good` if score < threshold, else the most probable defect class.

    Of a model with a mask for each class it is that of the region with the highest score.

    Where there is a review threshold, the label is `review` from it up to the threshold.
    """

    label: str
    score: float = Field(description="1 − P(good)")
    threshold: float = Field(description="the one used: score from which a photograph is defective")
    review_threshold: float | None = Field(
        None, description="score from which it is at least for review; null: the model asks for none"
    )
    probabilities: dict[str, float] = Field(description="by class; they sum to 1")


class RunLengths(AnswerPart):
    """A mask as compressed run lengths of COCO; `pycocotools.mask.decode` reads it."""

    size: tuple[int, int] = Field(description="height, width, px")
    counts: str


class PolygonAnswer(AnswerPart):
    """One connected part of a mask or an area, as contours through the centres of its border pixels."""

    outer: list[tuple[int, int]] = Field(description="x, y, px")
    holes: list[list[tuple[int, int]]] = Field(
        description="contours of the holes, through the pixels of the part around them"
    )


class MaskAnswer(AnswerPart):
    """The prediction's mask: the defect's pixels."""

    encoding: Literal["png", "rle", "polygon", "scores", "classes", "class_rle"] = Field(
        description="png: base64 of an 8-bit grey PNG, 255 = defect, 0 = good; rle: COCO run lengths; "
        "polygon: contours; scores: base64 of an 8-bit grey PNG, mask score × 255, rounded; classes: base64 "
        "of an 8-bit grey PNG, the class's place in `labels`; class_rle: COCO run lengths by class"
    )
    width: int = Field(description="px")
    height: int = Field(description="px")
    space: MaskSpace = Field(description="input: the photograph's pixels; model: the network's own grid")
    threshold: float = Field(description="mask score from which a pixel belongs to a defect")
    data: str | RunLengths | list[PolygonAnswer] | dict[str, RunLengths]
    labels: list[str] | None = Field(
        None, description="names of the values of the encodings classes and class_rle, the good one first"
    )


class RegionAnswer(AnswerPart):
    """A region of the prediction: one connected part of its mask."""

    bbox: tuple[int, int, int, int] = Field(description="x, y, width, height, px")
    area_px: int
    score_max: float
    polygon: list[tuple[int, int]] = Field(description="outer contour as x, y, px")
    label: str | None = Field(
        None, description="its class; null: the model has one mask for all classes of defects"
    )


class Timing(AnswerPart):
    """Where the time went, milliseconds."""

    queue: float = Field(description="waiting for a thread to decode it and for the network")
    decode: float = Field(description="decoding and fitting the photograph to the network")
    infer: float = Field(description="running the network on the batch")
    encode: float = Field(description="mask, regions and this answer")
    total: float = Field(description="from the request's first byte to the answer, reading the body included")


class Answer(AnswerPart):
    """What the service says about one photograph: its prediction, and how it came about."""

    id: str = Field(description="the request's id, also in the header X-Request-ID")
    model: ModelIdentity
    image: ImageFacts
    decision: Decision
    mask: MaskAnswer | None = Field(description="null if not asked for")
    regions: list[RegionAnswer]
    timing_ms: Timing
    batch_size: int = Field(description="photographs that went through the network together")
    warnings: list[str] = Field(description="what was done to the photograph that its sender may not expect")
    inspected_area: list[PolygonAnswer] | None = Field(
        None,
        description="outside of these contours, on the photograph's pixels, nothing was looked at; null: all "
        "of it was",
    )


class InspectAnswer(Answer):
    """What the service says about a photograph that it keeps a record of."""

    record_id: int | None = Field(
        description="under which it is found again: answered only once it is durable; null: not recorded"
    )
    repeated: bool = Field(
        False, description="the answer of an earlier request about the same is given again, under its `id`"
    )


# === The record ===


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
    misses: list[LineMiss] = Field(description="the last one of each station in this shift, the newest first")
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


# === Errors ===


class Problem(AnswerPart):
    """An error, as `application/problem+json` (RFC 9457)."""

    type: str = Field(default="about:blank", description="the status says what kind of problem it is")
    title: str = Field(description="the status in words")
    status: int
    detail: str = Field(description="what arrived, what was expected, what to do")
    code: str = Field(description="stable word for programs, for example `truncated_image`")
    request_id: str


# === Several photographs ===


class BatchItem(AnswerPart):
    """What became of one photograph of several: an answer or a problem, never both."""

    name: str = Field(description="of the file as it was sent")
    answer: Answer | None
    problem: Problem | None


class BatchAnswer(AnswerPart):
    """What the service says about several photographs, in the order in which they were sent."""

    items: list[BatchItem]


# === Models and health ===


class ModelDetail(ModelIdentity):
    """A served model with its manifest."""

    labels: list[str] = Field(description="names of the version that may move, for example stable or canary")
    manifest: dict[str, Any] = Field(description="network, input, classes, thresholds, metrics, files")
    max_pixels: int | None = Field(
        None, description="height × width of the largest photograph that it is given here; null: not told"
    )
    limited_by: str | None = Field(
        None,
        description="what that comes from: `max_pixels`, the setting, or `memory` or `deadline`, measured",
    )


class ModelList(AnswerPart):
    """All served models."""

    models: list[ModelDetail]


class ReloadTiming(AnswerPart):
    """What a reload took, milliseconds."""

    load: float = Field(description="reading, checking the checksums, and building the network")
    self_test: float = Field(
        description="comparing its answer to the stored photograph with the stored answer"
    )
    warm: float = Field(description="running every batch size once")
    drain: float = Field(description="waiting for the requests that the replaced model was answering")


class ReloadAnswer(AnswerPart):
    """What a reload did."""

    models: list[ModelDetail] = Field(description="what is served under the name now")
    loaded: list[str] = Field(description="versions that are new or have changed")
    kept: list[str] = Field(description="versions that were served before and have not changed")
    removed: list[str] = Field(description="versions that are served no more")
    timing_ms: ReloadTiming


class Health(AnswerPart):
    """State of the service."""

    status: Literal["alive", "ready"]
