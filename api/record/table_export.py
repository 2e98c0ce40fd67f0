"""Inspections as a table, CSV or Parquet, streamed page by page."""

import io
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from sqlalchemy import Engine

from api.record.filters import Filters
from api.record.inspection import Row
from api.record.search import inspection_pages
from api.record.tables import inspections
from segdec.runtime.csv_cells import neutralise_cells
from segdec.runtime.identifiers import NOT_INSPECTED

TableFormat = Literal["csv", "parquet"]
ROWS = 500
"""Rows per query and per Parquet row group; they are in memory until the client has read them."""
TEXT = (
    "station",
    "part_id",
    "client",
    "model",
    "version",
    "manifest_sha256",
    "engine",
    "label",
    "draw_reason",
    "reviewed_label",
    "reviewer",
    "review_reason",
    "picture_format",
    "picture_state",
    "distances",
)
PLAN_TEXT = ("model_label", "plan", "plan_sha256", "plan_severity", "plan_finding")
NUMBERS = ("score", "log_odds", "threshold", "review_threshold", "draw_probability")
TIMESTAMP = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("record_id", pa.int64()),
        ("inspected_at", TIMESTAMP),
        *((name, pa.string()) for name in TEXT),
        *((name, pa.float64()) for name in NUMBERS),
        ("drawn", pa.bool_()),
        ("reviewed_at", TIMESTAMP),
        ("picture_sha256", pa.string()),
        ("metadata", pa.string()),
        *((name, pa.string()) for name in PLAN_TEXT),
        ("plan_version", pa.int32()),
    ]
)
"""`metadata` and `distances` are JSON. Masks and regions are omitted."""

UNUSED = ("answer", "mask", "reviewed_mask", "heat_map", "unlike")
COLUMNS = [column for column in inspections.c if column.name not in UNUSED]
WRITERS: dict[TableFormat, Any] = {"csv": pyarrow.csv.CSVWriter, "parquet": pyarrow.parquet.ParquetWriter}


def day_filters(day: date, zone: ZoneInfo, station: str | None) -> Filters:
    """Returns the filters for one day, midnight to midnight in `zone`."""
    begin, end = (datetime.combine(of, time(), zone) for of in (day, day + timedelta(days=1)))
    return Filters(station=station, since=begin, until=end)


def export_table(engine: Engine, filters: Filters, form: TableFormat) -> Iterator[bytes]:
    """Yields the table in chunks of bytes.

    Raises:
        SQLAlchemyError: If the database does not answer.
    """
    written = io.BytesIO()
    writer = WRITERS[form](pa.PythonFile(written, mode="w"), SCHEMA)
    for rows in inspection_pages(engine, filters, COLUMNS, ROWS):
        values = [_values(row) if form == "parquet" else _csv_values(row) for row in rows]
        writer.write_batch(pa.RecordBatch.from_pylist(values, schema=SCHEMA))
        yield written.getvalue()
        written.seek(0)
        written.truncate()
    writer.close()
    yield written.getvalue()


def _csv_values(row: Row) -> dict[str, object]:
    values = _values(row)
    return dict(zip(values, neutralise_cells(values.values()), strict=True))


def _values(row: Row) -> dict[str, object]:
    return {
        **{name: row[name] for name in (*TEXT, *NUMBERS, "inspected_at", "reviewed_at")},
        **{name: row[name] for name in (*PLAN_TEXT, "plan_version")},
        **(dict.fromkeys(NUMBERS) if row["label"] == NOT_INSPECTED else {}),
        "record_id": row["id"],
        "drawn": None if row["draw"] is None else row["draw"] < row["draw_probability"],
        "picture_sha256": bytes(row["picture"]).hex(),
        "metadata": row["details"],
    }
