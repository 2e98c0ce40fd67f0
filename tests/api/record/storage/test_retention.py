"""Which pictures are deleted, and when; on SQLite and PostgreSQL."""

import hashlib
import itertools
import time
from datetime import UTC, datetime, timedelta
from unittest.mock import DEFAULT, Mock

import pytest
from sqlalchemy import insert, select

from api.database.database import write_transaction
from api.metrics import Metrics
from api.record import queries
from api.record.record_metrics import RecordMetrics
from api.record.storage.object_pictures import ObjectPictures
from api.record.storage.pictures import FolderPictures, Space
from api.record.storage.reserved_space import ReservedSpace
from api.record.storage.retention import ClockMonitor, Retention, RetentionRules
from api.record.storage.retention_class import RetentionClass
from api.record.tables import audit, pictures, store
from tests.api.record.databases import sqlite_only

NO_RULES = RetentionRules({}, None, 0.0)
SIZE = 100


class Clock:
    """Both clocks of a monitor, set by the test."""

    def __init__(self):
        self.wall, self.passed = 1e9, 0.0

    def monitor(self, newest=None):
        return ClockMonitor(newest, lambda: self.wall, lambda: self.passed)

    def go(self, seconds, jump=0.0):
        self.passed += seconds
        self.wall += seconds + jump


class StoredPictures:
    """A record of pictures alone."""

    def __init__(self, engine, folder, pictures=None):
        self.engine = engine
        with write_transaction(self.engine) as connection:
            connection.execute(insert(store), {"id": "one", "bytes": 0})
        self.pictures = pictures or FolderPictures(folder / "pictures")
        self.reserved_space = ReservedSpace(folder / "reserved", size=1000)
        self.metrics = Metrics(lambda: 0, lambda: True)
        self.record_metrics = RecordMetrics(self.metrics)
        self.clock = Clock()
        self._numbers = itertools.count()

    def add(self, worth, days=0.0):
        """Stores a picture of 100 bytes; returns its digest."""
        data = next(self._numbers).to_bytes(SIZE, "big")
        sha256 = hashlib.sha256(data).digest()
        self.pictures.put(sha256, data)
        self.add_row(sha256, worth, datetime.now(UTC) - timedelta(days=days))
        self.pictures.clear_marks(sha256)
        return sha256

    def add_row(self, sha256, worth, stored_at):
        row = {"sha256": sha256, "bytes": SIZE, "format": "png", "state": "kept"}
        with write_transaction(self.engine) as connection:
            queries.upsert_pictures(connection, [{**row, "worth": worth, "stored_at": stored_at}])

    def retention(self, rules=NO_RULES, monitor=None):
        monitor = monitor or self.clock.monitor()
        return Retention(self.engine, self.pictures, rules, monitor, self.reserved_space, self.record_metrics)

    def states(self):
        states = {bytes(sha256): state for sha256, state in self.read(pictures.c.sha256, pictures.c.state)}
        assert all(self.pictures.contains(sha256) == (state == "kept") for sha256, state in states.items())
        return states

    def read(self, *columns):
        with self.engine.connect() as connection:
            return connection.execute(select(*columns)).all()

    def bytes(self):
        return self.read(store.c.bytes)[0][0]

    def audit(self):
        return self.read(audit.c.who, audit.c.what, audit.c.after)


@pytest.fixture
def kept(engine, tmp_path):
    return StoredPictures(engine, tmp_path)


def test_pictures_expire_at_the_age_of_their_class(kept, monkeypatch):
    monkeypatch.setattr("api.record.storage.retention.DELETE_BATCH", 2)
    rules = RetentionRules({RetentionClass.GOOD: 30, RetentionClass.DEFECT: 100}, None, 0.0)
    old = [kept.add(RetentionClass.GOOD, days=40) for _ in range(3)]
    others = [kept.add(worth, days=40) for worth in RetentionClass if worth != RetentionClass.GOOD]
    others.append(kept.add(RetentionClass.GOOD, days=20))
    kept.retention(rules).run()
    assert kept.states() == {**dict.fromkeys(old, "expired"), **dict.fromkeys(others, "kept")}
    assert kept.bytes() == SIZE * len(others)
    assert kept.audit() == [
        ("retention", "delete pictures", '{"cause": "age", "count": 2}'),
        ("retention", "delete pictures", '{"cause": "age", "count": 1}'),
    ]
    text = kept.metrics.render()[0].decode()
    assert 'segdec_record_deleted_pictures_total{cause="age"} 3.0' in text
    assert f"segdec_record_pictures_bytes {kept.bytes()}.0" in text


