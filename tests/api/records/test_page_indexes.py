"""Pages are found by an index, whatever is asked for: no row is read that is not shown."""

from datetime import UTC, datetime
from itertools import product

import pytest

from api.records.database import migrate, open_database
from api.records.queries import Filters, list_inspections

ANY = {"since": datetime(2026, 1, 1, tzinfo=UTC)}, {}
WANTED = {
    "inspections_by_part": ["part_id", "part_id station", "part_id label", "part_id station label"],
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


def plan(connection, filters, before):
    """What SQLite says of how it finds the page: how it goes through inspections, then the rest."""
    driver, statements = connection.connection.driver_connection, []
    driver.set_trace_callback(statements.append)
    list_inspections(connection, filters, before, 51)
    driver.set_trace_callback(None)
    return [row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {statements[-1]}")]


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
