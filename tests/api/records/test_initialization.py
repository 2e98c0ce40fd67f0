"""A record that could not be opened at the start, and is tried again by those who come."""

import asyncio

import pytest
from sqlalchemy.exc import OperationalError

from api.errors import RequestError
from api.metrics import Metrics
from api.records.database import migrate
from api.records.outbox import Outbox
from api.records.record import Record
from api.records.record_metrics import RecordMetrics
from api.records.storage.retention import RetentionRules
from segdec.errors import ConfigError
from tests.api.conftest import ServiceClient

PNG = {"Content-Type": "image/png"}


@pytest.fixture
def opening(monkeypatch):
    """Fails with what its list holds first; counts how often it was tried."""
    tried, failures = [], [OperationalError("", {}, Exception("gone"))]

    def migrate(_):
        tried.append(None)
        raise failures[0]

    monkeypatch.setattr("api.records.initialization.migrate", migrate)
    return tried, failures


@pytest.mark.parametrize(
    ("mode", "status", "codes"), [("required", 503, ["record_unavailable"]), ("best-effort", 200, [None])]
)
def test_a_database_that_turns_out_to_be_another_ones_is_no_fault_of_the_service(
    make_app, tmp_path, part, opening, monkeypatch, mode, status, codes
):
    with ServiceClient(make_app(record=mode, record_folder=tmp_path / "record")) as client:
        opening[1][0] = ConfigError("It belongs to another one.")
        monkeypatch.setattr("api.records.record.REOPEN_S", 0.0)
        answer = client.post("/v1/inspect", content=part, headers=PNG)
        assert answer.status_code == status and len(opening[0]) == 2
        assert answer.json().get("record_id") is None and answer.json().get("code") in codes


def make_record(folder):
    metrics = RecordMetrics(Metrics(lambda: 0, lambda: True))
    return Record(None, folder, RetentionRules({}, None, 0.0), 1, metrics, Outbox())


def test_those_who_come_together_try_it_once(tmp_path, opening):
    record = make_record(tmp_path)

    async def open_together():
        return await asyncio.gather(*(record.open() for _ in range(4)), return_exceptions=True)

    refusals = asyncio.run(open_together())
    record.close()
    assert [refusal.code for refusal in refusals] == ["record_unavailable"] * 4
    assert len(opening[0]) == 1


@pytest.mark.usefixtures("opening")
def test_a_record_that_is_opened_after_all_can_be_used(tmp_path, monkeypatch):
    monkeypatch.setattr("api.records.record.REOPEN_S", 0.0)
    record = make_record(tmp_path)

    async def open_twice():
        with pytest.raises(RequestError):
            await record.open()
        assert not record.is_usable
        monkeypatch.setattr("api.records.initialization.migrate", migrate)
        await record.open()

    asyncio.run(open_twice())
    assert record.is_usable
    record.close()
