"""Lengths and areas with their unit, such as `2 mm`, `0.25 mm²` or `1 %`."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, Field

NUMBER = r"[0-9]{1,9}(\.[0-9]{1,6})?"
LENGTH_PATTERN = rf"^{NUMBER} (mm|px)$"
AREA_PATTERN = rf"^{NUMBER} (mm|px)(²|2)$"
SHARE_PATTERN = rf"^{NUMBER} ((mm|px)(²|2)|%)$"


def _check(pattern: str, units: str) -> BeforeValidator:
    def check(text: object) -> object:
        if not isinstance(text, str) or not re.fullmatch(pattern, text) or not split(text)[0] > 0.0:
            raise ValueError(
                f"expected a number above 0 with a decimal point, a space and a unit ({units}), in quotes: "
                f"'2.5 {re.split('[ ,]', units)[0]}'"
            )
        return text

    return BeforeValidator(check)


def _schema(pattern: str) -> object:
    return Field(json_schema_extra={"pattern": pattern})


LengthText = Annotated[str, _check(LENGTH_PATTERN, "mm or px"), _schema(LENGTH_PATTERN)]
"""A length: `2.5 mm` or `40 px`."""

AreaText = Annotated[str, _check(AREA_PATTERN, "mm² or px²"), _schema(AREA_PATTERN)]
"""An area: `0.25 mm²`, `0.25 mm2` or `100 px²`."""

ShareText = Annotated[str, _check(SHARE_PATTERN, "mm², px² or %"), _schema(SHARE_PATTERN)]
"""An area, or a share of the zone: `1 %`."""


def split(text: str) -> tuple[float, str]:
    """Returns the number and the unit, `mm`, `px`, `mm²`, `px²` or `%`, of such a text."""
    number, unit = text.split(" ")
    return float(number), unit.replace("2", "²")


@dataclass(frozen=True)
class Scale:
    """Units of limits.

    Attributes:
        mm_per_px: Side of a pixel on the part, mm; None: unknown, and no limit is in mm.
        zone_px: Area of the zone, px², of which `%` is a share; None: no limit is a share.
    """

    mm_per_px: float | None
    zone_px: int | None = None

    def in_px(self, number: float, unit: str) -> float:
        """Returns a number with a unit in px or px²; numbers without a unit do not change."""
        if unit == "%":
            assert self.zone_px is not None  # checked by the plan, as below
            return number * self.zone_px / 100
        if unit in ("mm", "mm²"):
            assert self.mm_per_px is not None
            return number / self.mm_per_px ** len(unit.removeprefix("m"))
        return number
