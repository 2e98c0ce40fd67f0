"""A manifest, CSV or JSON lines → its entries, undigested."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from datasets.text_file import read_csv, read_text
from segdec.errors import DatasetError
from segdec.runtime.suggestions import nearest_name

REQUIRED = ("image", "label")
COLUMNS = (*REQUIRED, "mask", "box", "boxes", "polygon", "polygons", "split", "group", "name")

TABLES = frozenset({".csv", ".tsv"})
JSON_LINES = frozenset({".jsonl", ".ndjson"})


@dataclass(frozen=True)
class ManifestEntry:
    """One photograph as the manifest has it.

    Attributes:
        line: In the file, from 1; the last one of several.
        values: Column → text, or in JSON lines any value; what is empty is missing.
        error: Why the line cannot be understood, in one sentence; empty if it can.
    """

    line: int
    values: dict[str, object] = field(default_factory=dict)
    error: str = ""


def read_manifest(path: Path) -> list[ManifestEntry]:
    """Reads the entries of the manifest `path`, at least one; its suffix tells CSV from JSON lines.

    Raises:
        DatasetError: If the file cannot be read, is no manifest, has no entry, lacks a column or has one
            that nobody knows.
    """
    suffix = path.suffix.lower()
    if suffix not in TABLES | JSON_LINES:
        known = ", ".join(sorted(TABLES | JSON_LINES))
        raise DatasetError(f"The manifest {path} is of the type '{suffix}'. Expected {known}: rename it.")
    entries = list(_read_table(path) if suffix in TABLES else _read_lines(path))
    if not entries:
        raise DatasetError(f"The manifest {path} has no entry. Expected one line for each photograph.")
    return entries


def _read_table(path: Path) -> Iterator[ManifestEntry]:
    columns, rows = read_csv(path)
    _check_columns([column for column in columns if column], str(path), required=REQUIRED)
    for row in rows:
        values: dict[str, object] = {column: cell for column, cell in row.cells.items() if column and cell}
        error = (
            f"{row.surplus} cells stand beyond the last column: put quotation marks around a cell that "
            "holds the separator"
        )
        yield ManifestEntry(row.line, values, error if row.surplus else "")


def _read_lines(path: Path) -> Iterator[ManifestEntry]:
    text = read_text(path)
    if text.lstrip().startswith("["):
        raise DatasetError(
            f"The manifest {path} is one JSON list. Expected an object in braces on each line, and no commas "
            "between them."
        )
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield ManifestEntry(number, error=f"the line is no JSON ({error})")
            continue
        if not isinstance(values, dict):
            yield ManifestEntry(
                number, error="the line is no JSON object: expected one in braces on each line"
            )
            continue
        _check_columns(values, f"{path}, line {number}")
        yield ManifestEntry(number, {key: value for key, value in values.items() if value not in (None, "")})


def _check_columns(columns: Collection[str], place: str, required: Collection[str] = ()) -> None:
    missing = [column for column in required if column not in columns]
    unknown = [column for column in columns if column not in COLUMNS]
    if not missing and not unknown:
        return
    wrong = [f"there is no column '{column}'" for column in missing]
    wrong += [
        f"nobody knows the column {column!r:.40} (did you mean '{nearest_name(column, missing or COLUMNS)}'?)"
        for column in unknown
    ]
    raise DatasetError(
        f"{place}: {'; '.join(wrong)}. Possible are {', '.join(COLUMNS)}; a table names them on its first "
        "line. Rename or remove others."
    )
