"""JSON answers of the inspection service, written by the service and read by the client.

`Answer` is the JSON form of a `segdec.inference.postprocessing.Prediction`. Its fields never change. New ones
have a default, because the record validates stored answers. A client ignores unknown fields.
"""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from segdec.imaging.integrity import Integrity
from segdec.plan.severity import Severity

MaskForm = Literal["none", "png", "rle", "polygon", "scores", "classes", "class_rle"]
"""Forms of a mask; the last two only for models with a mask per defect class."""

RecordedMaskForm = Literal["none", "png", "rle", "polygon", "classes", "class_rle"]
"""Forms of a recorded mask; scores are not stored."""

MaskSpace = Literal["input", "model"]
"""Grids of a mask: the photograph's pixels, or the network's with one score per `mask_stride`² pixels."""


class AnswerPart(BaseModel):
    """Base of all answers."""

    model_config = ConfigDict(frozen=True)


# === Answer ===


class ModelIdentity(AnswerPart):
    """The model that answered."""

    name: str
    version: str
    sha256: str | None = Field(description="SHA-256 of the artifact's manifest; null for a model in memory")


class ImageFacts(AnswerPart):
    """The decoded, upright photograph."""

    width: int = Field(description="px")
    height: int = Field(description="px")
    bit_depth: int
    format: str = Field(description="detected from the content: jpeg, png, …; pixels for a tensor")
    integrity: Integrity = Field(
        "unchecked",
        description="checked: checksums in the file cover all that its pixels depend on, and are correct; "
        "unchecked: the format has no checksums",
    )


class Decision(AnswerPart):
    """Label and score of the prediction: `good` if score < threshold, else the most probable defect class.

    For a model with a mask per class it is the class of the region with the highest score. With a review
    threshold, the label is `review` for scores from the review threshold up to the threshold. With the
    warning `unlike_training` it is `review` for all scores below the threshold.

    If an inspection plan decides, `label` is its verdict and `model_label` the label described above.
    """

    label: str
    model_label: str | None = Field(None, description="label of the model; null: no inspection plan decided")
    score: float = Field(description="1 − P(good)")
    threshold: float = Field(description="score from which this photograph is defective")
    review_threshold: float | None = Field(None, description="score from which it needs review; null: none")
    unlike_training: bool = Field(
        False, description="whether the photograph is unlike those of the training, so that it is never good"
    )
    probabilities: dict[str, float] = Field(description="by class; they sum to 1")


class RunLengths(AnswerPart):
    """A mask as compressed COCO run lengths, for `pycocotools.mask.decode`."""

    size: tuple[int, int] = Field(description="height, width, px")
    counts: str


class PolygonAnswer(AnswerPart):
    """One connected part of a mask or area, as contours along the edges of its pixels.

    Pixel x, y is the square from x, y to x + 1, y + 1. Records from before version 0.1.0 have contours
    through the centres of border pixels instead.
    """

    outer: list[tuple[int, int]] = Field(description="x, y, px")
    holes: list[list[tuple[int, int]]] = Field(description="contours of the holes")


class MaskAnswer(AnswerPart):
    """The prediction's mask."""

    encoding: Literal["png", "rle", "polygon", "scores", "classes", "class_rle"] = Field(
        description="png: base64 of an 8-bit grey PNG, 255 = defect, 0 = good; rle: COCO run lengths; "
        "polygon: contours; scores: base64 of an 8-bit grey PNG, mask score × 255, rounded; classes: base64 "
        "of an 8-bit grey PNG, the class's index in `labels`; class_rle: COCO run lengths by class"
    )
    width: int = Field(description="px")
    height: int = Field(description="px")
    space: MaskSpace = Field(description="input: the photograph's pixels; model: the network's own grid")
    threshold: float = Field(
        description="mask score from which a pixel belongs to a defect: that of the model, higher for a "
        "photograph with high mask scores, lower if the photograph is defective and does not reach it"
    )
    data: str | RunLengths | list[PolygonAnswer] | dict[str, RunLengths]
    labels: list[str] | None = Field(
        None, description="class names for the encodings classes and class_rle, the good one first"
    )


class RegionAnswer(AnswerPart):
    """A region of the prediction: one connected part of its mask."""

    bbox: tuple[int, int, int, int] = Field(description="x, y, width, height, px")
    area_px: int
    score_max: float
    polygon: list[tuple[int, int]] = Field(
        description="outer contour as x, y, px, along the edges of pixels as in PolygonAnswer; it encloses "
        "the holes, too"
    )
    label: str | None = Field(None, description="its class; null: the model has one mask for all classes")
    holes: list[list[tuple[int, int]]] = Field(default=[], description="contours of its holes, as `polygon`")


