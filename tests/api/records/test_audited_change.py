"""A change outside of the record and its line in the audit: both or none, on both databases."""

import asyncio
import json

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from api.errors import RequestError
from api.metrics import Metrics
from api.records.audit import AuditEntry
from api.records.outbox import Outbox
from api.records.record import Record
from api.records.record_metrics import RecordMetrics
from api.records.recording import Recording
from api.records.storage.retention import RetentionRules
from api.settings import Settings
from tests.api.records.databases import sqlite_only

LINE = AuditEntry("anna", "promote", {"labels": {"stable": "1"}}, {"labels": {"stable": "2"}})


@pytest.fixture
def record(database_url, tmp_path):
    rules = RetentionRules.from_settings(Settings(model=tmp_path))
    metrics = RecordMetrics(Metrics(lambda: 0, lambda: True))
    record = Record(database_url, tmp_path / "record", rules, 1, metrics, Outbox(()))
    yield record
    record.close()


def lines(record):
    return record.read(lambda asked: asked.exec_driver_sql("SELECT who, what, before FROM audit").all())


def fail(*_):
    raise OperationalError("COMMIT", {}, Exception("database is gone"))


@sqlite_only
@pytest.mark.parametrize("mode", ["required", "best-effort"])
def test_a_change_is_made_and_written_down(record, mode):
    made = []

    async def scenario():
        await Recording(mode, record).change(LINE, lambda: made.append("made"), made.clear)
        return await lines(record)

    told = asyncio.run(scenario())
    assert [(who, what, json.loads(before)) for who, what, before in told] == [
        ("anna", "promote", LINE.before)
    ]
    assert made == ["made"]


@sqlite_only
def test_a_change_that_cannot_be_made_is_not_written_down(record):
    def refuse():
        raise RequestError(409, "labels_changed", "Somebody was faster.")

    async def scenario():
        with pytest.raises(RequestError, match="faster"):
            await Recording("best-effort", record).change(LINE, refuse, refuse)
        return await lines(record)

    assert asyncio.run(scenario()) == []


@pytest.mark.parametrize(("mode", "made_at_last"), [("required", []), ("best-effort", ["made"])])
def test_a_line_that_is_not_kept_takes_the_change_back_where_it_must_be(record, mode, made_at_last, caplog):
    made, taken_back = [], []

    def take_back():
        taken_back.append(made.pop())

    async def scenario():
        await record.open()
        event.listen(record._engine, "commit", fail)
        change = Recording(mode, record).change(LINE, lambda: made.append("made"), take_back)
        if mode == "required":
            with pytest.raises(RequestError, match="database does not answer"):
                await change
        else:
            await change
        event.remove(record._engine, "commit", fail)
        return await lines(record)

    assert asyncio.run(scenario()) == []
    assert (made, taken_back) == (made_at_last, ["made"])
    assert (mode == "best-effort") == any("The audit log has no entry" in told for told in caplog.messages)


def test_without_a_record_a_change_is_made_all_the_same():
    made = []
    asyncio.run(Recording("off", None).change(LINE, lambda: made.append("made"), made.clear))
    assert made == ["made"]
