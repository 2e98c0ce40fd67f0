"""The p-chart, against numbers worked out by hand."""

from datetime import UTC, datetime, timedelta
from math import comb

import pytest

from api.line.control_chart import TAIL_PROBABILITY, Baseline, PeriodCount, exceeded_limit, upper_count_limit

HOUR = datetime(2026, 1, 15, 8, tzinfo=UTC)


def hours(*counts):
    return [PeriodCount(HOUR + timedelta(hours=n), *count) for n, count in enumerate(counts)]


@pytest.mark.parametrize(
    ("trials", "probability", "limit"),
    [
        (100, 0.0, 0),
        (100, 1.0, 100),
        # 1000 + 3 σ = 1090, σ = √900 = 30; P(X > 1090) = 0.00143, P(X > 1091) = 0.00129
        (10_000, 0.1, 1091),
    ],
)
def test_the_upper_count_limit(trials, probability, limit):
    assert upper_count_limit(trials, probability) == limit


def test_the_upper_count_limit_is_exact():
    for trials in (1, 7, 40, 200):
        for probability in (0.001, 0.02, 0.3, 0.9):
            miss, hits = 1 - probability, range(trials + 1)
            shares = [comb(trials, k) * probability**k * miss ** (trials - k) for k in hits]
            limit = next(k for k in hits if sum(shares[k + 1 :]) <= TAIL_PROBABILITY)
            assert upper_count_limit(trials, probability) == limit, (trials, probability)


def test_limits_narrow_with_more_inspections():
    baseline = Baseline(centre=0.02, spread=1.0)
    assert baseline.limits(19) is None
    assert baseline.limits(100) == (0.0, pytest.approx(0.07))
    low, high = baseline.limits(10_000)
    assert 0.0155 < low < 0.0165 and 0.0240 < high < 0.0250  # 0.02 ± 3 · 0.0014


@pytest.mark.parametrize(
    ("centre", "inspected", "defective", "out"),
    [
        (0.02, 100, 7, None),
        (0.02, 100, 8, "high"),
        (0.02, 100, 0, None),
        (0.5, 100, 34, "low"),  # 50 − 3 · 5 = 35
        (0.02, 19, 19, None),
        (0.02, 0, 0, None),
    ],
)
def test_an_hour_is_out_beyond_its_limits(centre, inspected, defective, out):
    limits = Baseline(centre, 1.0).limits(inspected)
    assert exceeded_limit(PeriodCount(HOUR, inspected, defective), limits) == out


def test_the_centre_is_the_rate_of_all_hours():
    baseline = Baseline.from_periods(hours((100, 3), (300, 1)))
    assert baseline == Baseline(0.01, 1.0)
    assert Baseline.from_periods(hours((100, 3), (99, 1))) is None
    assert Baseline.from_periods(hours((1000, 0))) == Baseline(0.001, 1.0)  # as if there had been one


def test_overdispersed_hours_widen_the_limits():
    # 12 hours of 100, 4 and 16 defects in turn: centre 0.1, σ = √(0.1 · 0.9 / 100) = 0.03, so −2 σ and +2 σ;
    # 4 σ from each to the next, 4 / 1.128 = 3.546 times what chance does.
    spread = Baseline.from_periods(hours(*[(100, 4), (100, 16)] * 6)).spread
    assert spread == pytest.approx(3.546, abs=0.001)
    # By chance 20 of 100 at most: 0.1 + 3.546 · 0.1
    assert Baseline(0.1, spread).limits(100) == (0.0, pytest.approx(0.4546, abs=0.001))


def test_underdispersed_hours_do_not_narrow_the_limits():
    assert Baseline.from_periods(hours(*[(100, 10)] * 12)).spread == 1.0
    assert Baseline.from_periods(hours(*[(100, 4), (100, 16)] * 5)).spread == 1.0  # too few hours
