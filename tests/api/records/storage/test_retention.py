"""Which pictures are deleted, and when; on SQLite and PostgreSQL."""

import hashlib
import itertools
import time
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert, select

from api.metrics import Metrics
from api.records import queries
from api.records.database import migrate, open_database, writing
from api.records.record_metrics import RecordMetrics
from api.records.storage.object_pictures import ObjectPictures
from api.records.storage.pictures import FolderPictures, Space
from api.records.storage.reserved_space import ReservedSpace
from api.records.storage.retention import (
    EXPIRY_SUSPENSION_S,
    MAX_IDLE_S,
    ClockMonitor,
    Retention,
    RetentionRules,
)
from api.records.storage.retention_class import RetentionClass
from api.records.tables import audit, pictures, store
from tests.api.records.databases import sqlite_only

NOTHING = RetentionRules({}, None, 0.0)
SIZE = 100


class Clock:
    """Both clocks of a watch, moved by hand."""

    def __init__(self):
        self.wall, self.passed = 1e9, 0.0

    def watch(self, newest=None):
        return ClockMonitor(newest, lambda: self.wall, lambda: self.passed)

    def go(self, seconds, jump=0.0):
        self.passed += seconds
        self.wall += seconds + jump


class StoredInspection:
    """A record of pictures alone, and the rules on it."""

    def __init__(self, url, folder, pictures=None):
        self.engine = open_database(url)
        migrate(self.engine)
        with writing(self.engine) as connection:
            connection.execute(insert(store), {"id": "one", "bytes": 0})
        self.pictures = pictures or FolderPictures(folder / "pictures")
        self.reserved_space = ReservedSpace(folder / "ballast", size=1000)
        self.metrics = Metrics(lambda: 0, lambda: True)
        self.told = RecordMetrics(self.metrics)
        self.clock = Clock()
        self._numbers = itertools.count()

    def add(self, worth, days=0.0):
        """Stores a picture of 100 bytes; returns its digest."""
        data = next(self._numbers).to_bytes(SIZE, "big")
        sha256 = hashlib.sha256(data).digest()
        self.pictures.put(sha256, data)
        stored_at = datetime.now(UTC) - timedelta(days=days)
        row = {"sha256": sha256, "bytes": SIZE, "format": "png", "state": "kept"}
        with writing(self.engine) as connection:
            queries.upsert_pictures(connection, [{**row, "worth": worth, "stored_at": stored_at}])
        self.pictures.clear_marks(sha256)
        return sha256

    def apply(self, rules, watch=None):
        watch = watch or self.clock.watch()
        retention = Retention(self.engine, self.pictures, rules, watch, self.reserved_space, self.told)
        retention.run()

    def states(self):
        with self.engine.connect() as connection:
            rows = connection.execute(select(pictures.c.sha256, pictures.c.state)).all()
        states = {bytes(sha256): state for sha256, state in rows}
        assert all(self.pictures.contains(sha256) == (state == "kept") for sha256, state in states.items())
        return states

    def bytes(self):
        with self.engine.connect() as connection:
            return queries.stored_bytes(connection)


@pytest.fixture
def kept(database_url, tmp_path):
    kept = StoredInspection(database_url, tmp_path)
    yield kept
    kept.engine.dispose()


def test_pictures_go_at_the_age_that_their_worth_has(kept):
    rules = RetentionRules({RetentionClass.GOOD: 30, RetentionClass.DEFECT: 100}, None, 0.0)
    old = {worth: kept.add(worth, days=40) for worth in RetentionClass}
    young = kept.add(RetentionClass.GOOD, days=20)
    kept.apply(rules)
    states = kept.states()
    assert states.pop(old[RetentionClass.GOOD]) == "expired"
    assert set(states.values()) == {"kept"} and young in states
    assert kept.bytes() == SIZE * len(states)


