"""Median distances to the training photographs, from rows of both databases."""

import json
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from api.line import training_distance
from api.line.line_queries import stations_since
from api.line.training_distance import TrainingDistances
from api.record.tables import inspections
from tests.api.record.filled_record import NOW, make_row, stock

HOUR = timedelta(hours=1)


@pytest.fixture
def line(engine, monkeypatch):
    """Adds photographs with the given brightness; `read` returns the distances."""
    monkeypatch.setattr(training_distance, "PHOTOGRAPHS", 5)
    monkeypatch.setattr(training_distance, "MIN_PHOTOGRAPHS", 3)
    return Line(engine)


class Line:
    def __init__(self, engine):
        self.engine, self.distances, self.now = engine, TrainingDistances(), NOW

    def add(self, *brightness, station="a", **columns):
        with self.engine.connect() as connection:
            first = (connection.execute(select(func.max(inspections.c.id))).scalar() or 0) + 1
        rows = [
            make_row(
                first + place,
                station=station,
                distances=None if value is None else json.dumps({"brightness": value, "layout": 0.1}),
                **columns,
            )
            for place, value in enumerate(brightness)
        ]
        stock(self.engine, rows)

    def read(self, station=None, seconds=10):
        """Reads the distances some seconds after the last time."""
        self.now += timedelta(seconds=seconds)
        with self.engine.connect() as connection:
            newest = stations_since(connection, NOW - HOUR)
            return self.distances.read(connection, newest, station, self.now)


def test_medians_of_the_last_and_the_first_photographs(line):
    line.add(0.2, 0.1, 0.3, 0.2, 0.2)
    line.add(0.9, 0.4, 0.4, 0.45, 0.3, 0.4)
    (found,) = line.read()
    assert (found.station, found.model, found.version, found.near_limit) == ("a", "m", "1", False)
    brightness, layout = found.measures
    assert (brightness.measure, brightness.now, brightness.start) == ("brightness", 0.4, 0.2)
    assert (layout.measure, layout.now, layout.start) == ("layout", 0.1, 0.1)
    line.add(0.7, 0.8, 0.9)
    (found,) = line.read()
    assert (found.near_limit, found.measures[0].now, found.measures[0].start) == (True, 0.7, 0.2)


def test_another_version_starts_again(line):
    line.add(*[0.9] * 9)
    line.add(0.1, 0.1, version="2")
    assert line.read() == []
    line.add(0.2, version="2")
    (found,) = line.read()
    assert (found.version, found.measures[0].now, found.measures[0].start) == ("2", 0.1, 0.1)
    line.add(0.4, 0.4, 0.4, 0.4, version="2")
    assert (line.read()[0].measures[0].now, line.read()[0].measures[0].start) == (0.4, 0.2)


def test_the_station_nearest_to_its_limit_is_the_first(line):
    line.add(*[0.2] * 3)
    line.add(*[0.6] * 3, station="b")
    line.add(*[None] * 5, station="c")  # a model without limits
    assert [found.station for found in line.read()] == ["b", "a"]
    assert [found.station for found in line.read("a")] == ["a"]
    assert line.read("x") == line.read("c") == []


def test_photographs_without_a_verdict_count(line):
    line.add(*[0.2] * 3)
    line.add(*[1.5] * 4, label="not_inspected", draw=None, draw_probability=None, draw_reason=None)
    assert line.read()[0].measures[0].now == 1.5


def test_a_station_without_a_new_photograph_is_not_read_again(line, monkeypatch):
    line.add(*[0.2] * 5)
    line.add(*[0.3] * 5, station="b")
    first = line.read()
    read, asked = training_distance._read_station, []

    def note(connection, station, *rest):
        asked.append(station)
        return read(connection, station, *rest)

    monkeypatch.setattr(training_distance, "_read_station", note)
    assert line.read() == first
    line.add(0.9, station="b")
    assert line.read()[1] == first[1]
    line.read("a")
    assert asked == ["b"]
    line.add(0.9, station="b")
    line.read(seconds=9)
    assert asked == ["b", "b"]  # the read of "a" was ten seconds ago, too
    line.add(0.9, station="b")
    line.read(seconds=9)
    assert asked == ["b", "b"]
    line.read(seconds=-30)  # the clock was set back
    assert asked == ["b", "b", "b"]


def test_the_start_is_the_same_after_a_restart(line):
    line.add(*[0.2] * 5)
    line.add(*[0.7] * 5)
    before = line.read()
    line.distances = TrainingDistances()
    assert line.read() == before
