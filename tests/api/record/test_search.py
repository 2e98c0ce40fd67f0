"""Pages of inspections by their filters, on SQLite and PostgreSQL."""

from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy import select, update

from api.record.filters import Filters
from api.record.search import inspection_pages, known_names, list_inspections
from api.record.tables import inspections, pictures, tags
from api.record.tagging import MAX_LENGTH, MAX_TAGS, tags_of
from tests.api.record.filled_record import NOW, make_row, stock

HOUR = timedelta(hours=1)
FOUND = [
    ({"tag": ("lot", "L1")}, [3, 1]),
    ({"tag": ("lot", "L1"), "station": "a"}, [1]),
    ({"tag": ("lot", "L1"), "verdict": "defect"}, [3, 1]),
    ({"tag": ("lot", "%")}, []),
    ({"verdict": "defect"}, [4, 3, 1]),
    ({"verdict": "defect", "label": "spot"}, [3]),
    ({"verdict": "defect", "label": "good"}, []),
    ({"verdict": "good"}, [2]),
    ({"verdict": "good", "label": "spot"}, []),
    ({"verdict": "not_inspected"}, [5]),
    ({"version": "2"}, [4]),
    ({"version": "3"}, []),
    ({"reviewer": "Eva"}, [3, 2]),
    ({"reviewer": "Eva", "verdict": "defect"}, [3]),
    ({"reviewer": "Eva", "reviewed": False}, []),
    ({"verdict": "defect", "until": NOW}, []),
    ({"verdict": "defect", "with_picture": True}, [4, 3]),
]


@pytest.fixture
def connection(engine):
    reviewed = {"reviewed_label": "spot", "reviewed_at": NOW, "reviewer": "Eva"}
    rows = [
        make_row(1, station="a", details='{"lot": "L1"}'),
        make_row(2, station="a", label="good", details='{"lot": "L2"}', **reviewed),
        make_row(3, station="b", label="spot", details='{"lot": "L1", "mould": 7}', **reviewed),
        make_row(4, station="b", version="2"),
        make_row(5, station="c", label="not_inspected"),
    ]
    empty = dict.fromkeys(("reviewed_label", "reviewed_at", "reviewer"))
    stock(engine, [{**empty, **row} for row in rows])
    with engine.begin() as connection:
        gone = pictures.c.sha256 == rows[0]["picture"]
        connection.execute(update(pictures).where(gone).values(state="expired"))
    with engine.connect() as connection:
        yield connection


def test_pages_contain_what_the_filters_describe(connection):
    def list_ids(*page):
        return [row["id"] for row in list_inspections(connection, Filters(**filters), *page)]

    for filters, ids in FOUND:
        assert list_ids(None, 10) == ids, filters
        assert list_ids(None, 1) == ids[:1], filters
        assert list_ids(3, 10) == [number for number in ids if number < 3], filters


@pytest.mark.parametrize("filters", [{}, {"station": "a"}, {"verdict": "defect"}, {"version": "1"}])
def test_pages_list_each_inspection_once_also_if_the_clock_was_set_back(engine, filters):
    hours = [0, 1, 25, 24, -8800, -1, 0, 26, 2, 8800, 1]  # of the clock, in the order of storing
    rows = [
        make_row(number, station="a", inspected_at=NOW + hour * HOUR) for number, hour in enumerate(hours, 1)
    ]
    for row in rows:  # each by a transaction of its own, as they come
        stock(engine, [row])
    bounds = [None, NOW - 8799 * HOUR, NOW + HOUR / 2, NOW + HOUR, NOW + 25 * HOUR, None]
    with engine.connect() as connection:
        found = [
            list_all(connection, Filters(since=since, until=until, **filters))
            for since, until in pairwise(bounds)
        ]
    assert found == [[5], [7, 6, 1], [], [11, 9, 4, 2], [10, 8, 3]]
    pages = inspection_pages(engine, Filters(**filters), [inspections.c.id], 3)
    assert [row["id"] for page in pages for row in page] == list(range(11, 0, -1))


def list_all(connection, filters):
    """Returns the ids on all pages of two."""
    found, before = [], None
    while rows := list_inspections(connection, filters, before, 2):
        found += [row["id"] for row in rows]
        before = found[-1]
    return found


def test_names_are_those_of_the_record(connection):
    assert known_names(connection, inspections.c.station) == ["a", "b", "c"]
    assert known_names(connection, inspections.c.label, 2) == ["good", "not_inspected"]
    assert known_names(connection, inspections.c.reviewer) == ["Eva"]
    assert known_names(connection, tags.c.key) == ["lot", "mould"]
    assert known_names(connection, tags.c.key, text="OUL") == ["mould"]
    assert known_names(connection, tags.c.key, text="%") == []
    assert connection.execute(select(tags.c.value).where(tags.c.key == "mould")).scalar() == "7"


def test_only_short_single_values_become_tags():
    assert tags_of({"a": "x", "b": 1.5, "c": True, "d": None, "e": [1], "f": {"g": 1}, "": "y", "h": ""}) == {
        "a": "x",
        "b": "1.5",
        "c": "true",
    }
    assert tags_of({"a": "x" * (MAX_LENGTH + 1), "b": "x\0", "a:b": "x"}) == {}
    assert len(tags_of({str(number): "x" for number in range(MAX_TAGS + 1)})) == MAX_TAGS
