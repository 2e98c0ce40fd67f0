"""Trends of a record, on SQLite and PostgreSQL."""

from bisect import bisect_right
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from api.errors import RequestError
from api.record.filters import Filters
from api.trends import trend_queries
from api.trends.periods import list_periods
from api.trends.trend_report import read_trends
from tests.api.conftest import open_migrated
from tests.api.record.filled_record import make_row, stock

BERLIN, UTC_ZONE = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")
MONDAY = datetime(2026, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "first", "last", "begins"),
    [
        ("day", date(2026, 3, 28), date(2026, 3, 30), ["03-27T23", "03-28T23", "03-29T22"]),
        ("week", date(2026, 3, 31), date(2026, 4, 6), ["03-29T22", "04-05T22"]),
        ("month", date(2025, 12, 31), date(2026, 2, 1), ["11-30T23", "12-31T23", "01-31T23"]),
    ],
)
def test_periods_begin_at_midnight_of_the_plant(kind, first, last, begins):
    periods = list(list_periods(kind, first, last, BERLIN))
    assert [period.begin.strftime("%m-%dT%H") for period in periods] == begins
    assert [one.end for one in periods[:-1]] == [one.begin for one in periods[1:]]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled(request, make_database_url, tmp_path_factory):
    """Twenty days of 30 inspections: one defective a day, and on the last day six in a new version."""
    rows = []
    for day in range(20):
        for place in range(30):
            number = 100 * day + place + 1
            defective = place < (6 if day == 19 else 1)
            rows.append(
                make_row(
                    number,
                    inspected_at=MONDAY + timedelta(days=day, minutes=place),
                    station="a" if place % 3 else "b",
                    version="2" if day == 19 else "1",
                    label=("dent" if place == 2 else "scratch") if defective else "good",
                    log_odds=1.0 if defective else -3.0,
                    details=f'{{"lot": "{day}"}}',
                )
            )
    engine = open_migrated(make_database_url(request.param, tmp_path_factory.mktemp("trends")))
    stock(engine, rows)
    yield engine
    engine.dispose()


@pytest.fixture
def connection(filled):
    with filled.connect() as connection:
        yield connection


def read(connection, now=MONDAY + timedelta(days=30), **filters):
    periods = list(list_periods("day", MONDAY.date(), MONDAY.date() + timedelta(days=20), UTC_ZONE))
    return read_trends(connection, Filters(**filters), "day", periods, UTC_ZONE, now)


def test_each_day_has_its_counts_limits_and_scores(connection):
    found = read(connection)
    assert [day.inspected for day in found.periods] == [30] * 20 + [0]
    assert [day.defective for day in found.periods] == [1] * 19 + [6, 0]
    assert [day.out for day in found.periods] == [None] * 19 + ["high", None]
    assert found.periods[0].centre == pytest.approx(25 / 600)
    assert found.periods[19].high < 0.2 and found.periods[20].high is None
    assert [day.log_odds for day in found.periods] == [None] * 19 + [pytest.approx(-2.2), None]
    assert found.periods[19].versions == ["m 2"]
    assert [(one.label, one.count) for one in found.classes] == [("scratch", 24), ("dent", 1)]
    assert [(one.name, one.inspected, one.defective) for one in found.stations] == [
        ("a", 400, 4),
        ("b", 200, 21),
    ]
    assert [(one.name, one.inspected) for one in found.versions] == [("m 1", 570), ("m 2", 30)]


def test_the_running_day_does_not_move_the_limits(connection):
    found = read(connection, now=MONDAY + timedelta(days=19, hours=1))
    assert found.periods[0].centre == pytest.approx(19 / 570)


def test_trends_are_filtered(connection):
    assert [day.inspected for day in read(connection, station="b").periods[:2]] == [10, 10]
    assert sum(day.inspected for day in read(connection, version="2").periods) == 30
    lot = read(connection, tag=("lot", "19"))
    assert [day.inspected for day in lot.periods] == [0] * 19 + [30, 0]
    assert [(one.label, one.count) for one in lot.classes] == [("scratch", 5), ("dent", 1)]
    one = read(connection, tag=("lot", "19"), station="b", version="2")
    assert [(group.name, group.inspected) for group in one.stations] == [("b", 10)]
    assert read(connection, tag=("lot", "none")).classes == []


def test_a_half_hour_zone_and_a_tag_lose_nothing(connection):
    zone = ZoneInfo("Asia/Kolkata")
    periods = list(list_periods("day", MONDAY.date(), MONDAY.date() + timedelta(days=20), zone))
    for tag in (None, ("lot", "3")):
        found = read_trends(connection, Filters(tag=tag), "day", periods, zone, MONDAY)
        counted = sum(day.inspected for day in found.periods)
        assert counted == sum(group.inspected for group in found.stations) == (30 if tag else 600)


@pytest.mark.parametrize("kind", ["day", "week", "month"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"])
def test_sums_of_periods_are_those_of_the_rows(connection, kind, zone):
    """The tables of hours and days have the same sums as the inspections one by one."""
    days = MONDAY.date() + timedelta(days=3), MONDAY.date() + timedelta(days=18)
    periods = list(list_periods(kind, *days, ZoneInfo(zone)))
    begins = [period.begin for period in periods]

    def by_period(sums):
        counts = Counter()
        for one in sums.times:
            counts[begins[bisect_right(begins, one.at) - 1], one.version, one.label] += one.count
        return counts

    def by_station(sums):
        counts = Counter()
        for one in sums.stations:
            counts[one.station, one.label] += one.count
        return counts

    for filters in ({}, {"station": "b"}, {"version": "2"}):
        whole = Filters(since=periods[0].begin, until=periods[-1].end, **filters)
        found = trend_queries.sum_period(connection, whole, periods)
        expected = trend_queries._sum_rows(connection, whole)
        assert by_period(found) == by_period(expected) and by_station(found) == by_station(expected)
        odds = [sum(one.log_odds for one in sums.times) for sums in (found, expected)]
        assert odds[0] == pytest.approx(odds[1])
        assert by_period(found) == by_period(trend_queries.sum_period(connection, whole))


def test_scores_of_a_period_are_those_of_the_model_that_inspected_last(engine):
    """On a day with two versions, by the hour of the last inspection and not by the name."""
    rows = [
        make_row(number, inspected_at=MONDAY + timedelta(hours=number), version=version, log_odds=odds)
        for number, (version, odds) in enumerate([("2", 1.0), ("1", 3.0)], start=1)
    ]
    stock(engine, rows)
    with engine.connect() as connection:
        assert read(connection).periods[0].log_odds == 3.0


def test_too_many_inspections_of_a_tag_are_refused(connection, monkeypatch):
    monkeypatch.setattr(trend_queries, "MAX_TAGGED", 29)
    with pytest.raises(RequestError, match="More than 29 inspections match"):
        read(connection, tag=("lot", "3"))
