"""What the service takes and answers, as JSON. The fields of `Answer` are final."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from segdec.suggestions import nearest


class Schema(BaseModel):
    """Base of everything sent and received."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# === Question ===


class PredictParameters(Schema):
    """Query of a prediction."""

    threshold: Annotated[float, Field(ge=0.0, le=1.0)] | None = Field(
        None, description="image score from which a photograph is a defect; default: the model's own"
    )
    mask: Literal["none", "png"] = Field("png", description="form of the mask in the answer")
    space: Literal["input"] = Field("input", description="the mask has the size of the photograph")

    @model_validator(mode="before")
    @classmethod
    def _name_nearest(cls, values: Any) -> Any:
        for name in values if isinstance(values, dict) else ():
            if name not in cls.model_fields:
                meant = nearest(name, cls.model_fields)
                raise ValueError(f"unknown parameter '{name}'; did you mean '{meant}'?")
        return values


# === Answer ===


class ModelIdentity(Schema):
    """Which model answered."""

    name: str
    version: str
    sha256: str | None = Field(description="of the artifact's manifest; null for a model held in memory")


class ImageFacts(Schema):
    """The photograph as it was decoded, upright."""

    width: int = Field(description="px")
    height: int = Field(description="px")
    bit_depth: int
    format: str = Field(description="judged from the content: jpeg, png, …")


class Decision(Schema):
    """The verdict: `good` when score < threshold, else the most probable defect class."""

    label: str
    score: float = Field(description="1 − P(good)")
    threshold: float = Field(description="the one used")
    probabilities: dict[str, float] = Field(description="by class; they sum to 1")


class MaskAnswer(Schema):
    """The defect's pixels."""

    encoding: Literal["png"] = Field(description="png: base64 of an 8-bit grey PNG, 255 = defect, 0 = good")
    width: int = Field(description="px")
    height: int = Field(description="px")
    space: Literal["input"]
    threshold: float = Field(description="mask score from which a pixel belongs to a defect")
    data: str


class RegionAnswer(Schema):
    """One connected part of the mask."""

    bbox: tuple[int, int, int, int] = Field(description="x, y, width, height, px")
    area_px: int
    score_max: float
    polygon: list[tuple[int, int]] = Field(description="outer contour as x, y, px")


class Timing(Schema):
    """Where the time went, milliseconds."""

    queue: float = Field(description="waiting for the inference thread")
    decode: float
    infer: float = Field(description="preparation, network and post-processing")
    encode: float
    total: float = Field(description="from the request's first byte to the answer, reading the body included")


class Answer(Schema):
    """What the service says about one photograph."""

    id: str = Field(description="the request's id, also in the header X-Request-ID")
    model: ModelIdentity
    image: ImageFacts
    decision: Decision
    mask: MaskAnswer | None = Field(description="null when not asked for")
    regions: list[RegionAnswer]
    timing_ms: Timing
    batch_size: int = Field(description="photographs that went through the network together")
    warnings: list[str] = Field(description="what was done to the photograph that its sender may not expect")


# === Models and health ===


class ModelDetail(ModelIdentity):
    """A served model with its manifest."""

    manifest: dict[str, Any] = Field(description="network, input, classes, thresholds, metrics, files")


class ModelList(Schema):
    """All served models."""

    models: list[ModelDetail]


class Health(Schema):
    """State of the service."""

    status: Literal["alive", "ready"]


# === Errors ===


class Problem(Schema):
    """An error, as `application/problem+json` (RFC 9457)."""

    type: str = Field(default="about:blank", description="the status says what kind of problem it is")
    title: str = Field(description="the status in words")
    status: int
    detail: str = Field(description="what arrived, what was expected, what to do")
    code: str = Field(description="stable word for programs, for example `truncated_image`")
    request_id: str