@sqlite_only
def test_pictures_in_an_object_store_go_too(database_url, tmp_path, bucket, object_store):
    kept = StoredInspection(database_url, tmp_path, ObjectPictures(f"s3://{bucket}"))
    old, young = (
        [kept.add(RetentionClass.GOOD, days=40) for _ in range(3)],
        [kept.add(RetentionClass.GOOD) for _ in range(3)],
    )
    kept.apply(RetentionRules({RetentionClass.GOOD: 30}, None, 0.5))
    assert kept.states() == {**dict.fromkeys(old, "expired"), **dict.fromkeys(young, "kept")}
    kept.apply(RetentionRules({}, SIZE, 0.5))
    assert set(kept.states().values()) == {"expired"} and object_store.keys(bucket) == []
    assert b"segdec_record_free_bytes +Inf" in kept.metrics.render()[0]
    assert not (tmp_path / "ballast").exists()
    kept.engine.dispose()


def test_a_person_deletes_a_picture_that_was_lost_and_has_come_back(kept):
    sha256, other = kept.add(RetentionClass.GOOD), kept.add(RetentionClass.GOOD)
    with writing(kept.engine) as connection:
        queries.subtract_stored_bytes(connection, [sha256])
        queries.change_picture_states(connection, [sha256], "kept", "lost")
    retention = Retention(
        kept.engine, kept.pictures, NOTHING, kept.clock.watch(), kept.reserved_space, kept.told
    )
    for _ in range(2):
        retention.delete_picture(sha256, 1, "admin")
    assert kept.states() == {sha256: "expired", other: "kept"}
    assert kept.bytes() == SIZE
    with kept.engine.connect() as connection:
        assert connection.execute(select(audit.c.who, audit.c.what)).all() == [("admin", "delete a picture")]


def test_a_budget_takes_what_is_worth_least_and_of_that_the_oldest(kept):
    order = [
        kept.add(RetentionClass.GOOD, days=3),
        kept.add(RetentionClass.GOOD, days=2),
        kept.add(RetentionClass.GOOD_SAMPLE, days=9),
    ]
    order += [kept.add(RetentionClass.TO_REVIEW, days=9), kept.add(RetentionClass.DEFECT, days=9)]
    reviewed = kept.add(RetentionClass.REVIEWED, days=99)
    for bytes_left in (5 * SIZE + 50, 3 * SIZE, SIZE, 1):
        kept.apply(RetentionRules({}, bytes_left, 0.0))
    assert kept.states() == {**dict.fromkeys(order, "expired"), reviewed: "kept"}


@sqlite_only
def test_space_is_made_in_the_order_of_worth(kept, monkeypatch):
    monkeypatch.setattr("api.records.storage.retention.DELETE_BATCH", 1)
    digests = [kept.add(worth, days=5) for worth in RetentionClass]
    spaces = iter([Space(1000, 40), Space(1000, 60), Space(1000, 120), Space(1000, 120)])
    monkeypatch.setattr(kept.pictures, "space", lambda: next(spaces))
    kept.apply(RetentionRules({}, None, 0.1))
    assert list(kept.states().values()).count("expired") == 2
    assert [kept.states()[sha256] for sha256 in digests[:3]] == ["expired", "expired", "kept"]


@sqlite_only
def test_reviewed_pictures_are_never_given_up_for_space(kept, monkeypatch, caplog):
    reviewed = kept.add(RetentionClass.REVIEWED, days=999)
    kept.add(RetentionClass.GOOD)
    monkeypatch.setattr(kept.pictures, "space", lambda: Space(1000, 1))
    kept.apply(RetentionRules({}, None, 0.1))
    assert [sha for sha, state in kept.states().items() if state == "kept"] == [reviewed]
    assert "no picture is left that it may delete" in caplog.text
    assert kept.metrics.render()[0].count(b"segdec_record_short 1.0") == 1


