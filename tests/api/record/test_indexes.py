"""Queries of large tables use indexes in SQLite: they read no rows that they do not return."""

import re
from datetime import UTC, date, datetime, time
from itertools import product
from unittest.mock import Mock
from zoneinfo import ZoneInfo

import pytest

from api.database.database import migrate, open_database
from api.inspecting.shadow.shadow_results import report_candidate
from api.line.line_status import LineMonitor
from api.record import search
from api.record.filters import Filters
from api.record.search import known_names, list_inspections
from api.record.shifts import ShiftPlan
from api.record.tables import inspections, tags
from api.record.uninspected_log import UninspectedLog
from api.review import leases
from api.review.review_statistics import query_statistics
from api.trends.periods import list_periods
from api.trends.trend_report import read_trends
from segdec.schemas import ModelIdentity
from tests.api.record.filled_record import NOW
from tests.api.record.query_plans import explain

PERIODS = {"since": datetime(2026, 1, 1, tzinfo=UTC)}, {}
INDEXES = {
    "part_id": "inspections_by_part",
    "part_id station label": "inspections_by_part",
    "station label": "inspections_by_station_and_label",
    "station": "inspections_by_station",
    "label": "inspections_by_label",
}


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    engine = open_database(f"sqlite:///{tmp_path_factory.mktemp('record')}/record.db")
    migrate(engine)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@pytest.mark.parametrize(("names", "index"), INDEXES.items())
def test_pages_use_the_index_of_their_filters(connection, names, index):
    for period, before, reviewed in product(PERIODS, (None, 77), (None, False, True)):
        filters = Filters(**dict.fromkeys(names.split(), "x"), **period, reviewed=reviewed)
        *_, (searched, pictures) = explain(connection, list_inspections, filters, before, 51).values()
        expected = "inspections_reviewed" if reviewed and "part_id" not in names else index
        assert f" USING INDEX {expected} " in f"{searched} "
        assert pictures.startswith("SEARCH pictures ")


@pytest.mark.parametrize("names", ["", "station", "station label"])
def test_pages_of_unusual_photographs_use_their_index(connection, names):
    for period, before, reviewed in product(PERIODS, (None, 77), (None, False)):
        values = {**dict.fromkeys(names.split(), "x"), **period, "reviewed": reviewed}
        filters = Filters(**values, min_distance=0.8)
        *_, (searched, _) = explain(connection, list_inspections, filters, before, 51).values()
        assert " USING INDEX inspections_unusual" in searched


@pytest.mark.parametrize("names", ["", "station", "station label", "version reviewed"])
@pytest.mark.parametrize(
    ("filtered", "step"),
    [
        ({"tag": ("lot", "a")}, "SEARCH tags USING PRIMARY KEY (key=? AND value=?"),
        ({"reviewer": "a"}, "SEARCH inspections USING INDEX inspections_by_reviewer"),
        (
            {"reviewer": "a", "label": "x"},
            "SEARCH inspections USING INDEX inspections_by_reviewer_and_label (reviewer=? AND label=?",
        ),
    ],
)
def test_pages_of_metadata_and_of_reviewers_use_their_indexes(connection, names, filtered, step):
    for period, before in product(PERIODS, (None, 77)):
        filters = Filters(**{**dict.fromkeys(names.split(), "x"), **period, **filtered})
        *_, plan = explain(connection, list_inspections, filters, before, 51).values()
        assert plan[0].startswith(step)
        assert not any("SCAN" in one or "TEMP B-TREE" in one for one in plan)


