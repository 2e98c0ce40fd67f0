"""Reads the entries of a manifest, CSV or JSON lines, without interpreting them."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from datasets.text_file import read_annotation_text, read_csv
from segdec.errors import DatasetError
from segdec.runtime.suggestions import nearest_name

REQUIRED = ("image", "label")
SHAPE_COLUMNS = ("box", "boxes", "polygon", "polygons")
COLUMNS = (*REQUIRED, "mask", "class_mask", *SHAPE_COLUMNS, "supervision", "split", "group", "name")

TABLES = frozenset({".csv", ".tsv"})
JSON_LINES = frozenset({".jsonl", ".ndjson"})


@dataclass(frozen=True)
class ManifestEntry:
    """One entry of a manifest."""

    line: int
    """Its last line in the file, from 1."""
    values: dict[str, object] = field(default_factory=dict)
    """Column → text, or any value in JSON lines; empty values are ignored."""
    error: str = ""
    """What is wrong with the line; empty if it is valid."""


def read_manifest(path: Path) -> list[ManifestEntry]:
    """Reads the entries of the manifest `path`; its suffix decides between CSV and JSON lines.

    Raises:
        DatasetError: If the file cannot be read, is not a manifest, has no entry, lacks a column or has an
            unknown one.
    """
    suffix = path.suffix.lower()
    if suffix not in TABLES | JSON_LINES:
        known = ", ".join(sorted(TABLES | JSON_LINES))
        raise DatasetError(f"The manifest {path} has the suffix '{suffix}'. Expected {known}: rename it.")
    entries = list(_read_table(path) if suffix in TABLES else _read_lines(path))
    if not entries:
        raise DatasetError(f"The manifest {path} has no entry. Expected one line for each photograph.")
    return entries


def _read_table(path: Path) -> Iterator[ManifestEntry]:
    columns, rows = read_csv(path)
    _check_columns([column for column in columns if column], str(path), required=REQUIRED)
    for row in rows:
        values: dict[str, object] = {column: cell for column, cell in row.cells.items() if column and cell}
        error = f"{row.surplus} cells are beyond the last column: quote cells that contain the delimiter"
        yield ManifestEntry(row.line, values, error if row.surplus else "")


def _read_lines(path: Path) -> Iterator[ManifestEntry]:
    text, _ = read_annotation_text(path)
    if text.lstrip().startswith("["):
        raise DatasetError(
            f"The manifest {path} is a JSON list. Expected one JSON object on each line, without commas "
            "between them."
        )
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield ManifestEntry(number, error=f"the line is not JSON ({error})")
            continue
        if not isinstance(values, dict):
            yield ManifestEntry(number, error="the line is not a JSON object: expected one on each line")
            continue
        _check_columns(values, f"{path}, line {number}")
        yield ManifestEntry(number, {key: value for key, value in values.items() if value not in (None, "")})


def _check_columns(columns: Collection[str], place: str, required: Collection[str] = ()) -> None:
    missing = [column for column in required if column not in columns]
    wrong = [f"the column '{column}' is missing" for column in missing]
    wrong += [
        f"unknown column {column!r:.40} (did you mean '{nearest_name(column, missing or COLUMNS)}'?)"
        for column in columns
        if column not in COLUMNS
    ]
    if wrong:
        raise DatasetError(
            f"{place}: {'; '.join(wrong)}. Known columns are {', '.join(COLUMNS)}; a table names them in its "
            "first line. Rename or remove others."
        )