def test_what_is_deleted_is_counted_and_written_down(kept, monkeypatch):
    monkeypatch.setattr("api.records.storage.retention.DELETE_BATCH", 2)
    for _ in range(3):
        kept.add(RetentionClass.GOOD, days=40)
    kept.apply(RetentionRules({RetentionClass.GOOD: 30}, None, 0.0))
    with kept.engine.connect() as connection:
        lines = connection.execute(select(audit.c.who, audit.c.what, audit.c.after)).all()
    assert [(who, what) for who, what, _ in lines] == [("retention", "delete pictures")] * 2
    assert [after for *_, after in lines] == [
        '{"cause": "age", "count": 2}',
        '{"cause": "age", "count": 1}',
    ]
    text = kept.metrics.render()[0].decode()
    assert 'segdec_record_deleted_pictures_total{cause="age"} 3.0' in text
    assert "segdec_record_pictures_bytes 0.0" in text


def test_a_picture_that_comes_again_while_it_is_deleted_stays(kept):
    sha256 = kept.add(RetentionClass.GOOD)
    with writing(kept.engine) as connection:
        queries.change_picture_states(connection, [sha256], "kept", "expiring")
    row = {"sha256": sha256, "bytes": SIZE, "format": "png", "state": "kept", "worth": RetentionClass.DEFECT}
    with writing(kept.engine) as connection:
        queries.upsert_pictures(connection, [{**row, "stored_at": datetime.now(UTC)}])
    kept.apply(NOTHING)
    assert kept.states() == {sha256: "kept"} and kept.bytes() == SIZE


# === A clock that jumps ===


@sqlite_only
@pytest.mark.parametrize("jump", [-3_600.0])
def test_after_a_jump_of_the_clock_no_age_is_believed_for_a_day(kept, jump):
    rules, watch = RetentionRules({RetentionClass.GOOD: 30}, None, 0.0), kept.clock.watch()
    sha256 = kept.add(RetentionClass.GOOD, days=40)
    kept.clock.go(60, jump)
    kept.apply(rules, watch)
    kept.clock.go(EXPIRY_SUSPENSION_S - 1)
    kept.apply(rules, watch)
    assert kept.states() == {sha256: "kept"}
    assert b"segdec_record_clock_distrusted 1.0" in kept.metrics.render()[0]
    kept.clock.go(1)
    kept.apply(rules, watch)
    assert kept.states() == {sha256: "expired"}


@pytest.mark.parametrize(
    ("newest", "trusted"),
    [(None, True), (0.0, True), (MAX_IDLE_S, True), (MAX_IDLE_S + 1, False), (-61.0, False)],
)
def test_a_clock_that_jumped_while_the_service_was_off(newest, trusted):
    clock = Clock()
    assert clock.watch(None if newest is None else clock.wall - newest).is_trusted() is trusted


# === Ballast ===


@sqlite_only
def test_ballast_is_there_while_there_is_room_and_dropped_in_a_hurry(kept, tmp_path):
    kept.apply(NOTHING)
    assert (tmp_path / "ballast").stat().st_size == 1000
    retention = Retention(
        kept.engine, kept.pictures, NOTHING, kept.clock.watch(), kept.reserved_space, kept.told
    )
    retention.run_now()
    assert not (tmp_path / "ballast").exists()
    kept.reserved_space.reserve(free_bytes=3999)
    assert not (tmp_path / "ballast").exists()


@sqlite_only
def test_a_failure_of_the_database_does_not_end_the_thread(kept, monkeypatch, caplog):
    monkeypatch.setattr("api.records.storage.retention.INTERVAL_S", 0.01)
    sha256 = kept.add(RetentionClass.GOOD, days=40)
    rules = RetentionRules({RetentionClass.GOOD: 30}, None, 0.0)
    retention = Retention(
        kept.engine, kept.pictures, rules, kept.clock.watch(), kept.reserved_space, kept.told
    )
    delete, failures = kept.pictures.delete, iter([OSError("gone"), OSError("gone")])

    def fail_twice(digest):
        for failure in failures:
            raise failure
        delete(digest)

    monkeypatch.setattr(kept.pictures, "delete", fail_twice)
    retention.start()
    try:
        while kept.pictures.contains(sha256):
            time.sleep(0.01)
    finally:
        retention.close()
    assert caplog.text.count("The retention rules were not applied: gone") == 2
    assert kept.states() == {sha256: "expired"}
