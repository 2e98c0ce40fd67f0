"""A record that could not be opened at the start, and is opened again by requests."""

import asyncio

import pytest
from sqlalchemy.exc import OperationalError

from segdec.errors import ConfigError
from tests.api.conftest import PNG, ServiceClient
from tests.api.record.filled_record import make_record


@pytest.fixture
def opening(monkeypatch):
    """Lets each attempt fail; a list of the attempts, and a list with the error."""
    tried, failures = [], [OperationalError("", {}, Exception("gone"))]

    def migrate(_):
        tried.append(None)
        raise failures[0]

    monkeypatch.setattr("api.record.initialization.migrate", migrate)
    return tried, failures


def test_a_database_of_another_record_found_after_the_start(make_app, tmp_path, part, opening, monkeypatch):
    with ServiceClient(make_app(record="required", record_folder=tmp_path / "record")) as client:
        opening[1][0] = ConfigError("It belongs to another record.")
        monkeypatch.setattr("api.record.record.REOPEN_S", 0.0)
        answer = client.post("/v1/inspect", content=part, headers=PNG)
        assert (answer.status_code, answer.json()["code"]) == (503, "record_unavailable")
        assert len(opening[0]) == 2


def test_simultaneous_requests_share_one_attempt(tmp_path, opening):
    record = make_record(None, tmp_path)

    async def open_together():
        return await asyncio.gather(*(record.open() for _ in range(4)), return_exceptions=True)

    errors = asyncio.run(open_together())
    record.close()
    assert [error.code for error in errors] == ["record_unavailable"] * 4
    assert len(opening[0]) == 1