class PlanSize(AnswerPart):
    """A measured size or number, and the limits between which the true one is."""

    value: float
    low: float
    high: float | None = Field(description="null: unknown")
    unit: str = Field(description="mm, px, mm², px², or empty for a number of defects")


class PlanFinding(AnswerPart):
    """What the plan says about one defect, or about all in a zone."""

    severity: Severity = Field(description="what follows; of one that is not certain at most `review`")
    cause: str = Field(
        description="rule, or why there is a finding without a rule: otherwise, outside_zones, unexplained, "
        "too_many_defects, unlike_training"
    )
    certain: bool = Field(description="whether it holds for all possible sizes and places of the defects")
    zone: str | None = Field(description="null: the whole part")
    rule: int | None = Field(description="number of the rule in its zone, from 0; null: none")
    condition: str | None = Field(description="limit of the rule: longer_than, more_than, …; null: none")
    defect: int | None = Field(description="number in `defects`, from 0; null: about several defects")
    classes: list[str] = Field(description="of the rule or the defect; empty: unknown")
    measured: PlanSize | None
    limit: float | None = Field(description="in the unit of `measured`")
    sentence: str


class PlanDefect(AnswerPart):
    """A defect that the plan measured."""

    bbox: tuple[int, int, int, int] = Field(description="x, y, width, height, px")
    classes: list[str] = Field(description="most frequent first; empty: the model has one mask for all")
    score_max: float
    length: PlanSize
    width: PlanSize
    area: PlanSize
    zones: list[str] = Field(description="zones with rules that it touches")
    outside: bool | None = Field(description="whether it is outside all zones; null: uncertain")


class PlanVerdict(AnswerPart):
    """What an inspection plan decided about a photograph, and why."""

    severity: Severity = Field(description="of the worst finding: accept, note, review, reject or stop")
    sentence: str = Field(description="the finding that decided, with its measure; empty: no defect")
    findings: list[PlanFinding] = Field(description="the worst first; the first one decided")
    finding_count: int = Field(description="of all findings; `findings` may have fewer")
    defects: list[PlanDefect] = Field(description="the largest first; empty if the model found none")
    defect_count: int = Field(description="of all defects; `defects` may have fewer")


class PlanAnswer(PlanVerdict):
    """What the active inspection plan decided, and why."""

    name: str
    version: int
    sha256: str = Field(description="of the stored plan")


class Timing(AnswerPart):
    """Duration of each step, milliseconds."""

    queue: float = Field(description="waiting for a decoding thread and for the network")
    decode: float = Field(description="decoding and preprocessing")
    infer: float = Field(description="running the network on the batch")
    encode: float = Field(description="postprocessing and encoding of this answer")
    total: float = Field(description="from the request's first byte to the answer")


class Answer(AnswerPart):
    """The prediction for one photograph, with details of its processing."""

    id: str = Field(description="the request's id, also in the header X-Request-ID")
    model: ModelIdentity
    image: ImageFacts
    decision: Decision
    mask: MaskAnswer | None = Field(description="null if not requested")
    regions: list[RegionAnswer]
    timing_ms: Timing
    batch_size: int = Field(description="photographs in the same batch")
    warnings: list[str] = Field(description="unexpected changes to the photograph")
    inspected_area: list[PolygonAnswer] | None = Field(
        None, description="contours of the inspected area, px; null: the whole photograph"
    )
    plan: PlanAnswer | None = Field(None, description="null: no inspection plan decided")


class InspectAnswer(Answer):
    """The answer for a photograph that is recorded."""

    record_id: int | None = Field(description="id of the durable record; null: not recorded")
    repeated: bool = Field(
        False, description="whether this answers an earlier request for the same photograph, with its `id`"
    )


# === Errors ===


class Problem(AnswerPart):
    """An error, as `application/problem+json` (RFC 9457)."""

    type: str = Field(default="about:blank", description="the status defines the kind of problem")
    title: str = Field(description="the status as text")
    status: int
    detail: str = Field(description="what arrived, what was expected, what to do")
    code: str = Field(description="stable error code for programs, for example `truncated_image`")
    values: dict[str, str | int | float] = Field({}, description="names and numbers of the detail")
    request_id: str


# === Several photographs ===


class BatchItem(AnswerPart):
    """The result for one of several photographs: an answer or a problem, never both."""

    name: str = Field(description="name of the sent file")
    answer: Answer | None
    problem: Problem | None


class BatchAnswer(AnswerPart):
    """The results for several photographs, in the order of the request."""

    items: list[BatchItem]


# === Models and health ===


