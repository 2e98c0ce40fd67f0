"""Lengths and areas with their unit, such as `2 mm` or `0.25 mm²`."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

LENGTH_PATTERN = r"^\d{1,6}(\.\d{1,6})? (mm|px)$"
AREA_PATTERN = r"^\d{1,9}(\.\d{1,6})? (mm|px)(²|2)$"


def _check(pattern: str, example: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text) or not split(text)[0] > 0.0:
            raise ValueError(f"expected a number above 0, a space and a unit, such as '{example}'")
        return text

    return AfterValidator(check)


LengthText = Annotated[
    str, _check(LENGTH_PATTERN, "2.5 mm"), Field(json_schema_extra={"pattern": LENGTH_PATTERN})
]
"""A length: `2.5 mm` or `40 px`."""

AreaText = Annotated[
    str, _check(AREA_PATTERN, "0.25 mm²"), Field(json_schema_extra={"pattern": AREA_PATTERN})
]
"""An area: `0.25 mm²`, `0.25 mm2` or `100 px²`."""


def split(text: str) -> tuple[float, str]:
    """Returns the number and the unit, `mm`, `px`, `mm²` or `px²`, of a `LengthText` or `AreaText`."""
    number, unit = text.split(" ")
    return float(number), unit.replace("2", "²")


def unit_in_px(unit: str, mm_per_px: float | None) -> float:
    """Returns how many px, or px², a unit is; `mm_per_px` must be known for mm and mm²."""
    if not unit.startswith("mm"):
        return 1.0
    assert mm_per_px is not None  # checked by the plan
    return 1.0 / (mm_per_px * mm_per_px if unit.endswith("²") else mm_per_px)
