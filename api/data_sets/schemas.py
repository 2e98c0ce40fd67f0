"""Answers about data sets, as JSON."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from segdec.annotation_content import AnnotationContent
from segdec.data_set_schemas import DataSetSummary, PhotographSummary, Split
from segdec.schemas import AnswerPart

Source = Literal["drawn", "imported", "proposed", "reviewed"]
"""Where an annotation comes from: a person drew it, it came with the photograph, a person accepted what was
proposed, or it is the review of an inspection.
"""


ProposalReason = Literal["uncertain", "unlike_training", "different", "sure"]


class Proposal(AnswerPart):
    """What a model says about a photograph without a label; people decide."""

    label: str | None = Field(
        description="good or a class of the data set; null: the model refused the photograph"
    )
    score: float | None = Field(description="1 − P(good)")
    model: str
    version: str
    reason: ProposalReason = Field(
        description="uncertain: the score is close to the threshold; unlike_training: the photograph is "
        "unlike those of the training; different: the model is sure, but the photograph differs from those "
        "that are labelled, so it comes before some that are uncertain"
    )
    has_mask: bool


class DataSetCounts(AnswerPart):
    """Photographs of a data set. `photographs` are those that are not removed."""

    photographs: int = 0
    labelled: int = 0
    unlabelled: int = 0
    removed: int = 0
    labels: dict[str, int] = Field({}, description="by label: good, classes of defects, ignore")


class DataSet(DataSetSummary):
    """A data set."""

    created_at: datetime
    created_by: str = Field(description="user or key; empty if unknown")
    counts: DataSetCounts
    latest_version: int | None = Field(description="null: there is none")


class DataSetList(AnswerPart):
    """All data sets, by name."""

    data_sets: list[DataSet]


class StoredPhotograph(PhotographSummary, AnnotationContent):
    """A photograph of a data set with its latest annotation."""

    sha256: str
    part: str = Field(description="photographs of a part stay in one split; empty: unknown")
    split: Split | None = Field(
        description="that it came with; left_out: the others came with a split, this one did not; null: none"
    )
    bytes: int
    format: str
    width: int = Field(description="px, upright")
    height: int
    has_mask: bool
    record_id: int | None = Field(description="of the inspection that it comes from; null: of none")
    added_at: datetime
    added_by: str
    removed_at: datetime | None = Field(description="null: not removed")
    removed_by: str | None
    proposal: Proposal | None = Field(description="null: it is labelled, or nothing was proposed")
    proposed_label: str | None = Field(
        description="by the latest run of a model, also if it got a label since; null: none"
    )
    opened_by: str | None = Field(description="who has it open to label it; empty if unknown; null: nobody")


class AddedPhotographAnswer(AnswerPart):
    """The outcome of sending a photograph."""

    outcome: Literal["added", "restored", "present"] = Field(
        description="restored: it had been removed; present: the data set has it already, nothing changed"
    )
    photograph: StoredPhotograph
    warnings: list[str] = Field(description="what may be unexpected, for example a rotation")


class PhotographPage(AnswerPart):
    """Photographs in the order in which they were added."""

    photographs: list[StoredPhotograph]
    next_after: int | None = Field(description="`after` of the next page; null: this is the last one")


class Annotation(AnnotationContent):
    """What a person decided about a photograph."""

    id: int
    at: datetime
    author: str = Field(description="user or key")
    has_mask: bool
    source: Source


class AnnotationPage(AnswerPart):
    """Annotations of a photograph, the newest first."""

    annotations: list[Annotation]
    next_before: int | None = Field(description="`before` of the next page; null: this is the last one")


class LeasedPhotographs(AnswerPart):
    """Photographs that only this session may label until its lease ends."""

    photographs: list[StoredPhotograph] = Field(description="empty: every other one that matches is open")
    leased_until: datetime
    unlabelled: int = Field(description="photographs of the data set without a label")


class AddedParts(AnswerPart):
    """The outcome of adding recorded photographs."""

    added: int
    restored: int = Field(description="had been removed")
    present: int = Field(description="were in the data set already")
    gone: int = Field(description="their photograph was deleted or is lost")
    annotated: int = Field(description="got the review of the inspection as annotation")
    next_before: int | None = Field(description="`before` of the next request; null: all are added")


class VersionCounts(AnswerPart):
    """What a version contains."""

    photographs: int
    labels: dict[str, int] = Field(description="photographs by label")
    masks: int
    parts: int = Field(description="groups that stay in one split; a photograph without a part is its own")


class Version(AnswerPart):
    """A version of a data set; it never changes."""

    number: int
    created_at: datetime
    created_by: str
    note: str
    digest: str = Field(description="SHA-256 of the manifest, hexadecimal; equal content has the same digest")
    classes: list[str]
    counts: VersionCounts


class VersionList(AnswerPart):
    """The versions of a data set, the newest first."""

    versions: list[Version]


class ComparedPhotograph(AnswerPart):
    """A photograph in which two versions differ."""

    sha256: str
    name: str
    name_before: str | None = Field(description="null: not in the first version")
    label_before: str | None = Field(description="null: not in the first version")
    label_after: str | None = Field(description="null: not in the second version")
    mask_changed: bool
    split_changed: bool
    part_changed: bool


class VersionComparison(AnswerPart):
    """In what two versions of a data set differ."""

    from_version: int
    to_version: int
    added: int
    removed: int
    relabelled: int
    masks_changed: int = Field(description="of photographs that are in both")
    splits_changed: int = Field(description="of photographs that are in both")
    parts_changed: int = Field(description="photographs in both with another part")
    renamed: int = Field(description="photographs in both with another name")
    unchanged: int
    photographs: list[ComparedPhotograph] = Field(description="the first 500 that differ, by name")
