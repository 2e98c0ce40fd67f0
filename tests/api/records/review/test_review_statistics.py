"""What is reckoned from reviews: by hand, from the tables, and against the truth."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from sqlalchemy import insert, update

from api.records.database import writing
from api.records.queries import Filters
from api.records.review.confidence_intervals import Sample, estimate_share, estimate_total
from api.records.review.review_statistics import (
    ReviewCounts,
    StratumCounts,
    compute_statistics,
    query_statistics,
)
from api.records.review.sampling_counts import Stratum, count_strata
from api.records.schemas import Estimate
from api.records.tables import inspections, shadows
from benchmarks.review_statistics import SCENARIOS, Coverage, measure
from tests.api.records.filled_record import make_row, open_stocked, stock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
KINDS = [
    ("chance", 0.02, "good"),
    ("near", 1.0, "good"),
    ("defect", 1.0, "scratch"),
    ("review", 1.0, "review"),
]


# === Intervals ===


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (Sample(100, 100, 7), (7, 7, 7)),
        (Sample(0, 0, 0), (0, 0, 0)),
        (Sample(50, 0, 0), (None, 0, 50)),
        (Sample(10, 5, 0), (0, 0, 3)),  # 3 of 10: C(7, 5) / C(10, 5) = 0.083; 4: C(6, 5) / C(10, 5) = 0.024
        (Sample(10, 5, 5), (10, 7, 10)),
        (Sample(4, 2, 1), (2, 1, 3)),
    ],
)
def test_limits_worked_out_by_hand(sample, expected):
    assert tuple(sample.estimate()) == expected


@pytest.mark.parametrize(
    ("size", "found", "low", "high"),
    [
        (1000, 0, 0.0, 0.0036821),
        (1000, 3, 0.0006191, 0.008742),
        (400, 200, 0.4499079, 0.5500921),
        (50, 49, 0.8935305, 0.9994938),
    ],
)
def test_limits_are_those_of_clopper_and_pearson_where_the_total_is_large(size, found, low, high):
    """As `scipy.stats.binomtest(found, size).proportion_ci(0.95, "exact")` has them."""
    estimate = Sample(10**9, size, found).estimate()
    assert estimate.low / 1e9 == pytest.approx(low, abs=1e-6)
    assert estimate.high / 1e9 == pytest.approx(high, abs=1e-6)


def test_shares():
    part, rest = Sample(100, 100, 10), Sample(60, 60, 30)
    assert tuple(estimate_share([part], [rest])) == pytest.approx((0.25, 0.25, 0.25))
    missed = Sample(1000, 100, 1).estimate()
    value, low, high = estimate_share([Sample(1000, 100, 1)], [rest])
    assert (value, low, high) == pytest.approx(
        (10 / 40, missed.low / (missed.low + 30), missed.high / (missed.high + 30))
    )
    assert tuple(estimate_share([], [])) == (None, 0, 1)
    assert tuple(estimate_share([Sample(9, 9, 0)], [Sample(9, 9, 0)])) == (None, 0, 1)


# === From what was counted ===


def test_statistics_of_a_day_by_hand():
    counts = {
        Stratum("chance", 0.02): StratumCounts(1000, ReviewCounts(20, 12, 2, 1)),
        Stratum("near", 1.0): StratumCounts(10, ReviewCounts(10, 10, 0, 2)),
        Stratum("defect", 1.0): StratumCounts(40, ReviewCounts(40, 40, 0, 30)),
        Stratum("review", 1.0): StratumCounts(5, ReviewCounts(5, 5, 0, 4)),
    }
    told = compute_statistics(Filters(station="a"), counts)
    assert (told.inspected, told.called_good, told.called_defective, told.for_review) == (1055, 1010, 40, 5)
    assert (told.drawn, told.reviewed, told.unsure, told.station) == (75, 67, 2, "a")
    assert told.missed.value == 1000 * 1 / 10 + 2
    assert told.defect_rate.value == pytest.approx((102 + 30 + 4) / 1055)
    assert told.miss_rate.value == pytest.approx(102 / 136)
    assert told.false_alarms == Estimate(value=10, low=10, high=10)
    assert told.false_alarm_share == Estimate(value=0.25, low=0.25, high=0.25)
    assert told.missed.low <= 102 <= told.missed.high
    assert [note.partition(":")[0] for note in told.notes] == ["called good, drawn by chance"] * 2
    assert "8 of 20 sampled inspections wait" in told.notes[0] and "2 reviews are unsure" in told.notes[1]


@pytest.mark.parametrize(
    ("plain", "differing", "expected"),
    [
        (ReviewCounts(20, 20, 0, 3), ReviewCounts(), Sample(500, 20, 3)),
        (
            ReviewCounts(18, 9, 0, 1),
            ReviewCounts(2, 2, 0, 2),
            Sample(500, 10, 2),
        ),  # (18 · 1/9 + 2 · 2/2) / 20 · 10
        (ReviewCounts(18, 18, 0, 1), ReviewCounts(2, 2, 0, 2), Sample(500, 20, 3)),
        (ReviewCounts(18, 9, 0, 1), ReviewCounts(2, 2, 2, 0), Sample(500, 9, 1)),
        (ReviewCounts(18, 0, 0, 0), ReviewCounts(2, 2, 0, 2), Sample(500, 0, 0)),
        (ReviewCounts(0, 0, 0, 0), ReviewCounts(2, 1, 0, 1), Sample(500, 1, 1)),
        (ReviewCounts(18, 9, 0, 2), ReviewCounts(2, 1, 0, 0), Sample(500, 10, 2)),
        (ReviewCounts(20, 13, 0, 1), ReviewCounts(3, 3, 0, 1), Sample(500, 14, Fraction(14 * 33, 13 * 23))),
    ],
)
def test_those_of_which_a_candidate_differs_count_by_their_share(plain, differing, expected):
    assert StratumCounts(500, plain, differing).sample() == expected


def test_where_nothing_is_reviewed_nothing_is_said():
    counts = {
        Stratum("chance", 0.0): StratumCounts(300, ReviewCounts()),
        Stratum("defect", 1.0): StratumCounts(4, ReviewCounts(4)),
    }
    told = compute_statistics(Filters(), counts)
    assert told.missed == Estimate(value=None, low=0, high=300)
    assert told.false_alarm_share == Estimate(value=None, low=0, high=1)
    assert told.miss_rate == Estimate(value=None, low=0, high=1)
    assert all("too few reviews" in note for note in told.notes) and len(told.notes) == 2


# === From the tables ===


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def engine(request, tmp_path_factory):
    """A day from 10:30 on, with an inspection each minute, of four kinds in turn, at two stations."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('statistics')}/record.db"
    else:
        url = request.getfixturevalue("make_database")()
    engine = open_stocked(url)
    stock(engine, [_row(number) for number in range(240)])
    yield engine
    engine.dispose()


