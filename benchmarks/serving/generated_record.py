"""A reproducible record of millions of synthetic inspections.

Six stations, or as many as asked for, inspect for 300 days. 2 % of the photographs show defects, including a
rare class at one station, and 1 % are uncertain; these have heat maps. Half of the sample is reviewed. All
have a lot in their metadata. Pictures have rows but no files; old good ones have expired.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from sqlalchemy import Connection, Engine, Table, func, insert, select, text, update

from api.database.database import migrate, write_transaction
from api.record.filters import start_of_hour
from api.record.initialization import PICTURES
from api.record.inspection import Row
from api.record.queries import add_hour_counts
from api.record.review_queue import PRIORITY_BY_REASON, enqueue
from api.record.sampling import SamplingPolicy
from api.record.sampling_counts import add_sampling_counts
from api.record.storage.pictures import STORE_ID
from api.record.storage.retention_class import RetentionClass
from api.record.tables import inspections, pictures, store
from api.record.tagging import add_tags
from api.settings import Settings
from segdec.images import encode_png
from segdec.imaging.run_lengths import encode_run_lengths
from segdec.runtime.files import write_text_atomic
from segdec.runtime.identifiers import REVIEW
from segdec.schemas import (
    Answer,
    Decision,
    ImageFacts,
    MaskAnswer,
    ModelIdentity,
    RegionAnswer,
    RunLengths,
    Timing,
)

STORE = "generated"
BEGIN, DAYS = datetime(2026, 1, 1, tzinfo=UTC), 300
STATIONS = {
    "line1-cam1": 0.3,
    "line1-cam2": 0.25,
    "line2-cam1": 0.2,
    "line2-cam2": 0.15,
    "line3-cam1": 0.0999,
    "workshop": 0.0001,
}
"""Share of the photographs of each."""
GOOD, RARE = "good", "crack"
"""The rare class is found at the first station only."""
LABELS = {GOOD: 0.97, REVIEW: 0.01, "scratch": 0.012, "dent": 0.006, "stain": 0.0019, RARE: 0.0001}
PHOTOGRAPHS_EACH = 2
"""Photographs of a part."""
REVIEWED_SHARE = 0.5
GOOD_DAYS = 30
"""Days after which pictures of good parts expire."""
LOT, VERSIONS = 5000, 3
"""Photographs of a lot, and versions of the model, one after the other."""
REVIEWERS = ("anna", "ben", "eva")
HEAT_MAP = encode_png(np.add.outer(np.arange(64, dtype=np.uint8), np.arange(64, dtype=np.uint8)))
THRESHOLD, NEAR_SHARE = 0.5, 0.002
MODEL = ModelIdentity(name="parts", version="3", sha256="5e" * 32)
SAME = {
    "client": "line",
    "model": MODEL.name,
    "manifest_sha256": MODEL.sha256,
    "engine": "openvino",
    "threshold": THRESHOLD,
    "review_threshold": 0.4,
}
"""Columns that are equal in all inspections."""
NOT_REVIEWED = {"revision": 0, "reviewed_label": None, "reviewed_at": None, "reviewer": None}
SIDE = 512
"""Size of a photograph, px."""
BLOCK = 20_000
BLOCKS = 50
"""Blocks of a transaction; small transactions are slow, because each one touches most index pages."""
CACHE_KIB = 2_000_000


def station_shares(count: int | None) -> Mapping[str, float]:
    """Returns the share of the photographs of each station: of the six, or of `count` equal ones."""
    if count is None:
        return STATIONS
    return {f"station-{number:05}": 1 / count for number in range(1, count + 1)}


def write_record(engine: Engine, folder: Path, rows: int, stations: Mapping[str, float] = STATIONS) -> None:
    """Writes a record of `rows` inspections into `folder` and the database; resumes an interrupted one."""
    migrate(engine)
    (folder / PICTURES).mkdir(parents=True, exist_ok=True)
    write_text_atomic(folder / PICTURES / STORE_ID, STORE)
    with engine.connect() as connection:
        written = connection.execute(select(func.max(inspections.c.id))).scalar() or 0
        begun = connection.execute(select(store.c.id)).first() is not None
    if not begun:
        with _loading(engine) as connection:
            connection.execute(insert(store), {"id": STORE, "bytes": 0})
            for index in inspections.indexes:  # faster to create at the end
                index.drop(connection)
    for first in range(written, rows, BLOCKS * BLOCK):
        last = min(first + BLOCKS * BLOCK, rows)
        with _loading(engine) as connection:
            for start in range(first, last, BLOCK):
                _write_block(connection, start, min(start + BLOCK, last), rows, stations)
        print(f"{last:,} of {rows:,} inspections written", flush=True)
    with _loading(engine) as connection:
        for index in inspections.indexes:
            index.create(connection, checkfirst=True)
    if engine.dialect.name == "postgresql" and written < rows:
        _vacuum(engine)


@contextmanager
def _loading(engine: Engine) -> Iterator[Connection]:
    """Yields a connection for bulk writes in one transaction."""
    with write_transaction(engine) as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("SET LOCAL maintenance_work_mem = '512MB'"))
        else:
            connection.execute(text(f"PRAGMA cache_size = -{CACHE_KIB}"))
        yield connection


def _vacuum(engine: Engine) -> None:
    """Runs VACUUM now, which PostgreSQL otherwise runs later."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("SET statement_timeout = 0"))
        connection.execute(text("VACUUM ANALYZE"))
    engine.dispose()


