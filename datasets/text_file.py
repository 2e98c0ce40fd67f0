"""Files that people or their tools write: as text, as JSON, and as the tables that spreadsheets save."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segdec.errors import DatasetError

DELIMITERS = ",;\t"
"""Spreadsheets write semicolons where the comma separates decimals."""


def read_text(path: Path, what: str = "annotation") -> str:
    """Reads the text of `path`, UTF-8 with or without the byte order mark that spreadsheets put in front.

    Args:
        path: The file.
        what: What it is, for messages, for example `split`.

    Raises:
        DatasetError: If the file is missing, cannot be read, or is no UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DatasetError(f"The {what} file {path} does not exist. Check the path.") from None
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"The {what} file {path} is not UTF-8 text: {error}. Save it as UTF-8 (in a spreadsheet: "
            "'CSV UTF-8')."
        ) from error
    except OSError as error:
        raise DatasetError(f"The {what} file {path} cannot be read ({error.strerror}).") from error


def read_json(path: Path) -> Any:
    """Reads what the JSON file `path` holds; raises DatasetError as `read_text`, and if it is no JSON."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DatasetError(
            f"The annotation file {path} is no JSON: {error}. Export it again; it may be cut off."
        ) from error


@dataclass(frozen=True)
class CsvRow:
    """One row of a CSV file.

    Attributes:
        line: Its last line in the file, from 1.
        cells: Column → text without surrounding blanks; empty where the row ends early.
        surplus: Number of cells beyond the last column.
    """

    line: int
    cells: dict[str, str]
    surplus: int = 0


def read_csv(path: Path) -> tuple[list[str], Iterator[CsvRow]]:
    """Reads columns and rows of a CSV file whose first line names the columns.

    The separator is the comma, semicolon or tab that the first line holds most. Empty lines are skipped.

    Raises:
        DatasetError: As `read_text`, or if the file is empty, names a column twice, or is no CSV.
    """
    text = read_text(path)
    header = next(iter(text.splitlines()), "")
    delimiter = max(DELIMITERS, key=header.count)
    lines = _csv_lines(path, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    columns = next(lines, (1, []))[1]
    if not any(columns):
        raise DatasetError(f"The table {path} has an empty first line. Expected the names of the columns.")
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise DatasetError(f"The table {path} names the column '{twice[0]}' twice. Remove one of the two.")
    return columns, (_csv_row(line, cells, columns) for line, cells in lines if any(cells))


def _csv_lines(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    try:
        for cells in reader:
            yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as error:
        raise DatasetError(
            f"{path}, line {reader.line_num}: no row of a table ({error}). Check the quotation marks there."
        ) from error


def _csv_row(line: int, cells: list[str], columns: list[str]) -> CsvRow:
    padded = cells + [""] * (len(columns) - len(cells))
    surplus = sum(bool(cell) for cell in cells[len(columns) :])
    return CsvRow(line, dict(zip(columns, padded, strict=False)), surplus)
