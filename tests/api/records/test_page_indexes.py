"""Whatever is asked for is found by an index: no row is read that is not shown."""

from datetime import UTC, datetime
from itertools import product

import pytest

from api.records import queries
from api.records.database import migrate, open_database
from api.records.queries import Filters, list_inspections
from api.records.review.review_statistics import query_statistics

ANY = {"since": datetime(2026, 1, 1, tzinfo=UTC)}, {}
WANTED = {
    "inspections_by_part": ["part_id", "part_id station label"],
    "inspections_by_station_and_label": ["station label"],
    "inspections_by_station": ["station"],
    "inspections_by_label": ["label"],
}


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    engine = open_database(f"sqlite:///{tmp_path_factory.mktemp('record')}/record.db")
    migrate(engine)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def statement_of(connection, filters, before):
    driver, statements = connection.connection.driver_connection, []
    driver.set_trace_callback(statements.append)
    list_inspections(connection, filters, before, 51)
    driver.set_trace_callback(None)
    return statements[-1]


def plan(connection, filters, before):
    """What SQLite says of how it finds the page: how it goes through inspections, then the rest."""
    explained = f"EXPLAIN QUERY PLAN {statement_of(connection, filters, before)}"
    return [row[3] for row in connection.connection.driver_connection.execute(explained)]


CASES = [
    (index, names.split(), reviewed)
    for index, several in WANTED.items()
    for names, reviewed in product(several, (None, False, True))
]


@pytest.mark.parametrize(("index", "names", "reviewed"), CASES)
def test_what_is_rare_is_found_by_its_index(connection, index, names, reviewed):
    if reviewed and "part_id" not in names:
        index = "inspections_reviewed"
    for time, before in product(ANY, (None, 77)):
        filters = Filters(**dict.fromkeys(names, "x"), **time, reviewed=reviewed)
        inspections, pictures = plan(connection, filters, before)
        assert f" USING INDEX {index} " in f"{inspections} "
        assert pictures.startswith("SEARCH pictures ")


@pytest.mark.parametrize(("before", "bound"), [(None, 901), (77, 77), (950, 901)])
def test_a_page_of_a_time_begins_at_the_nearer_of_its_ends(connection, monkeypatch, before, bound):
    monkeypatch.setattr(queries, "id_range", lambda *_: (100, 900))
    statement = statement_of(connection, Filters(**ANY[0]), before)
    assert "inspections.id >= 100" in statement
    assert statement.count("inspections.id <") == statement.count(f"inspections.id < {bound} ") == 1


@pytest.mark.parametrize("station", [None, "x"])
def test_statistics_read_the_index_of_what_was_drawn_alone(connection, station):
    driver, statements = connection.connection.driver_connection, []
    driver.set_trace_callback(statements.append)
    query_statistics(connection, Filters(station=station))
    driver.set_trace_callback(None)
    explained = driver.execute(f"EXPLAIN QUERY PLAN {statements[-1]}").fetchall()
    assert " USING COVERING INDEX inspections_drawn " in explained[0][3]