def _write_block(
    connection: Connection, start: int, end: int, rows: int, stations: Mapping[str, float]
) -> None:
    inspected, shown = zip(*_make_rows(start, end, rows, stations), strict=True)
    _copy(connection, pictures, shown)
    _copy(connection, inspections, inspected)
    add_hour_counts(connection, _hours(inspected))
    add_sampling_counts(connection, inspected)
    add_tags(connection, inspected)
    drawn = [row for row in inspected if row["draw"] < row["draw_probability"]]
    waiting = [row for row in drawn if row["reviewed_label"] is None]
    enqueue(connection, [(row["id"], PRIORITY_BY_REASON[row["draw_reason"]]) for row in waiting])
    kept = sum(picture["bytes"] for picture in shown if picture["state"] == "kept")
    connection.execute(update(store).values(bytes=store.c.bytes + kept))


def _copy(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Writes rows in the database's fastest way."""
    columns = ", ".join(f'"{name}"' for name in rows[0])
    driver = connection.connection.driver_connection
    assert driver is not None
    if connection.dialect.name == "sqlite":
        places = ", ".join("?" * len(rows[0]))
        statement = f"INSERT INTO {table.name} ({columns}) VALUES ({places})"
        driver.executemany(statement, (tuple(map(_plain, row.values())) for row in rows)).close()
        return
    with driver.cursor() as cursor, cursor.copy(f"COPY {table.name} ({columns}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(tuple(row.values()))


def _plain(value: object) -> object:
    """Returns a value as SQLite stores it: times are text, as in SQLAlchemy."""
    if type(value) is not datetime:
        return value
    return value.replace(tzinfo=None).isoformat(" ", "microseconds")


def _hours(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Returns the rows of the table `hours` for these inspections."""
    sums: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = (start_of_hour(row["inspected_at"]), row["station"], row["version"], row["label"])
        if key not in sums:
            named = {name: row[name] for name in ("station", "model", "version", "label")}
            none = {"count": 0, "log_odds_sum": 0.0, "log_odds_squares": 0.0, "first_id": row["id"]}
            sums[key] = {**named, **none, "hour": key[0]}
        total = sums[key]
        total["count"] += 1
        total["log_odds_sum"] += row["log_odds"]
        total["log_odds_squares"] += row["log_odds"] ** 2
        total["last_id"] = row["id"]
    return list(sums.values())


def _make_rows(start: int, end: int, rows: int, shares: Mapping[str, float]) -> Iterator[tuple[Row, Row]]:
    """Yields the inspections from `start` to before `end` with their pictures, as rows."""
    chance, count = np.random.default_rng(start), end - start
    policy = SamplingPolicy.from_settings(Settings())
    stations = chance.choice(list(shares), count, p=list(shares.values())).tolist()
    rare_at = next(iter(shares))
    labels = chance.choice(list(LABELS), count, p=list(LABELS.values())).tolist()
    chances = chance.random((count, 4)).tolist()
    digests = memoryview(chance.bytes(64 * count))
    answers, masks = _texts()
    drawn_rows = zip(stations, labels, chances, strict=True)
    for place, (station, label, (scored, drawn, seen, size)) in enumerate(drawn_rows):
        number, digest = start + place, bytes(digests[64 * place : 64 * place + 64])
        at = BEGIN + timedelta(days=DAYS * number / rows)
        score = _score(label, scored)
        draw = policy.draw(label, GOOD, score, THRESHOLD, partial(float, drawn))
        age = DAYS - (at - BEGIN).days
        is_reviewed = drawn < draw.probability and seen < REVIEWED_SHARE
        worth = RetentionClass.REVIEWED if is_reviewed else draw.retention_class
        picture = {
            "sha256": digest[:32],
            "bytes": 150_000 + int(100_000 * size),
            "format": "jpeg",
            "state": "expired" if worth is RetentionClass.GOOD and age > GOOD_DAYS else "kept",
            "worth": int(worth),
            "stored_at": at,
        }
        inspection = {
            "id": number + 1,
            "token": digest[32:48],
            "part_key": digest[48:],
            "inspected_at": at,
            "station": rare_at if label == RARE else station,
            "part_id": f"P{number // PHOTOGRAPHS_EACH:08}",
            "picture": picture["sha256"],
            "label": label,
            "score": score,
            "log_odds": math.log(score / (1 - score)),
            "draw": drawn,
            "draw_probability": draw.probability,
            "draw_reason": draw.reason,
            **(_review(label, at) if is_reviewed else NOT_REVIEWED),
            **SAME,
            "answer": answers[label] % (number, score, 1 - score, score),
            "mask": masks[0 if label == GOOD else number % (len(masks) - 1) + 1],
            "version": str(1 + VERSIONS * number // rows),
            "details": f'{{"lot": "{lot_of(number)}"}}',
            "heat_map": None if label == GOOD else HEAT_MAP,
        }
        yield inspection, picture


def lot_of(number: int) -> str:
    """Returns the lot of an inspection, counted from 0."""
    return f"A{number // LOT}"


def _review(label: str, at: datetime) -> Row:
    """Returns a review of the next day: as the model, or `good` for parts for review."""
    says = GOOD if label == REVIEW else label
    reviewed_at = at + timedelta(hours=20)  # all rows have the same order of keys
    return {
        "revision": 1,
        "reviewed_label": says,
        "reviewed_at": reviewed_at,
        "reviewer": REVIEWERS[at.day % len(REVIEWERS)],
    }


def _score(label: str, chance: float) -> float:
    """Returns a score: 0.4 to 0.5 for `review`, just below for some good parts."""
    if label == REVIEW:
        return 0.4 + 0.1 * chance
    if label != GOOD:
        return 0.5 + 0.49 * chance
    return 0.395 if chance < NEAR_SHARE else 0.01 + 0.23 * chance


def _texts() -> tuple[dict[str, str], list[str]]:
    """Returns answer templates by label, and masks, the empty one first."""
    return {label: _answer(label) for label in LABELS}, [_mask(number) for number in range(16)]


def _answer(label: str) -> str:
    polygon = [(200 + 3 * step, 180 + 5 * step) for step in range(12)]
    region = RegionAnswer(bbox=(200, 180, 36, 60), area_px=1400, score_max=0.9, polygon=polygon)
    answer = Answer(
        id="ID",
        model=MODEL,
        image=ImageFacts(width=SIDE, height=SIDE, bit_depth=8, format="jpeg"),
        decision=Decision(
            label=label,
            score=0.111,
            threshold=THRESHOLD,
            review_threshold=0.4,
            probabilities={GOOD: 0.222, "scratch": 0.333, "dent": 0.0, "stain": 0.0, RARE: 0.0},
        ),
        mask=None,
        regions=[] if label == GOOD else [region],
        timing_ms=Timing(queue=0.4, decode=2.1, infer=11.5, encode=0.9, total=15.2),
        batch_size=1,
        warnings=[],
    )
    made = answer.model_dump_json(exclude={"mask"})
    for word, place in (("ID", "%032x"), ("0.111", "%.4f"), ("0.222", "%.4f"), ("0.333", "%.4f")):
        made = made.replace(word, place)
    return made


def _mask(number: int) -> str:
    pixels = np.zeros((SIDE, SIDE), np.uint8)
    if number:
        cv2.ellipse(pixels, (20 * number, 300), (4 * number, 20), 15.0 * number, 0, 360, 255, -1)
    runs = RunLengths(size=pixels.shape, counts=encode_run_lengths(pixels))
    mask = MaskAnswer(encoding="rle", width=SIDE, height=SIDE, space="input", threshold=THRESHOLD, data=runs)
    return mask.model_dump_json()
