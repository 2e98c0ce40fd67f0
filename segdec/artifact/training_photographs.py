"""Facts about the training photographs: size, depth, and the limits of photographs like them."""

from collections.abc import Iterable
from typing import Any, Self

from pydantic import Field, field_validator

from segdec.artifact.operating_points import PartShare
from segdec.config import Config
from segdec.photograph_check import PhotographLimits

Range = tuple[int, int]


class TrainingPhotographs(Config):
    """Ranges over all training photographs."""

    heights: Range = Field(description="lowest and highest, px")
    widths: Range = Field(description="lowest and highest, px")
    aspects: tuple[float, float] = Field(description="lowest and highest ratio of width to height")
    bit_depths: tuple[int, ...] = Field((), description="bits per channel of the files; empty: unknown")
    limits: PhotographLimits | None = Field(
        None, description="of a photograph that is like them; absent: not checked"
    )
    refused: PartShare | None = Field(
        None, description="usual parts with a refused photograph, by limits without them; absent: unknown"
    )
    warned: PartShare | None = Field(None, description="the same for photographs with a warning")

    @field_validator("limits", mode="before")
    @classmethod
    def _drop_earlier(cls, limits: Any) -> Any:
        """Drops the limits of format 10, which had a rate of false alarms instead of two limits."""
        return None if isinstance(limits, dict) and "false_alarm_rate" in limits else limits

    @classmethod
    def of(cls, sizes: Iterable[tuple[int, int]], bit_depths: Iterable[int]) -> Self | None:
        """Returns the ranges of these heights and widths, px, and of these depths; None without any size."""
        known = set(sizes)
        if not known:
            return None
        heights, widths = [height for height, _ in known], [width for _, width in known]
        aspects = [width / height for height, width in known]
        return cls(
            heights=(min(heights), max(heights)),
            widths=(min(widths), max(widths)),
            aspects=(min(aspects), max(aspects)),
            bit_depths=tuple(sorted(set(bit_depths))),
        )
