"""Changes outside of the record and their entries in the audit log: both or neither."""

import asyncio
import json
from unittest.mock import Mock

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from api.errors import RequestError
from api.record import recording
from api.record.audit import AuditEntry
from api.record.recording import Recording
from tests.api.record.databases import sqlite_only
from tests.api.record.filled_record import make_record

ENTRY = AuditEntry("anna", "promote", {"aliases": {"stable": "1"}}, {"aliases": {"stable": "2"}})


@pytest.fixture
def record(database_url, tmp_path):
    record = make_record(database_url, tmp_path / "record")
    yield record
    record.close()


def entries(record):
    return record.read(lambda asked: asked.exec_driver_sql("SELECT who, what, before FROM audit").all())


def fail(*_):
    raise OperationalError("COMMIT", {}, Exception("database is gone"))


@sqlite_only
def test_a_change_is_made_and_logged_unless_it_fails(record):
    made = []

    def refuse():
        raise RequestError(409, "aliases_changed", "Someone was faster.")

    async def scenario():
        recording = Recording("required", record)
        await recording.change(ENTRY, lambda: made.append("made"), made.clear)
        with pytest.raises(RequestError, match="faster"):
            await recording.change(ENTRY, refuse, refuse)
        return await entries(record)

    ((who, what, before),) = asyncio.run(scenario())
    assert (who, what, json.loads(before)) == ("anna", "promote", ENTRY.before)
    assert made == ["made"]


@pytest.mark.parametrize(("mode", "made_finally"), [("required", []), ("best-effort", ["made"])])
def test_a_change_without_a_log_entry_is_reverted_if_recording_is_required(
    record, mode, made_finally, monkeypatch
):
    made, reverted, warned = [], [], Mock()
    monkeypatch.setattr(recording.logger, "warning", warned)

    async def scenario():
        await record.open()
        event.listen(record._engine, "commit", fail)
        steps = lambda: made.append("made"), lambda: reverted.append(made.pop())
        change = Recording(mode, record).change(ENTRY, *steps)
        if mode == "required":
            with pytest.raises(RequestError, match="database does not answer"):
                await change
        else:
            await change
        event.remove(record._engine, "commit", fail)
        return await entries(record)

    assert asyncio.run(scenario()) == []
    assert (made, reverted) == (made_finally, ["made"])
    assert (mode == "best-effort") == ("The audit log has no entry" in str(warned.call_args))