class ThresholdsInUse(AnswerPart):
    """The thresholds by which a served model decides now."""

    score: float = Field(description="image score from which a photograph is a defect")
    review: float | None = Field(description="image score from which it is for review; null: no review")
    of_model: bool = Field(description="true: those of the manifest; false: an administrator set them")


class ConfirmationEntry(AnswerPart):
    """Photographs that a person confirmed as usual."""

    number: int = Field(description="revision of the limits that it made")
    who: str = Field(description="a person or an API key; empty: unknown")
    at: datetime
    records: list[int] = Field(description="record ids of the photographs")


class ConfirmedPhotographs(AnswerPart):
    """Photographs that people confirmed as usual. They widen the limits of the manifest."""

    revision: int = Field(description="number of changes; 0: none")
    count: int = Field(description="number of photographs")
    entries: list[ConfirmationEntry] = Field(description="the oldest first")


class ActivePlanAnswer(AnswerPart):
    """The inspection plan of a station."""

    station: str = Field(description="empty: all stations without a plan of their own")
    name: str
    version: int
    sha256: str = Field(description="of the stored plan")


class PlanSummary(AnswerPart):
    """A stored version of a plan."""

    version: int
    name: str
    sha256: str = Field(description="of the stored plan, which never changes")
    created_at: datetime
    author: str
    reason: str
    stations: list[str] = Field(
        description="where it is active; an empty name stands for all stations without a plan of their own"
    )


class SimulatedPart(AnswerPart):
    """A recorded part that a plan judged."""

    record_id: int
    inspected_at: datetime
    station: str
    part_id: str | None
    reviewed_label: str | None = Field(description="null: not reviewed")
    version: str = Field(description="of the model that inspected it")
    label: str = Field(description="the verdict that was given")
    new_label: str = Field(description="that of the plan; not_inspected: it cannot decide")
    problem: str = Field(description="why the plan cannot decide; empty: it can")
    verdict: PlanVerdict | None = Field(description="null: the plan cannot decide")

    @property
    def reason(self) -> str:
        """Why the plan decides so, or why it cannot."""
        return self.problem if self.verdict is None else self.verdict.sentence


class PlanSimulation(AnswerPart):
    """How a plan would have judged recorded parts, the newest first."""

    model_version: str = Field(description="of the model that inspected parts again")
    judged: int = Field(description="parts; those of the three following counts and of `parts` together")
    good: int = Field(description="the model called them good, which stays so by any plan")
    good_reviewed: dict[str, int] = Field(description="by label, how many parts of `good` were reviewed")
    deleted: int = Field(description="not good, and the photograph was deleted or is lost")
    not_inspected: int = Field(description="got no verdict")
    parts: list[SimulatedPart] = Field(description="those that the model inspected again")
    next_before: int | None = Field(description="`before` of the next request; null: there are no more parts")


class ModelDetail(ModelIdentity):
    """A served model with its manifest."""

    aliases: list[str] = Field(description="of the version, such as stable or canary; they can be moved")
    signed_by: str | None = Field(
        None, description="trusted key that signed the model; null: the service requires no signature"
    )
    manifest: dict[str, Any] = Field(description="network, input, classes, thresholds, metrics, files")
    thresholds: ThresholdsInUse | None = Field(
        None, description="thresholds in use; absent: the service is older and uses those of the manifest"
    )
    confirmed: ConfirmedPhotographs | None = Field(
        None, description="photographs confirmed as usual; null: none, or the service is older"
    )
    plans: list[ActivePlanAnswer] = Field([], description="active inspection plans; empty: none")
    max_pixels: int | None = Field(None, description="limit on height × width of a photograph; null: unknown")
    limited_by: str | None = Field(
        None, description="origin of the limit: the setting `max_pixels` or the measured `memory`"
    )


class ModelList(AnswerPart):
    """All served models."""

    models: list[ModelDetail]


class ReloadTiming(AnswerPart):
    """Duration of a reload, milliseconds."""

    load: float = Field(description="reading and checking the files, building the network")
    self_test: float = Field(description="self-test with the stored photograph")
    warm: float = Field(description="warm-up: running every batch size once")
    drain: float = Field(description="waiting for pending requests of the replaced model")


class ReloadAnswer(AnswerPart):
    """The result of a reload."""

    models: list[ModelDetail] = Field(description="models now served under the name")
    loaded: list[str] = Field(description="new or changed versions")
    kept: list[str] = Field(description="unchanged versions that were served before")
    removed: list[str] = Field(description="versions that are no longer served")
    timing_ms: ReloadTiming


class Health(AnswerPart):
    """State of the service."""

    status: Literal["alive", "ready", "degraded"]
    problems: list[str] = Field([], description="what fails although photographs are inspected")
    codes: list[str] = Field([], description="the code of each problem, for programs: `disk_full`")
