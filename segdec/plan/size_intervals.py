"""The interval in which the true size of a measured defect is."""

from dataclasses import dataclass
from math import inf
from typing import Self

from segdec.config import SizeErrors
from segdec.plan.measuring import Sizes

MEASURING_ERROR_PX = 1.0
"""Error of a length or width even if the mask is exact, since it consists of pixels."""


@dataclass(frozen=True)
class Measurement:
    """A measured number and the interval in which the true one is; infinite if that is unknown."""

    value: float
    low: float
    high: float

    def divided(self, divisor: float) -> "Measurement":
        """Returns the measure in a unit that is `divisor` times as large."""
        return Measurement(self.value / divisor, self.low / divisor, self.high / divisor)


@dataclass(frozen=True)
class MeasuredSizes:
    """Length and width, px, and area, px², of a defect, as in `Sizes`, with their intervals."""

    length: Measurement
    width: Measurement
    area: Measurement

    @classmethod
    def estimate(
        cls, sizes: Sizes, possible: Sizes, errors: SizeErrors | None, *, cut: bool, pixel: float = 1.0
    ) -> Self:
        """Returns the sizes of a defect's mask with their intervals.

        `possible` are the sizes of all pixels that may belong to the defect, `errors` those of the model;
        None: unknown. Of a defect that is `cut` by the border of photograph or inspected area, only the lower
        limits are known. `pixel` is the side of a pixel of the photograph.
        """
        unknown = 0.0, inf  # factors
        length, width, area = (errors.length, errors.width, errors.area) if errors else (unknown,) * 3
        error = MEASURING_ERROR_PX * pixel
        if cut:
            length, width, area = ((low, inf) for low, _ in (length, width, area))
        return cls(
            _interval(sizes.length, possible.length, length, error),
            _interval(sizes.width, possible.width, width, error),
            _interval(sizes.area, possible.area, area, error * (sizes.length + sizes.width)),
        )


def _interval(value: float, possible: float, factors: tuple[float, float], error: float) -> Measurement:
    """Returns a size with its interval, which is at least ± `error`."""
    low = min(factors[0] * value, value - error)
    high = max(factors[1] * max(possible, value), value + error)
    return Measurement(value, max(low, 0.0), high)
