"""The photographs that an inspection plan is made for: their size, and the scale on the part."""

import math
from functools import cached_property
from typing import Annotated, Self

from pydantic import Field, model_validator

from segdec.config import Config
from segdec.errors import ConfigError
from segdec.images import MAX_PIXEL_LIMIT
from segdec.plan.perspective import Perspective, Plane
from segdec.plan.shapes import Point

MIN_DISTANCE_PX = 10
"""Smallest distance of two points of known distance, px."""

MIN_MM_PER_PX, MAX_MM_PER_PX = 1e-6, 1000.0
MmPerPx = Annotated[float, Field(ge=MIN_MM_PER_PX, le=MAX_MM_PER_PX, allow_inf_nan=False)]

SCALES = ("mm_per_px", "known_distance", "perspective")


class KnownDistance(Config):
    """Two points of the photograph, px, whose distance on the part is known."""

    points: tuple[Point, Point]
    mm: Annotated[float, Field(ge=0.001, le=1e6)] = Field(description="distance on the part")

    @property
    def mm_per_px(self) -> float:
        """Side of a pixel on the part, mm."""
        return self.mm / math.dist(*self.points)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if math.dist(*self.points) < MIN_DISTANCE_PX:
            raise ValueError(
                f"the points are {math.dist(*self.points):.1f} px apart; expected at least "
                f"{MIN_DISTANCE_PX} px, since a click is inexact"
            )
        return self


class PlanPhotograph(Config):
    """The upright photographs for which the plan is made."""

    width: Annotated[int, Field(ge=1, le=2**16)] = Field(description="px")
    height: Annotated[int, Field(ge=1, le=2**16)] = Field(description="px")
    mm_per_px: MmPerPx | None = Field(None, description="side of a pixel on the part, mm; absent: unknown")
    known_distance: KnownDistance | None = Field(None, description="instead of mm_per_px")
    perspective: Perspective | None = Field(None, description="instead of mm_per_px")

    @cached_property
    def plane(self) -> Plane | None:
        """The plane of the part; None: parallel to the photograph."""
        return None if self.perspective is None else Plane(self.perspective, self.width, self.height)

    @property
    def scale(self) -> float | None:
        """Side of a pixel on the part, or in its plane, mm; None: unknown."""
        if self.plane is not None:
            return self.plane.mm_per_px
        return self.mm_per_px if self.known_distance is None else self.known_distance.mm_per_px

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.height * self.width > MAX_PIXEL_LIMIT:
            raise ValueError(f"{self.width} × {self.height} px; expected at most {MAX_PIXEL_LIMIT} pixels")
        given = [name for name in SCALES if getattr(self, name) is not None]
        for x, y in () if self.known_distance is None else self.known_distance.points:
            if x > self.width or y > self.height:
                raise ValueError(f"the point ({x:g}, {y:g}) of known_distance; expected it in the photograph")
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)}; expected one of them")
        try:
            scale = self.scale
        except ConfigError as error:  # of the perspective
            raise ValueError(str(error)) from error
        if scale is not None and not MIN_MM_PER_PX <= scale <= MAX_MM_PER_PX:
            raise ValueError(
                f"the scale is {scale:.3g} mm per px; expected {MIN_MM_PER_PX:g} to {MAX_MM_PER_PX:g}"
            )
        return self
