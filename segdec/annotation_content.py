"""What an annotation of a photograph in a data set says.

A field here is a column of both tables with annotations, and a member of requests and answers. The mask is a
file, which each of them holds in its own form.
"""

from typing import Self

from pydantic import Field

from segdec.schemas import AnswerPart


class AnnotationContent(AnswerPart):
    """What an annotation says, beside its mask. Each field but the label has a default."""

    label: str | None = Field(description="good, a class of defects, or ignore; null: not labelled")
    is_boxes: bool = Field(
        False, description="whether the mask has rectangles around the defects, not their outlines"
    )

    def without_mask(self) -> Self:
        """Returns the content without what it says about the mask."""
        return self.model_copy(update={"is_boxes": False})