def _row(number):
    reason, probability, label = KINDS[number % 4]
    return make_row(
        number,
        inspected_at=NOON + timedelta(minutes=number - 90),
        station="ab"[number % 8 // 4],
        label=label,
        draw=0.0 if number % 16 < 8 else 0.5,
        draw_probability=probability,
        draw_reason=reason,
    )


def one_by_one(since, until, station):
    """What `count_strata` has to answer."""
    totals = {}
    for row in map(_row, range(240)):
        at, kind = row["inspected_at"], Stratum(row["draw_reason"], row["draw_probability"])
        if (since or at) <= at and (until is None or at < until) and station in (None, row["station"]):
            totals[kind] = totals.get(kind, 0) + 1
    return totals


@pytest.mark.parametrize("station", [None, "a"])
@pytest.mark.parametrize(
    ("since", "until"),
    [
        (None, None),
        (NOON, NOON + HOUR),
        (NOON - HOUR / 4, NOON + HOUR / 3),
        (NOON + HOUR / 4, NOON + HOUR / 3),
        (NOON + HOUR, NOON - HOUR),
    ],
)
def test_totals_are_those_of_the_time(engine, since, until, station):
    with engine.connect() as connection:
        found = count_strata(connection, Filters(since=since, until=until, station=station))
    assert dict(found) == one_by_one(since, until, station)


def test_statistics_of_the_tables(engine):
    labels = {"chance": "good", "near": "scratch", "defect": "good", "review": "unsure"}
    reason = inspections.c.draw_reason
    with writing(engine) as connection:
        for name, label in labels.items():
            connection.execute(update(inspections).where(reason == name).values(reviewed_label=label))
    with engine.connect() as connection:
        told = query_statistics(connection, Filters(station="a", since=NOON - HOUR, until=NOON + HOUR))
    assert (told.inspected, told.called_good, told.called_defective, told.for_review) == (60, 30, 15, 15)
    assert (told.drawn, told.reviewed, told.unsure) == (53, 53, 15)  # of those by chance, 8 of 15
    assert told.missed.value == 15 and told.false_alarms.value == 15


def test_what_a_candidate_differs_on_is_counted_by_itself(engine):
    said = {"model": "m", "version": "2", "inspected_at": NOON, "label": "good", "score": 0.1, "log_odds": -2}
    with engine.connect() as connection, connection.begin() as transaction:
        connection.execute(update(inspections).values(reviewed_label=None))
        for number in (2, 6, 10):  # called good near the threshold
            connection.execute(insert(shadows), {**said, "record_id": number, "differs": number != 6})
            reviewed = update(inspections).where(inspections.c.id == number)
            connection.execute(reviewed.values(reviewed_label="scratch"))
        reviewed = update(inspections).where(inspections.c.id.in_((14, 18, 22)))
        connection.execute(reviewed.values(reviewed_label="good"))
        told = query_statistics(connection, Filters())
        transaction.rollback()
    # Of 60 near ones 58 are plain, of which one of four is defective; both of the others are.
    near = StratumCounts(60, ReviewCounts(58, 4, 0, 1), ReviewCounts(2, 2, 0, 2)).sample()
    chance = Sample(60, 0, 0)
    assert told.missed == Estimate(**estimate_total([near, chance])._asdict())
    assert float(near.estimate().value) == pytest.approx(58 / 4 + 2)


# === Against the truth ===


@pytest.mark.parametrize(
    "name",
    [
        "a candidate finds most, a third reviewed",
        "no missed defects, half reviewed",
        "many false alarms, 20 % sampled",
        "500 photographs",
    ],
)
def test_intervals_hold_where_the_truth_is_known(name):
    measured = measure(SCENARIOS[name], days=60, seed=1)
    assert {figure for figure, one in measured.items() if one.days == 60 and one.share < 0.9} == set()


def test_an_interval_that_does_not_hold_is_seen():
    coverage = Coverage()
    coverage.add(Estimate(value=1, low=0, high=2), 3)
    coverage.add(Estimate(value=1, low=0, high=2), 2)
    coverage.add(Estimate(value=None, low=None, high=None), 2)
    assert (coverage.days, coverage.share, coverage.width) == (2, 0.5, 4)
