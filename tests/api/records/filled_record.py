"""A record with inspections that were never sent, for what is asked of its tables."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine, insert, text

from api.records.database import migrate, open_database, writing
from api.records.inspection import Row
from api.records.outbox import Outbox
from api.records.storage.retention_class import RetentionClass
from api.records.tables import metadata, pictures, store
from api.records.writer import add_rows

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANSWER = """{"id": "x", "model": {"name": "m", "version": "1", "sha256": null},
 "image": {"width": 8, "height": 4, "bit_depth": 8, "format": "png"},
 "decision": {"label": "scratch", "score": 0.9, "threshold": 0.5,
  "probabilities": {"good": 0.1, "scratch": 0.9}},
 "regions": [], "timing_ms": {"queue": 0, "decode": 0, "infer": 0, "encode": 0, "total": 0},
 "batch_size": 1, "warnings": []}"""
MASK = """{"encoding": "rle", "width": 8, "height": 4, "space": "input", "threshold": 0.5,
 "data": {"size": [4, 8], "counts": "P1"}}"""
"""Without a defect."""


def open_stocked(url: str) -> Engine:
    """Returns an empty record."""
    engine = open_database(url)
    migrate(engine)
    with writing(engine) as connection:
        connection.execute(insert(store), {"id": "one", "bytes": 0})
    return engine


def empty(engine: Engine) -> None:
    """Makes a record of PostgreSQL empty again, whatever its audit thinks; a new one takes its time."""
    names = [table.name for table in metadata.sorted_tables if table is not store]
    with writing(engine) as connection:
        connection.execute(text("ALTER TABLE audit DISABLE TRIGGER ALL"))
        connection.execute(text(f"TRUNCATE {', '.join(names)} RESTART IDENTITY"))


def make_row(number: int, **changes: object) -> Row:
    """Returns the row of an inspection that is drawn as a defect, with a picture of its own."""
    row = {
        "token": number.to_bytes(16, "big"),
        "request_key": None,
        "part_key": None,
        "inspected_at": NOW + timedelta(seconds=number),
        "station": "",
        "part_id": None,
        "client": "",
        "picture": number.to_bytes(32, "big"),
        "model": "m",
        "version": "1",
        "manifest_sha256": None,
        "engine": "",
        "label": "scratch",
        "score": 0.9,
        "log_odds": 2.0,
        "threshold": 0.5,
        "review_threshold": None,
        "draw": 0.0,
        "draw_probability": 1.0,
        "draw_reason": "defect",
        "answer": ANSWER,
        "mask": MASK,
        "details": "{}",
    }
    return {**row, **changes}


def stock(engine: Engine, rows: list[Row]) -> None:
    """Keeps inspections as the writer does, in the order of their ids, which begin at 1."""
    with writing(engine) as connection:
        there = {
            "bytes": 1,
            "format": "png",
            "state": "kept",
            "worth": RetentionClass.DEFECT,
            "stored_at": NOW,
        }
        shown = {bytes(row["picture"]) for row in rows}
        connection.execute(insert(pictures), [{"sha256": sha256, **there} for sha256 in sorted(shown)])
        add_rows(connection, rows, Outbox())
