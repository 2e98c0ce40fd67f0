from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.thresholds import (
    BASELINE_RULE,
    Excess,
    OutcomeShares,
    choose_min_errors,
    describe,
    describe_outcomes,
    main,
    measure,
    measure_outcomes,
)
from training.metrics.thresholds import ScoredPhotographs


def pool(good, defective):
    odds = np.concatenate([good, defective])
    labels = np.repeat([0, 1], [len(good), len(defective)])
    return ScoredPhotographs(labels, odds, tuple(str(place) for place in range(len(odds))))


@pytest.mark.parametrize(
    ("good", "defective", "cut"),
    [
        ([-1.0, 0.0], [3.0], 1.5),  # the middle of the gap
        ([-1.0, 2.0, 3.0], [1.0, 4.0], 3.5),  # one miss, against two alarms
        ([-1.0, 2.0], [1.0, 4.0], 0.0),  # one miss, or one alarm
        ([3.0], [1.0, 2.0], 0.0),  # everything
        ([1.0, 2.0], [0.0], 3.0),  # nothing
    ],
)
def test_the_former_rule_minimises_errors(good, defective, cut):
    assert choose_min_errors(np.array(good), np.array(defective)) == cut


def test_no_rule_costs_less_than_the_best_threshold():
    generator = np.random.default_rng(1)
    line = measure(pool(generator.normal(-2, 1, 80), generator.normal(1, 1, 20)), 5, 30, 20, 10.0, 0)
    assert line.defects == 5
    assert all(line.excess(rule) >= 0 for rule in line.costs)
    assert line.excess(BASELINE_RULE) > 0


def test_the_table_has_the_ratio_to_the_former_rule():
    line = Excess(5, {BASELINE_RULE: 0.3, "0.5": 0.35, "ours": 0.15, "best": 0.1})
    assert describe([line]).splitlines() == [
        "| defects | best possible | excess: fewest errors | 0.5 | ours |",
        "| --- | --- | --- | --- | --- |",
        "| 5 | 0.100 | 0.200 | 0.250 (1.25) | 0.050 (0.25) |",
    ]


def test_runs_are_pooled(monkeypatch, capsys):
    def evaluated(run):
        odds = [(0, -3.0 + place) for place in range(8)] + [(1, 1.0 + place) for place in range(4)]
        results = [SimpleNamespace(truth=truth, log_odds=value, group=str(run)) for truth, value in odds]
        return SimpleNamespace(results=results)

    monkeypatch.setattr("benchmarks.thresholds.load_evaluation", evaluated)
    main(["one", "other", "--defects", "3", "6", "--good", "10", "--draws", "5"])
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[0] for row in rows[2:]] == ["| 3", "| 6"]


def test_three_outcomes_are_measured_on_other_parts():
    generator = np.random.default_rng(1)
    pools = [
        (generator.normal(-2, 1, 60), generator.normal(2, 1, 40)),
        (generator.normal(-2, 1, 12), generator.normal(2, 1, 8)),  # too few for 25 good or 10 defective
    ]
    measured = measure_outcomes(pools, 4, 0)
    assert {numbers: len(shares) for numbers, shares in measured.items()} == {
        **{(10, number): 2 for number in (3, 5, None)},
        (10, 10): 1,
        **{(25, number): 1 for number in (3, 5, 10, None)},
        **{(None, number): 2 for number in (3, 5, None)},
        (None, 10): 1,
    }
    shares = measured[None, None][0]
    assert shares.rejected < 0.05 and shares.missed < 0.05
    assert shares.reviewed < measured[None, 3][0].reviewed
    assert shares.rejected < shares.single_rejected


def test_the_table_of_outcomes_has_the_mean_and_the_worst_data_set():
    shares = [OutcomeShares(0.01, 0.2, 0.0, 0.3, 0.05), OutcomeShares(0.03, 0.4, 0.01, 0.1, 0.15)]
    assert describe_outcomes({(25, None): shares}).splitlines()[2] == (
        "| 25 | half | 2 | 2.0 (3.0) | 30.0 (40.0) | 0.5 (1.0) | 20.0 (30.0) | 10.0 (15.0) |"
    )
