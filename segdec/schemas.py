"""What the inspection service answers, as JSON: written by the service, read by the client.

`Answer` is what a `segdec.inference.postprocessing.Prediction` becomes on the wire. Its parts are no other
judgements: `Decision` holds label and scores of the prediction, `MaskAnswer` its mask, `RegionAnswer` one of
its regions. The fields of `Answer` are final; a client ignores fields that a newer service adds.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from segdec.imaging.integrity import Integrity

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
