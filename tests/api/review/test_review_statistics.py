"""Estimates from reviews, against numbers worked out by hand, rows of the tables, and simulations."""

import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from sqlalchemy import update

from api.database.database import write_transaction
from api.record.filters import Filters
from api.record.sampling_counts import Stratum, count_strata
from api.record.tables import inspections
from api.review.confidence_intervals import Sample, estimate_share, estimate_total
from api.review.review_statistics import ReviewCounts, StratumCounts, compute_statistics, query_statistics
from api.review.schemas import Estimate
from benchmarks.review_statistics import SCENARIOS, measure
from tests.api.record.filled_record import add_prediction, make_row, stock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
LABELS = {"chance": "good", "near": "good", "defect": "scratch", "review": "review"}


# === Intervals ===


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        *((Sample(100, 100, 7), (7, 7, 7)), (Sample(0, 0, 0), (0, 0, 0)), (Sample(50, 0, 0), (None, 0, 50))),
        (Sample(10, 5, 0), (0, 0, 3)),  # 3 of 10: C(7, 5) / C(10, 5) = 0.083; 4: C(6, 5) / C(10, 5) = 0.024
        *((Sample(10, 5, 5), (10, 7, 10)), (Sample(4, 2, 1), (2, 1, 3))),
    ],
)
def test_limits_of_small_samples(sample, expected):
    assert tuple(sample.estimate()) == expected


@pytest.mark.parametrize(
    ("size", "found", "low", "high"), [(1000, 3, 0.0006191, 0.008742), (50, 49, 0.8935305, 0.9994938)]
)
def test_limits_of_large_totals_are_those_of_clopper_and_pearson(size, found, low, high):
    """As `scipy.stats.binomtest(found, size).proportion_ci(0.95, "exact")` has them."""
    estimate = Sample(10**9, size, found).estimate()
    assert estimate.low / 1e9 == pytest.approx(low, abs=1e-6)
    assert estimate.high / 1e9 == pytest.approx(high, abs=1e-6)


def test_estimates_of_shares():
    part, rest = Sample(100, 100, 10), Sample(60, 60, 30)
    assert tuple(estimate_share([part], [rest])) == pytest.approx((0.25, 0.25, 0.25))
    missed = Sample(1000, 100, 1).estimate()
    limits = (limit / (limit + 30) for limit in missed)
    assert tuple(estimate_share([Sample(1000, 100, 1)], [rest])) == pytest.approx(tuple(limits))
    assert tuple(estimate_share([], [])) == (None, 0, 1)
    assert tuple(estimate_share([Sample(9, 9, 0)], [Sample(9, 9, 0)])) == (None, 0, 1)


# === From counts ===


def test_statistics_of_a_day():
    counts = {
        Stratum("chance", 0.02): StratumCounts(1000, ReviewCounts(20, 12, 2, 1)),
        Stratum("near", 1.0): StratumCounts(10, ReviewCounts(10, 10, 0, 2)),
        Stratum("defect", 1.0): StratumCounts(40, ReviewCounts(40, 40, 0, 30)),
        Stratum("review", 1.0): StratumCounts(5, ReviewCounts(5, 5, 0, 4)),
    }
    found = compute_statistics(Filters(station="a"), counts)
    assert (found.inspected, found.called_good, found.called_defective) == (1055, 1010, 40)
    assert (found.drawn, found.reviewed, found.unsure, found.station) == (75, 67, 2, "a")
    assert found.missed.value == 1000 * 1 / 10 + 2
    assert found.defect_rate.value == pytest.approx((102 + 30 + 4) / 1055)
    assert found.miss_rate.value == pytest.approx(102 / 136)
    assert found.false_alarms == Estimate(value=10, low=10, high=10)
    assert found.false_alarm_share == Estimate(value=0.25, low=0.25, high=0.25)
    assert found.missed.low <= 102 <= found.missed.high
    assert [note.partition(":")[0] for note in found.notes] == ["called good, drawn by chance"] * 2
    assert "8 of 20 sampled inspections wait" in found.notes[0] and "2 reviews are unsure" in found.notes[1]


@pytest.mark.parametrize(
    ("plain", "differing", "expected"),
    [
        (ReviewCounts(20, 20, 0, 3), ReviewCounts(), Sample(500, 20, 3)),
        # (18 · 1/9 + 2 · 2/2) / 20 · 10
        (ReviewCounts(18, 9, 0, 1), ReviewCounts(2, 2, 0, 2), Sample(500, 10, 2)),
        (ReviewCounts(18, 18, 0, 1), ReviewCounts(2, 2, 0, 2), Sample(500, 20, 3)),
        (ReviewCounts(18, 9, 0, 1), ReviewCounts(2, 2, 2, 0), Sample(500, 9, 1)),
        (ReviewCounts(18, 0, 0, 0), ReviewCounts(2, 2, 0, 2), Sample(500, 0, 0)),
        (ReviewCounts(0, 0, 0, 0), ReviewCounts(2, 1, 0, 1), Sample(500, 1, 1)),
        (ReviewCounts(20, 13, 0, 1), ReviewCounts(3, 3, 0, 1), Sample(500, 14, Fraction(14 * 33, 13 * 23))),
    ],
)
def test_differing_inspections_are_weighted_by_their_share(plain, differing, expected):
    assert StratumCounts(500, plain, differing).sample() == expected