@pytest.mark.parametrize(
    ("names", "table", "index"),
    [
        ("", "hour_totals", "PRIMARY KEY (hour>? AND hour<?)"),
        ("version", "hour_totals", "PRIMARY KEY (hour>? AND hour<?)"),
        ("station", "hours", "INDEX hours_by_station (station=? AND hour>? AND hour<?)"),
    ],
)
def test_trends_of_a_year_read_the_sums_of_hours_and_days(connection, names, table, index):
    periods = list(list_periods("day", date(2026, 1, 1), date(2026, 12, 31), ZoneInfo("UTC")))
    filters = Filters(**dict.fromkeys(names.split(), "x"))
    arguments = filters, "day", periods, ZoneInfo("UTC"), NOW
    times, stations = list(explain(connection, read_trends, *arguments).values())
    assert f"SEARCH {table} USING {index}" in times and "SCAN" in times[0] and "VIRTUAL" in times[0]
    assert stations[0].startswith("SEARCH station_days USING")


def test_names_are_searched_in_their_index(connection):
    for column in (inspections.c.station, inspections.c.label, inspections.c.reviewer, tags.c.key):
        (plan,) = explain(connection, known_names, column).values()
        assert any(one.startswith("SEARCH") for one in plan)
        assert not any(re.match("SCAN (inspections|tags)", one) for one in plan), plan


def test_a_page_of_a_period_has_one_upper_bound(connection, monkeypatch):
    monkeypatch.setattr(search, "id_range", lambda *_: (100, 900))
    for before, bound in ((None, 901), (77, 77), (950, 901)):
        *_, statement = explain(connection, list_inspections, Filters(**PERIODS[0]), before, 51)
        assert "inspections.id >= 100" in statement
        assert statement.count("inspections.id <") == statement.count(f"inspections.id < {bound} ") == 1


@pytest.mark.parametrize("station", [None, "x"])
def test_statistics_read_the_index_of_sampled_inspections(connection, station):
    *_, plan = explain(connection, query_statistics, Filters(station=station)).values()
    assert " USING COVERING INDEX inspections_drawn " in plan[0]


@pytest.mark.parametrize(
    ("station", "index"), [(None, "review_queue_by_priority"), ("s", "review_queue_by_station")]
)
def test_the_next_review_is_found_in_the_index_of_the_queue(connection, station, index):
    statement = leases.available_ids([7], station, NOW).limit(1)
    ((plan,),) = [explain(connection, lambda connection: connection.execute(statement)).values()]
    assert index in plan[0] and len(plan) == 1


def test_leases_of_a_reviewer_are_found_in_their_index(connection):
    holder = leases.LeaseHolder("session", "client", "person")
    plans = explain(connection, leases.renew, holder, [7], NOW)
    steps = [step for plan in plans.values() for step in plan]
    assert len([step for step in steps if "review_queue_leased" in step]) == 2
    assert not any("SCAN" in step or "review_queue_by_priority" in step for step in steps)


def test_the_report_of_a_candidate_reads_indexes(connection):
    candidate = ModelIdentity(name="parts", version="2", sha256="aa")
    plans = list(explain(connection, report_candidate, candidate, "1", {}).values())
    steps = [step for plan in plans for step in plan]
    assert any("USING COVERING INDEX shadows_by_candidate (model=? AND version=?" in step for step in steps)
    assert any("SEARCH inspections USING INTEGER PRIMARY KEY" in step for step in steps)
    assert not any("SCAN" in step for step in steps)


@pytest.mark.parametrize("station", [None, "a"])
def test_the_status_of_the_line_scans_no_table(connection, station):
    plan = ShiftPlan([time(6, 30), time(14, 30)], ZoneInfo("UTC"))
    line = LineMonitor(Mock(uninspected=UninspectedLog(connection.engine)), plan)
    plans = explain(connection, line._query, station, NOW)
    scans = re.compile(r"SCAN (inspections|pictures|hours|uninspected)")
    scanned = [statement for statement, plan in plans.items() if any(map(scans.match, plan))]
    end = "label != 'not_inspected' ORDER BY inspections.id DESC"
    newest = [one for one in plans if end in one]
    assert len(plans) >= 10 and set(scanned) <= set(newest)  # the newest one is at the table's end
