"""Stations with many photographs unlike the training, from rows of both databases."""

import json

import numpy as np
import pytest

from api.line.training_distance import TrainingDistances
from api.line.unlike_photographs import find_unlike
from segdec.photograph_check import encode_measures
from segdec.schemas import ModelIdentity
from tests.api.record.filled_record import ANSWER, NOW, make_row, stock

MODEL = ModelIdentity(name="m", version="1", sha256=None)
DARKER, BLURRED = "darker than those of the training", "out of focus"


def row(number, station="a", brightness=None, reason=DARKER, **columns):
    """A row whose brightness is beyond the limit of `grey_training`, or none."""
    if brightness is None:
        return make_row(number, station=station, **columns)
    answer = {**json.loads(ANSWER), "warnings": ["size: other", f"unlike_training: {reason}"]}
    unlike = json.dumps(encode_measures({"brightness": np.array([brightness, 0.0])}))
    unlike_columns = {"label": "review", "unlike": unlike, "answer": json.dumps(answer)}
    return make_row(number, **{"station": station, **unlike_columns, **columns})


@pytest.fixture
def find(engine, grey_training):
    """Stores rows and returns the reports by the limits of the training, widened by `confirmed`."""

    def find_one(rows, station=None, confirmed=(), model=MODEL):
        stock(engine, rows)
        limits = grey_training.limits.widen([{"brightness": np.array([level, 0.0])} for level in confirmed])
        distances = TrainingDistances()
        with engine.connect() as connection:
            newest = {each["station"]: number for number, each in enumerate(rows, 1)}
            distances.read(connection, newest, station, NOW)
            recent = distances.recent(station)
            return list(find_unlike(connection, recent, lambda asked: limits if asked == model else None))

    return find_one


def test_many_photographs_of_a_station_are_reported_with_their_most_frequent_warning(find):
    reasons = [DARKER, BLURRED, DARKER, DARKER, BLURRED]
    rows = [row(n + 1, brightness=-2.0, reason=reason) for n, reason in enumerate(reasons)]
    (report,) = find([*rows, row(6), row(7, "b", -2.0)])
    assert (report.station, report.model, report.version) == ("a", "m", "1")
    assert (report.unlike, report.photographs, report.records) == (5, 6, [5, 4, 3, 2, 1])
    assert report.reason == f"unlike_training: {DARKER}"


def test_defective_photographs_are_not_reported(find):
    """A person who confirms many at once would widen the limits by the change that a defect causes."""
    rows = [row(n + 1, brightness=-2.0, label="scratch" if n == 2 else "review") for n in range(6)]
    (report,) = find(rows)
    assert (report.unlike, report.photographs, report.records) == (5, 6, [6, 5, 4, 2, 1])


def test_only_the_newest_photographs_are_listed(find):
    (report,) = find([row(n + 1, brightness=-2.0, reason=DARKER if n < 8 else BLURRED) for n in range(14)])
    assert (report.unlike, report.records) == (14, [*range(14, 2, -1)])
    assert report.reason == f"unlike_training: {DARKER}"


@pytest.mark.parametrize(("unlike", "others", "reported"), [(4, 0, 0), (5, 45, 1), (5, 46, 0), (9, 91, 0)])
def test_few_photographs_are_not_reported(find, unlike, others, reported):
    rows = [row(n + 1, brightness=-2.0 if n < unlike else None) for n in range(unlike + others)]
    assert len(find(rows)) == reported


def test_only_photographs_of_the_model_that_answers_are_counted(find):
    rows = [row(n + 1, brightness=-2.0, version="0") for n in range(5)]
    rows += [row(n + 6, brightness=-2.0) for n in range(5)]
    (report,) = find(rows)
    assert (report.unlike, report.photographs, report.records) == (5, 5, [10, 9, 8, 7, 6])


def test_without_limits_of_its_model_a_station_is_not_reported(find):
    rows = [row(n + 1, brightness=-2.0) for n in range(5)]
    assert find(rows, model=MODEL.model_copy(update={"version": "2"})) == []


def test_confirmed_photographs_and_those_like_them_are_not_counted(find):
    rows = [row(n + 1, brightness=-2.0 - 0.01 * n) for n in range(6)]
    assert find(rows, confirmed=[-2.0]) == []


def test_a_station_is_asked_for_alone(find):
    rows = [row(n + 1, "ab"[n % 2], brightness=-2.0) for n in range(20)]
    assert [report.station for report in find(rows, "b")] == ["b"]