def test_without_reviews_estimates_are_unknown():
    counts = {
        Stratum("chance", 0.0): StratumCounts(300, ReviewCounts()),
        Stratum("defect", 1.0): StratumCounts(4, ReviewCounts(4)),
    }
    found = compute_statistics(Filters(), counts)
    assert found.missed == Estimate(value=None, low=0, high=300)
    assert found.false_alarm_share == Estimate(value=None, low=0, high=1)
    assert found.miss_rate == Estimate(value=None, low=0, high=1)
    assert all("too few reviews" in note for note in found.notes) and len(found.notes) == 2


# === From the tables ===


def row_of_minute(number):
    """A row each minute from 10:30 on, of four kinds in turn, at two stations."""
    reason = list(LABELS)[number % 4]
    return make_row(
        number,
        inspected_at=NOON + timedelta(minutes=number - 90),
        station="ab"[number % 8 // 4],
        label=LABELS[reason],
        draw=0.0 if number % 16 < 8 else 0.5,
        draw_probability=0.02 if reason == "chance" else 1.0,
        draw_reason=reason,
    )


@pytest.fixture
def rows(engine):
    rows = [row_of_minute(number) for number in range(240)]
    stock(engine, rows)
    return rows


def test_totals_of_a_period(engine, rows):
    periods = [(None, None), (NOON, NOON + HOUR), (NOON - HOUR / 4, NOON + HOUR / 3)]
    periods += [(NOON + HOUR / 4, NOON + HOUR / 3), (NOON + HOUR, NOON - HOUR)]
    for (since, until), station in itertools.product(periods, (None, "a")):
        expected = Counter(
            Stratum(row["draw_reason"], row["draw_probability"])
            for row in rows
            if (since or row["inspected_at"]) <= row["inspected_at"]
            and (until is None or row["inspected_at"] < until)
            and station in (None, row["station"])
        )
        with engine.connect() as connection:
            found = count_strata(connection, Filters(since=since, until=until, station=station))
        assert dict(found) == expected


@pytest.mark.usefixtures("rows")
def test_statistics_of_the_tables(engine):
    labels = {"chance": "good", "near": "scratch", "defect": "good", "review": "unsure"}
    reason = inspections.c.draw_reason
    with write_transaction(engine) as connection:
        for name, label in labels.items():
            connection.execute(update(inspections).where(reason == name).values(reviewed_label=label))
        found = query_statistics(connection, Filters(station="a", since=NOON - HOUR, until=NOON + HOUR))
    assert (found.inspected, found.called_good, found.called_defective, found.for_review) == (60, 30, 15, 15)
    assert (found.drawn, found.reviewed, found.unsure) == (53, 53, 15)  # of those by chance, 8 of 15
    assert found.missed.value == 15 and found.false_alarms.value == 15


@pytest.mark.usefixtures("rows")
def test_inspections_where_a_candidate_differs_are_counted_separately(engine):
    with write_transaction(engine) as connection:
        for number in (2, 6, 10):  # called good near the threshold
            add_prediction(connection, number, differs=number != 6)
        for label, numbers in (("scratch", (2, 6, 10)), ("good", (14, 18, 22))):
            reviewed = update(inspections).where(inspections.c.id.in_(numbers))
            connection.execute(reviewed.values(reviewed_label=label))
        found = query_statistics(connection, Filters())
    # Of 60 near ones 58 are plain, of which one of four is defective; both of the others are.
    near = StratumCounts(60, ReviewCounts(58, 4, 0, 1), ReviewCounts(2, 2, 0, 2)).sample()
    chance = Sample(60, 0, 0)
    assert found.missed == Estimate(**estimate_total([near, chance])._asdict())
    assert float(near.estimate().value) == pytest.approx(58 / 4 + 2)


# === Against simulations ===


@pytest.mark.parametrize(
    "name", ["a candidate finds most, a third reviewed", "many false alarms, 20 % sampled"]
)
def test_intervals_cover_the_truth_of_simulations(name):
    measured = measure(SCENARIOS[name], days=60, seed=1)
    assert {name for name, one in measured.items() if one.days == 60 and one.held < 54} == set()
