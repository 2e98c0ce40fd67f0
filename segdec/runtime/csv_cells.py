"""Text in CSV files that spreadsheets must not run as a formula (OWASP: CSV injection).

A spreadsheet runs a cell that begins with `=`, `+`, `-` or `@`, unless an apostrophe precedes it. Only text
gets one: numbers that the program computed stay numbers.
"""

import re
from collections.abc import Iterable

_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""Also a tab and a line break, after which spreadsheets look for a formula, and the full-width characters."""


def neutralise_text(text: str) -> str:
    """Returns text with an apostrophe before the beginning of a formula; `restore_text` removes it."""
    return f"'{text}" if _FORMULA.match(text) else text


def restore_text(cell: str) -> str:
    """Returns the text that `neutralise_text` has changed to `cell`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def neutralise_cells(cells: Iterable[object]) -> list[object]:
    """Returns cells with neutralised text; other values are unchanged."""
    return [neutralise_text(cell) if isinstance(cell, str) else cell for cell in cells]
