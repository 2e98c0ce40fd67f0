"""What the service and its clients exchange about data sets, as JSON."""

from typing import Literal

from pydantic import Field

from segdec.schemas import AnswerPart

Split = Literal[
    "train",
    "val",
    "test",
    "fold_1",
    "fold_2",
    "fold_3",
    "fold_4",
    "fold_5",
    "fold_6",
    "fold_7",
    "fold_8",
    "fold_9",
    "fold_10",
    "left_out",
]
"""The words of split files, and that the split of a data set ignores a photograph."""


class DataSetSummary(AnswerPart):
    """A data set."""

    id: int
    name: str
    classes: list[str] = Field(description="of defects; the first has the mask value 1; 255 = ignored area")


class PhotographSummary(AnswerPart):
    """A photograph of a data set with its latest label."""

    id: int
    name: str
    label: str | None = Field(description="good, a class of defects, or ignore; null: not labelled")
    annotation_id: int | None = Field(description="the latest annotation; null: never labelled")


class KnownPhotograph(PhotographSummary):
    """A photograph that the data set has already."""

    sha256: str
    split: Split | None = Field(description="the published split that it came with; null: none")
    is_removed: bool


class MissingPhotographs(AnswerPart):
    """Which of the named photographs the data set does not have."""

    missing: list[str] = Field(description="SHA-256 of each, hexadecimal")
    present: list[KnownPhotograph] = Field(description="the others, also those that were removed")
