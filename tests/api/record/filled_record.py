"""Inspections for tests of the tables; they were never sent to a service."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection, Engine, insert

from api.database.database import write_transaction
from api.metrics import Metrics
from api.record.inspection import Row
from api.record.inspection_rows import PLAN_COLUMNS
from api.record.outbox import Outbox
from api.record.queries import upsert_pictures
from api.record.record import Record
from api.record.record_metrics import RecordMetrics
from api.record.storage.retention import RetentionRules
from api.record.storage.retention_class import RetentionClass
from api.record.tables import shadows
from api.record.writer import add_rows

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANSWER = """{"id": "x", "model": {"name": "m", "version": "1", "sha256": null},
 "image": {"width": 8, "height": 4, "bit_depth": 8, "format": "png"},
 "decision": {"label": "scratch", "score": 0.9, "threshold": 0.5,
  "probabilities": {"good": 0.1, "scratch": 0.9}},
 "regions": [], "timing_ms": {"queue": 0, "decode": 0, "infer": 0, "encode": 0, "total": 0},
 "batch_size": 1, "warnings": []}"""
MASK = """{"encoding": "rle", "width": 8, "height": 4, "space": "input", "threshold": 0.5,
 "data": {"size": [4, 8], "counts": "P1"}}"""


def make_row(number: int, **changes: object) -> Row:
    """Returns the row of a defective inspection that is queued for review, with a picture of its own."""
    key, moment = number.to_bytes(16, "big"), NOW + timedelta(seconds=number)
    keys = {"token": key, "request_key": None, "part_key": None, "client": "", "details": "{}"}
    part = {"inspected_at": moment, "station": "", "part_id": None, "picture": number.to_bytes(32, "big")}
    model = {"model": "m", "version": "1", "manifest_sha256": None, "engine": ""}
    verdict = {"label": "scratch", "score": 0.9, "log_odds": 2.0, "threshold": 0.5, "review_threshold": None}
    draw = {"draw": 0.0, "draw_probability": 1.0, "draw_reason": "defect"}
    content = {"answer": ANSWER, "mask": MASK, "heat_map": None, "unlike": None}
    plan = dict.fromkeys(("model_label", *PLAN_COLUMNS))
    return {**keys, **part, **model, **verdict, **plan, **draw, **content, **changes}


def stock(engine: Engine, rows: list[Row]) -> None:
    """Adds inspections as the writer does. The ids of the first ones begin at 1, in their order."""
    picture = {"bytes": 1, "format": "png", "state": "kept", "worth": RetentionClass.DEFECT, "stored_at": NOW}
    digests = {bytes(row["picture"]) for row in rows}
    with write_transaction(engine) as connection:
        upsert_pictures(connection, [{"sha256": sha256, **picture} for sha256 in sorted(digests)])
        add_rows(connection, rows, Outbox())


def add_prediction(connection: Connection, record_id: int, differs: bool = True) -> None:
    """Adds the prediction `good` of a candidate."""
    row = {"record_id": record_id, "model": "m", "version": "2", "inspected_at": NOW, "differs": differs}
    connection.execute(insert(shadows), {**row, "label": "good", "score": 0.1, "log_odds": -2.0})


def make_record(url: str | None, folder: Path) -> Record:
    """Returns a record without rules and receivers."""
    metrics = RecordMetrics(Metrics(lambda: 0, lambda: True))
    return Record(url, folder, RetentionRules({}, None, 0.0), 1, metrics, Outbox())
