"""The writer while the database or the picture store fails, and after unexpected errors."""

import hashlib
import threading
from contextlib import contextmanager

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from api.metrics import Metrics
from api.record import queries
from api.record.inspection import NewInspection
from api.record.outbox import Outbox
from api.record.record_metrics import RecordMetrics
from api.record.storage.pictures import FolderPictures
from api.record.writer import RecordUnavailableError, RecordWriter
from tests.api.record.databases import sqlite_only
from tests.api.record.filled_record import NOW, make_row

REFUSED = OperationalError("BEGIN", {}, Exception("connection refused"))


def make_inspection(number, shows=None, **changes):
    data = (shows or number).to_bytes(100, "big")
    sha256 = hashlib.sha256(data).digest()
    row = {"sha256": sha256, "bytes": len(data), "format": "png", "state": "kept", "worth": 3}
    return NewInspection(make_row(number, picture=sha256, **changes), data, {**row, "stored_at": NOW})


class Setup:
    """A writer with its database and pictures."""

    def __init__(self, engine, folder):
        self.engine, self.pictures = engine, FolderPictures(folder)
        metrics = RecordMetrics(Metrics(lambda: 0, lambda: True))
        self.writer = RecordWriter(engine, self.pictures, metrics, Outbox(), lambda _: None)

    def store(self, inspection):
        return self.writer.store(inspection).result(20).record_id

    def fail(self, inspection):
        with pytest.raises(RecordUnavailableError):
            self.writer.store(inspection).result(20)

    @contextmanager
    def outage(self, error=REFUSED, may_begin=None):
        """Lets each transaction fail within the block, once `may_begin` is set; yields their list."""
        begun = []

        def begin(_):
            begun.append(1)
            if may_begin is not None:
                may_begin.wait(20)
            raise error

        event.listen(self.engine, "begin", begin)
        yield begun
        event.remove(self.engine, "begin", begin)


@pytest.fixture
def setup(engine, tmp_path):
    setup = Setup(engine, tmp_path / "pictures")
    yield setup
    setup.writer.close()


@sqlite_only
def test_an_unexpected_error_fails_one_inspection_only(setup):
    setup.fail(make_inspection(1, station="\ud800"))  # not valid text
    assert setup.store(make_inspection(2)) == 1


@sqlite_only
@pytest.mark.parametrize("error", [REFUSED, PoolTimeoutError("3 s")])
def test_an_outage_fails_all_waiting_inspections_after_one_attempt(setup, error):
    may_begin = threading.Event()
    with setup.outage(error, may_begin) as begun:
        waiting = [setup.writer.store(make_inspection(number)) for number in range(1, 12)]
        may_begin.set()
        for future in waiting:
            assert isinstance(future.exception(20), RecordUnavailableError)
    assert len(begun) <= 2  # the first inspection may have been alone


@sqlite_only
def test_pictures_of_failed_inspections_are_removed_unless_they_were_stored(setup):
    failed = [make_inspection(number) for number in range(1, 5)]
    first, stored = make_inspection(5), make_inspection(6)
    setup.store(first)
    with setup.outage():
        setup.fail(make_inspection(7, shows=5))
    setup.store(make_inspection(8))
    with setup.outage():
        for inspection in failed:
            setup.fail(inspection)
        assert list(setup.pictures.marked()) == [failed[0].sha256]
    setup.store(stored)
    assert not list(setup.pictures.marked())
    assert not any(setup.pictures.contains(one.sha256) for one in failed)
    assert setup.pictures.contains(first.sha256) and setup.pictures.contains(stored.sha256)


@sqlite_only
def test_the_picture_of_a_repeated_key_expires_unless_it_is_referenced(setup):
    first, other = make_inspection(1, request_key=b"key"), make_inspection(2, request_key=b"key")
    shown = make_inspection(3)
    for inspection in (first, shown):
        setup.store(inspection)
    for inspection in (other, make_inspection(4, shows=3, request_key=b"key")):
        assert setup.store(inspection) == 1
    with setup.engine.connect() as connection:
        states = [queries.picture_state(connection, one.sha256) for one in (first, shown, other)]
    assert states == ["kept", "kept", "expiring"]
