"""What the writer makes of a database or a store of pictures that fails, and of what nobody expects."""

import hashlib

import pytest

from api.middleware.metrics import Metrics
from api.records.inspection import Inspection
from api.records.outbox import Outbox
from api.records.pictures import FolderPictures
from api.records.record_metrics import RecordMetrics
from api.records.writer import RecordUnavailableError, RecordWriter
from tests.api.records.stocked_record import NOW, make_row, open_stocked


def make_inspection(number, **changes):
    data = number.to_bytes(100, "big")
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
            self.writer.keep(inspection).result(20)


@pytest.fixture
def desk(tmp_path):
    desk = Desk(open_stocked(f"sqlite:///{tmp_path}/record.db"), tmp_path / "pictures")
    yield desk
    desk.writer.close()


def test_what_nobody_expects_costs_one_inspection_and_not_all_that_follow(desk):
    desk.refuse(make_inspection(1, station="\ud800"))  # no text that a database takes
    assert desk.writer.keep(make_inspection(2)).result(20).record_id == 1
