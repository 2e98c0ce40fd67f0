"""CSV files as spreadsheets save them → rows, with one clear error where that fails."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets.text_file import read_text
from segdec.errors import DatasetError

DELIMITERS = ",;\t"
"""Spreadsheets write semicolons where the comma separates decimals."""


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes:
        line: Its last line in the file, from 1.
        cells: Column → text without surrounding blanks; empty where the row ends early.
        surplus: Number of cells beyond the last column.
    """

    line: int
    cells: dict[str, str]
    surplus: int = 0


def read_table(path: Path) -> tuple[list[str], Iterator[Row]]:
    """Columns and rows of a CSV file whose first line names the columns.

    The separator is the comma, semicolon or tab that the first line holds most. Empty lines are skipped.

    Raises:
        DatasetError: As `read_text`, or when the file is empty, names a column twice, or is no CSV.
    """
    text = read_text(path)
    header = next(iter(text.splitlines()), "")
    delimiter = max(DELIMITERS, key=header.count)
    lines = _lines(path, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    columns = next(lines, (1, []))[1]
    if not any(columns):
        raise DatasetError(f"The table {path} has an empty first line. Expected the names of the columns.")
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise DatasetError(f"The table {path} names the column '{twice[0]}' twice. Remove one of the two.")
    return columns, (_row(line, cells, columns) for line, cells in lines if any(cells))


def _lines(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    try:
        for cells in reader:
            yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as error:
        raise DatasetError(
            f"{path}, line {reader.line_num}: no row of a table ({error}). Check the quotation marks there."
        ) from error


def _row(line: int, cells: list[str], columns: list[str]) -> Row:
    padded = cells + [""] * (len(columns) - len(cells))
    surplus = sum(bool(cell) for cell in cells[len(columns) :])
    return Row(line, dict(zip(columns, padded, strict=False)), surplus)
