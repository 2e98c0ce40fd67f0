"""What the writer makes of a database or a store of pictures that fails, and of what nobody expects."""

import hashlib
import threading

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from api.metrics import Metrics
from api.records import queries
from api.records.inspection import Inspection
from api.records.outbox import Outbox
from api.records.record_metrics import RecordMetrics
from api.records.storage.pictures import FolderPictures
from api.records.writer import RecordUnavailableError, RecordWriter
from tests.api.records.filled_record import NOW, make_row, open_stocked

SET = threading.Event()
SET.set()


def make_inspection(number, shows=None, **changes):
    data = (shows or number).to_bytes(100, "big")
    sha256 = hashlib.sha256(data).digest()
    row = {
        "sha256": sha256,
        "bytes": len(data),
        "format": "png",
        "state": "kept",
        "worth": 3,
        "stored_at": NOW,
    }
    return Inspection(make_row(number, picture=sha256, **changes), data, row)


class Desk:
    """A writer and what it writes to."""

    def __init__(self, engine, folder):
        self.engine, self.told = engine, []
        self.pictures = FolderPictures(folder)
        metrics = RecordMetrics(Metrics(lambda: 0, lambda: True))
        self.writer = RecordWriter(engine, self.pictures, metrics, Outbox(), self.told.append)

    def refuse(self, inspection):
        with pytest.raises(RecordUnavailableError):
            self.writer.store(inspection).result(20)


@pytest.fixture
def desk(tmp_path):
    desk = Desk(open_stocked(f"sqlite:///{tmp_path}/record.db"), tmp_path / "pictures")
    yield desk
    desk.writer.close()


def test_what_nobody_expects_costs_one_inspection_and_not_all_that_follow(desk):
    desk.refuse(make_inspection(1, station="\ud800"))  # no text that a database takes
    assert desk.writer.store(make_inspection(2)).result(20).record_id == 1


def fail(engine, error, may_go_on):
    """Lets each transaction fail, once it may go on; returns how many there were, and what lets them be."""
    begun = []

    def begin(_):
        begun.append(1)
        may_go_on.wait(20)
        raise error

    event.listen(engine, "begin", begin)
    return begun, lambda: event.remove(engine, "begin", begin)


@pytest.mark.parametrize(
    "error", [OperationalError("BEGIN", {}, Exception("connection refused")), PoolTimeoutError("3 s")]
)
def test_a_database_that_does_not_answer_is_asked_once_for_all_that_waits(desk, error):
    may_go_on = threading.Event()
    begun, take_back = fail(desk.engine, error, may_go_on)
    waiting = [desk.writer.store(make_inspection(number)) for number in range(1, 12)]
    may_go_on.set()
    for future in waiting:
        assert isinstance(future.exception(20), RecordUnavailableError)
    assert len(begun) <= 2  # the first one may have been alone
    take_back()


def test_pictures_of_what_could_not_be_kept_do_not_pile_up(desk):
    refused = [make_inspection(number) for number in range(1, 5)]
    _, take_back = fail(desk.engine, OperationalError("BEGIN", {}, Exception("connection refused")), SET)
    for inspection in refused:
        desk.refuse(inspection)
    assert list(desk.pictures.marked()) == [refused[0].sha256]
    take_back()
    kept = make_inspection(5)
    desk.writer.store(kept).result(20)
    assert not list(desk.pictures.marked())
    assert [desk.pictures.contains(one.sha256) for one in (*refused, kept)] == [False] * 4 + [True]


def test_what_is_kept_is_not_removed_with_what_is_not(desk):
    kept = make_inspection(1)
    desk.writer.store(kept).result(20)
    _, take_back = fail(desk.engine, OperationalError("BEGIN", {}, Exception("connection refused")), SET)
    desk.refuse(make_inspection(2, shows=1))
    take_back()
    desk.writer.store(make_inspection(3)).result(20)
    assert desk.pictures.contains(kept.sha256)


def test_a_picture_that_came_with_the_key_of_another_one_is_let_go(desk):
    first, other = make_inspection(1, request_key=b"key"), make_inspection(2, request_key=b"key")
    shown = make_inspection(3)
    for inspection in (first, shown):
        desk.writer.store(inspection).result(20)
    for inspection in (other, make_inspection(4, shows=3, request_key=b"key")):
        assert desk.writer.store(inspection).result(20).record_id == 1
    with desk.engine.connect() as connection:
        states = [queries.picture_state(connection, one.sha256) for one in (first, shown, other)]
    assert states == ["kept", "kept", "expiring"]
