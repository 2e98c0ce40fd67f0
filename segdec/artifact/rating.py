"""How the training rated a model."""

from typing import Literal

from pydantic import Field

from segdec.config import Config

RatingLevel = Literal["usable", "weak", "useless", "not measurable"]


class ModelRating(Config):
    """The rating of a model by its last evaluation, with its own thresholds; see docs/evaluation.md."""

    level: RatingLevel
    reason: str = Field(description="what was measured, and why this gives the level")
    advice: tuple[str, ...] = Field((), description="what to do next, the most important first")