@sqlite_only
def test_pictures_in_an_object_store_are_deleted(engine, tmp_path, bucket, object_store):
    kept = StoredPictures(engine, tmp_path, ObjectPictures(f"s3://{bucket}"))
    old = [kept.add(RetentionClass.GOOD, days=40) for _ in range(3)]
    young = [kept.add(RetentionClass.GOOD) for _ in range(3)]
    kept.retention(RetentionRules({RetentionClass.GOOD: 30}, None, 0.5)).run()
    assert kept.states() == {**dict.fromkeys(old, "expired"), **dict.fromkeys(young, "kept")}
    assert len(object_store.keys(bucket)) == len(young)
    assert b"segdec_record_free_bytes +Inf" in kept.metrics.render()[0]
    assert not (tmp_path / "reserved").exists()


def test_a_person_deletes_a_picture_that_was_lost_and_stored_again(kept):
    sha256, other = kept.add(RetentionClass.GOOD), kept.add(RetentionClass.GOOD)
    with write_transaction(kept.engine) as connection:
        queries.subtract_stored_bytes(connection, [sha256])
        queries.change_picture_states(connection, [sha256], "kept", "lost")
    retention = kept.retention()
    for _ in range(2):
        retention.delete_picture(sha256, 1, "admin")
    assert kept.states() == {sha256: "expired", other: "kept"}
    assert kept.bytes() == SIZE
    assert [entry[:2] for entry in kept.audit()] == [("admin", "delete a picture")]
    assert deletions(kept) == {sha256: (True, "admin"), other: (False, None)}


def deletions(kept):
    """Returns whether each picture has a time of deletion, and by whom it was deleted."""
    rows = kept.read(pictures.c.sha256, pictures.c.deleted_at, pictures.c.deleted_by)
    return {bytes(sha256): (at is not None, who) for sha256, at, who in rows}


def test_a_deletion_is_forgotten_when_the_picture_arrives_again(kept):
    by_rule, by_person = kept.add(RetentionClass.GOOD, days=40), kept.add(RetentionClass.DEFECT)
    retention = kept.retention(RetentionRules({RetentionClass.GOOD: 30}, None, 0.0))
    retention.run()
    retention.delete_picture(by_person, 1, "anna")
    assert deletions(kept) == {by_rule: (True, None), by_person: (True, "anna")}
    for sha256 in (by_rule, by_person):
        kept.add_row(sha256, RetentionClass.DEFECT, datetime.now(UTC))
    assert deletions(kept) == dict.fromkeys((by_rule, by_person), (False, None))


def test_the_size_limit_deletes_the_lowest_class_and_the_oldest_first(kept, monkeypatch):
    monkeypatch.setattr("api.record.storage.retention.DELETE_BATCH", 1)
    ages = {RetentionClass.GOOD: (3, 2), RetentionClass.GOOD_SAMPLE: (9,), RetentionClass.DEFECT: (99,)}
    order = [kept.add(worth, days) for worth, found in ages.items() for days in found]
    order.append(kept.add(RetentionClass.REVIEWED, days=999))
    for left in (4, 2, 1):
        kept.retention(RetentionRules({}, left * SIZE + 50, 0.0)).run()
        deleted = len(order) - left
        assert [kept.states()[sha256] for sha256 in order] == ["expired"] * deleted + ["kept"] * left


@sqlite_only
def test_reviewed_pictures_are_never_deleted_for_space(kept, monkeypatch, caplog):
    reviewed = kept.add(RetentionClass.REVIEWED, days=999)
    kept.add(RetentionClass.GOOD)
    monkeypatch.setattr(kept.pictures, "space", lambda: Space(1000, 1))
    kept.retention(RetentionRules({}, None, 0.1)).run()
    assert [sha for sha, state in kept.states().items() if state == "kept"] == [reviewed]
    assert "no photograph is left that may be deleted" in caplog.text
    assert b"segdec_record_short 1.0" in kept.metrics.render()[0]


@sqlite_only
def test_the_free_share_deletes_nothing_if_all_pictures_together_would_not_suffice(kept, monkeypatch, caplog):
    """Others fill the disk: of 100,000 bytes 30 % should be free, and 28,000 are."""
    monkeypatch.setattr("api.record.storage.retention.DELETE_BATCH", 1)
    monkeypatch.setattr("api.record.queries.FIRST_SUMMED", 1)
    free = [28_000]
    monkeypatch.setattr(kept.pictures, "space", lambda: Space(100_000, free[0] + deleted_bytes(kept)))
    order = [kept.add(RetentionClass.GOOD, days) for days in range(12, 0, -1)]
    for _ in range(15):
        kept.add(RetentionClass.REVIEWED)
    retention = kept.retention(RetentionRules({}, None, 0.3))
    for _ in range(2):
        retention.run()
    assert set(kept.states().values()) == {"kept"}
    assert retention.problem is not None and "Less than 30% of the disk is free" in retention.problem
    assert caplog.text.count("No photograph is deleted for that until the disk is full") == 1
    assert b"segdec_record_short 1.0" in kept.metrics.render()[0]
    free[0] = 29_000  # deleting ten suffices
    retention.run()
    assert [kept.states()[sha256] for sha256 in order] == ["expired"] * 10 + ["kept"] * 2
    assert retention.problem is None and b"segdec_record_short 0.0" in kept.metrics.render()[0]


