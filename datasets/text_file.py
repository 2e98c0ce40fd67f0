"""Reads text, JSON and CSV files, with errors that name the file and line."""

import codecs
import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segdec.errors import DatasetError
from segdec.runtime.csv_cells import restore_text

UTF8 = "utf-8-sig"
"""UTF-8 with or without a byte order mark."""

DELIMITERS = ",;\t"
"""Spreadsheets write semicolons in locales with a decimal comma."""


def read_text(path: Path, what: str = "annotation") -> str:
    """Reads a UTF-8 text file, with or without a byte order mark; messages call it a `what` file.

    Raises:
        DatasetError: If the file is missing, cannot be read, or is not UTF-8.
    """
    try:
        return _read_bytes(path, what).decode(UTF8)
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"The {what} file {path} is not UTF-8 text: {error}. Save it as UTF-8 (in a spreadsheet: "
            "'CSV UTF-8')."
        ) from error


def read_annotation_text(path: Path) -> tuple[str, str]:
    """Reads a text file of any encoding; returns the text and the encoding, which may be a guess.

    Raises:
        DatasetError: If the file is missing or cannot be read.
    """
    data = _read_bytes(path, "annotation")
    encoding = guess_encoding(data)
    return data.decode(encoding, errors="replace"), encoding


def _read_bytes(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DatasetError(f"The {what} file {path} does not exist. Check the path.") from None
    except OSError as error:
        raise DatasetError(f"The {what} file {path} cannot be read ({error.strerror}).") from error


def guess_encoding(data: bytes) -> str:
    """Guesses the encoding of a text: UTF-8, UTF-16, or one that a Windows program used without saying so.

    Labels are a few letters, too short for statistics. A single high byte between ASCII letters is a Western
    European letter; pairs of high bytes are Chinese (GB 2312) or Japanese (Shift JIS).
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    western = _decodes(data, "cp1252") and len(_WESTERN_LETTER.findall(data)) == len(
        _HIGH_BYTES.findall(data)
    )
    guesses = (UTF8, *(("cp1252",) if western else ()), "gb2312", "cp932", "big5", "cp1252")
    return next((each for each in guesses if _decodes(data, each)), "latin-1")


_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
_WESTERN_LETTER = re.compile(rb"(?<![\x80-\xff])[\xc0-\xff](?![\x80-\xff])")


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def parse_json(text: str, path: Path) -> Any:
    """Parses the content of the JSON file `path`; DatasetError if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DatasetError(
            f"The annotation file {path} is not JSON: {error}. It may be cut off, or hold comments "
            "or a trailing comma: export it again."
        ) from error


@dataclass(frozen=True)
class CsvRow:
    """One row of a CSV file."""

    line: int
    """Number of its last line in the file, from 1."""
    cells: dict[str, str]
    """Column → text without surrounding spaces; empty if the row ends early."""
    surplus: int = 0
    """Number of cells after the last column."""


def read_csv(path: Path) -> tuple[list[str], Iterator[CsvRow]]:
    """Reads a CSV file whose first line names the columns; returns columns and rows.

    The delimiter is the most frequent of comma, semicolon and tab in the first line. Skips empty lines. The
    apostrophe before a formula is removed, see `csv_cells`.

    Raises:
        DatasetError: As `read_text`, or if the file is empty, names a column twice, or is not CSV.
    """
    text, _ = read_annotation_text(path)
    header = next(iter(text.splitlines()), "")
    delimiter = max(DELIMITERS, key=header.count)
    lines = _csv_lines(path, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    columns = next(lines, (1, []))[1]
    if not any(columns):
        raise DatasetError(f"The first line of the table {path} is empty. Expected the column names.")
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise DatasetError(f"The table {path} names the column '{twice[0]}' twice. Remove one of the two.")
    return columns, (_csv_row(line, cells, columns) for line, cells in lines if any(cells))


def _csv_lines(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    try:
        for cells in reader:
            yield reader.line_num, [restore_text(cell.strip()) for cell in cells]
    except csv.Error as error:
        raise DatasetError(
            f"{path}, line {reader.line_num}: invalid CSV ({error}). Check the quotation marks."
        ) from error


def _csv_row(line: int, cells: list[str], columns: list[str]) -> CsvRow:
    padded = cells + [""] * (len(columns) - len(cells))
    surplus = sum(bool(cell) for cell in cells[len(columns) :])
    return CsvRow(line, dict(zip(columns, padded, strict=False)), surplus)
