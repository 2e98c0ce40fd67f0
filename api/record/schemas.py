"""JSON answers about the record: inspections, reviews, the status of the line, the outbox."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from segdec.schemas import Answer, AnswerPart, ImageFacts, MaskAnswer, ModelIdentity


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
    reason: Literal["defect", "review", "tolerated", "near", "chance"] = Field(
        description="the verdict, defects that an inspection plan allows, a score near the threshold, or by "
        "chance"
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
    unlike_training: bool = Field(
        False, description="inspected with this warning, so that it can be confirmed as usual"
    )
    draw: Draw | None = Field(description="null: not inspected")
    has_heat_map: bool = Field(description="whether the mask scores are stored")
    review: Review | None
    revision: int = Field(description="of the review; also the ETag")


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


ReviewReason = Literal["candidate_differs", "chance", "doubtful", "defect", "asked", "not_inspected"]
"""Why an inspection is in the review queue."""