def deleted_bytes(kept):
    return SIZE * list(kept.states().values()).count("expired")


@sqlite_only
def test_a_full_disk_deletes_the_oldest_even_if_the_free_share_cannot_be_reached(kept, monkeypatch, tmp_path):
    monkeypatch.setattr("api.record.storage.retention.DELETE_BATCH", 1)
    order = [kept.add(RetentionClass.GOOD, days) for days in range(12, 0, -1)]
    free = [1800]

    def space():
        reserved = tmp_path / "reserved"
        return Space(
            10**6, free[0] + deleted_bytes(kept) - (reserved.stat().st_size if reserved.exists() else 0)
        )

    monkeypatch.setattr(kept.pictures, "space", space)
    retention = kept.retention(RetentionRules({}, None, 0.3))
    retention.run()  # two more make space for the file of 1000 bytes, and leave as much free
    assert [kept.states()[sha256] for sha256 in order] == ["expired"] * 2 + ["kept"] * 10
    assert (tmp_path / "reserved").exists()
    free[0] -= 300
    retention.run()
    assert [kept.states()[sha256] for sha256 in order] == ["expired"] * 5 + ["kept"] * 7
    assert "Less than 30%" in str(retention.problem)


def test_a_picture_that_arrives_during_its_deletion_is_kept(kept):
    sha256 = kept.add(RetentionClass.GOOD)
    with write_transaction(kept.engine) as connection:
        queries.change_picture_states(connection, [sha256], "kept", "expiring")
    kept.add_row(sha256, RetentionClass.DEFECT, datetime.now(UTC))
    kept.retention().run()
    assert kept.states() == {sha256: "kept"} and kept.bytes() == SIZE


# === Jumps of the clock ===


@sqlite_only
def test_a_jump_of_the_clock_suspends_expiry_for_a_day(kept):
    rules, monitor = RetentionRules({RetentionClass.GOOD: 30}, None, 0.0), kept.clock.monitor()
    sha256 = kept.add(RetentionClass.GOOD, days=40)
    kept.clock.go(60, jump=-3_600.0)
    kept.retention(rules, monitor).run()
    kept.clock.go(86_399)
    kept.retention(rules, monitor).run()
    assert kept.states() == {sha256: "kept"}
    assert b"segdec_record_clock_distrusted 1.0" in kept.metrics.render()[0]
    kept.clock.go(1)
    kept.retention(rules, monitor).run()
    assert kept.states() == {sha256: "expired"}


@sqlite_only
def test_a_jump_while_the_rules_are_applied_deletes_nothing(kept, monkeypatch):
    rules, monitor = RetentionRules({RetentionClass.GOOD: 30}, None, 0.0), kept.clock.monitor()
    sha256 = kept.add(RetentionClass.GOOD)
    jumped = Mock(wraps=datetime)

    def is_trusted():
        jumped.now.return_value = datetime.now(UTC) + timedelta(days=40)
        return ClockMonitor.is_trusted(monitor)

    monkeypatch.setattr("api.record.storage.retention.datetime", jumped)
    monkeypatch.setattr(monitor, "is_trusted", is_trusted)
    kept.retention(rules, monitor).run()
    assert kept.states() == {sha256: "kept"}


@pytest.mark.parametrize(
    ("newest", "trusted"),
    [(None, True), (0.0, True), (14 * 86_400, True), (14 * 86_401, False), (-61.0, False)],
)
def test_a_jump_of_the_clock_while_the_service_was_off(newest, trusted):
    clock = Clock()
    assert clock.monitor(None if newest is None else clock.wall - newest).is_trusted() is trusted


# === Reserved space and failures ===


@sqlite_only
def test_reserved_space_is_released_when_the_disk_is_full(kept, tmp_path):
    kept.retention().run()
    assert (tmp_path / "reserved").stat().st_size == 1000
    kept.retention().run_now()
    assert not (tmp_path / "reserved").exists()
    kept.reserved_space.reserve(free_bytes=1999)
    assert not (tmp_path / "reserved").exists()


@sqlite_only
def test_the_thread_survives_failures(kept, monkeypatch, caplog):
    monkeypatch.setattr("api.record.storage.retention.INTERVAL_S", 0.01)
    sha256 = kept.add(RetentionClass.GOOD, days=40)
    retention = kept.retention(RetentionRules({RetentionClass.GOOD: 30}, None, 0.0))
    effects = [OSError("gone"), OSError("gone"), DEFAULT]
    kept.pictures.delete = Mock(side_effect=effects, wraps=kept.pictures.delete)
    retention.start()
    try:
        while kept.pictures.contains(sha256):
            time.sleep(0.01)
    finally:
        retention.close()
    assert caplog.text.count("The retention rules were not applied: gone") == 2
    assert kept.states() == {sha256: "expired"}
