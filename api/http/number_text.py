"""Numbers and times in paths, queries and headers: only their usual text, without which `01` would be 1."""

import re

from pydantic import BeforeValidator


def _require(pattern: str, expected: str) -> BeforeValidator:
    compiled = re.compile(pattern)

    def check(value: object) -> object:
        if isinstance(value, str) and not compiled.fullmatch(value):
            raise ValueError(f"Expected {expected}")
        return value

    return BeforeValidator(check)


_LOST_PLUS = re.compile(r"(.{11}[0-9:.]+) (([01][0-9]|2[0-3]):?[0-5][0-9])")


def _restore_plus(value: object) -> object:
    found = _LOST_PLUS.fullmatch(value) if isinstance(value, str) else None
    return f"{found[1]}+{found[2]}" if found else value


WHOLE_NUMBER = _require("0|-?[1-9][0-9]*", "a whole number such as 17")
DECIMAL_NUMBER = _require(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", "a valid number such as 0.5")
DATE = _require("[0-9]{4}-[0-9]{2}-[0-9]{2}", "a date such as 2026-11-25")
ISO_TIME = _require("[0-9]{4}-[0-9]{2}-[0-9]{2}.+", "a time such as 2026-11-25T06:00:00Z")
OFFSET_PLUS = BeforeValidator(_restore_plus)
"""Before `ISO_TIME`: a `+` before the offset from UTC that was not escaped arrives as a space."""
MAX_ID = 2**63 - 1
"""Highest number of a row."""
MAX_PAGE_SIZE = 500
"""Rows of a page."""
