"""The generated record and its benchmark."""

import pytest
from sqlalchemy import select

from api.database.database import open_database
from api.record.filters import Filters, id_range
from api.record.tables import draws, hours, inspections, pictures, review_queue, store, tags
from benchmarks.serving import generated_record, large_record

TABLES = (inspections, pictures, hours, draws, review_queue, store, tags)
ROWS = 700


@pytest.fixture
def generate(monkeypatch, tmp_path):
    """Writes a record in transactions of 200; returns what is in its tables."""
    monkeypatch.setattr(generated_record, "BLOCK", 100)
    monkeypatch.setattr(generated_record, "BLOCKS", 2)

    def write(name):
        engine = open_database(f"sqlite:///{tmp_path / name}/record.db")
        try:
            generated_record.write_record(engine, tmp_path / name, ROWS)
            with engine.connect() as connection:
                assert id_range(connection, Filters()) == (1, ROWS)
                return [connection.execute(select(table).order_by(*table.c)).all() for table in TABLES]
        finally:
            engine.dispose()

    return write


def test_an_interrupted_record_resumes_and_is_the_same(generate, monkeypatch):
    write_block, calls = generated_record._write_block, iter([False] * 5 + [True])

    def killed(*arguments):
        if next(calls):
            raise KeyboardInterrupt
        write_block(*arguments)

    whole = generate("whole")
    with monkeypatch.context() as during:
        during.setattr(generated_record, "_write_block", killed)
        with pytest.raises(KeyboardInterrupt):
            generate("killed")
    assert generate("killed") == whole
    assert generate("killed") == whole


def test_the_record_has_what_is_asked_for(generate):
    rows, shown, *_ = generate("whole")
    assert {row.label for row in rows} >= {"good", "review", "scratch"}
    assert {row.station for row in rows} >= {"line1-cam1", "line3-cam1"}
    assert {row.state for row in shown} == {"kept", "expired"}
    assert 0 < sum(row.reviewed_label is not None for row in rows) < ROWS / 10


def test_a_record_has_as_many_stations_as_asked_for():
    shares = generated_record.station_shares(3)
    assert list(shares) == ["station-00001", "station-00002", "station-00003"]
    rows = [row for row, _ in generated_record._make_rows(0, 200, 200, shares)]
    assert {row["station"] for row in rows} == set(shares)
    assert generated_record.station_shares(None) == generated_record.STATIONS


@pytest.mark.slow
def test_large_record(tmp_path, capsys):
    arguments = ["--folder", str(tmp_path), "--rows", "500", "--times", "1", "--only", "of a"]
    assert large_record.main(arguments) in (0, 1)
    printed = capsys.readouterr().out
    assert "figures of a day at a station" in printed
    assert "next reviews of a station" in printed
