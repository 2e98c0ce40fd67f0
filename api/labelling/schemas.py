"""Answers about regions from clicks, as JSON."""

from pydantic import Field

from segdec.schemas import AnswerPart


class ClickedRegion(AnswerPart):
    """The region that clicks describe: its bounding box, and its mask inside the box."""

    left: int = Field(description="px")
    top: int = Field(description="px")
    png: str | None = Field(
        description="base64 of a grey PNG of the box's size, 255 inside the region; null: no pixel is inside",
        json_schema_extra={"contentEncoding": "base64"},
    )
