"""The interval in which the true size of a measured defect is."""

from dataclasses import dataclass
from math import inf
from typing import Self

from segdec.config import SizeErrors
from segdec.plan.measuring import Sizes

MEASURING_ERROR_PX = 1.0
"""Error of a length or width even if the mask is exact, since it consists of pixels."""


@dataclass(frozen=True)
class Measure:
    """A measured number and the interval in which the true one is; infinite if that is unknown."""

    value: float
    low: float
    high: float

    @classmethod
    def estimate(cls, value: float, factors: tuple[float, float], error: float) -> Self:
        """Returns the interval of a measured size by the `factors` of its model, at least ± `error`."""
        low, high = factors
        return cls(value, max(min(low * value, value - error), 0.0), max(high * value, value + error))

    def divided(self, divisor: float) -> "Measure":
        """Returns the measure in a unit that is `divisor` times as large."""
        return Measure(self.value / divisor, self.low / divisor, self.high / divisor)


@dataclass(frozen=True)
class MeasuredSizes:
    """Length and width, px, and area, px², of a defect, as in `Sizes`, with their intervals."""

    length: Measure
    width: Measure
    area: Measure

    @classmethod
    def estimate(cls, sizes: Sizes, errors: SizeErrors | None) -> Self:
        """Returns the sizes with the errors of their model; None: unknown."""
        unknown = 0.0, inf
        length, width, area = (errors.length, errors.width, errors.area) if errors else (unknown,) * 3
        return cls(
            Measure.estimate(sizes.length, length, MEASURING_ERROR_PX),
            Measure.estimate(sizes.width, width, MEASURING_ERROR_PX),
            Measure.estimate(sizes.area, area, MEASURING_ERROR_PX * (sizes.length + sizes.width)),
        )
