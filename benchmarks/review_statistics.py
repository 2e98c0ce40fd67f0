"""Coverage and width of the confidence intervals of the review statistics, on simulated days.

    python -m benchmarks.review_statistics

Each simulated day has defective parts, predictions, a random sample for review, and reviews. The statistics
are computed by the code of the service and compared with the truth. A 95 % interval must contain the truth
on 95 % of the days, even for rare events.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from api.record.filters import Filters
from api.record.sampling_counts import Stratum
from api.review.review_statistics import CALLED_GOOD, ReviewCounts, StratumCounts, compute_statistics
from api.review.schemas import Estimate
from benchmarks.harness import markdown_table

FIGURES = ("defect_rate", "missed", "miss_rate", "false_alarms", "false_alarm_share")


@dataclass(frozen=True)
class Scenario:
    """Rates of a simulated day. Each share is a number 0…1."""

    photographs: int = 20_000
    defect_rate: float = 0.02  # defective parts
    miss_rate: float = 0.05  # of them predicted good
    alarm_rate: float = 0.005  # good parts predicted defective
    near: float = 0.01  # parts predicted good whose score is near the threshold
    near_missed: float = 0.3  # the same of missed defects
    doubtful: float = 0.1  # parts predicted defective that are for review instead
    good_share: tuple[float, ...] = (0.02,)  # sampled of parts predicted good, for equal parts of the day
    defect_share: float = 1.0  # sampled of the others, except those near the threshold, all of which are
    reviewed: float = 1.0  # of the sample
    unsure: float = 0.0  # of the reviews
    differing: float = 0.0  # parts predicted good that a candidate predicts otherwise, all reviewed
    differing_missed: float = 0.0  # the same of missed defects


SCENARIOS: Mapping[str, Scenario] = {
    "default settings, all reviewed": Scenario(),
    "half reviewed": Scenario(reviewed=0.5),
    "10 % reviewed": Scenario(reviewed=0.1, unsure=0.05),
    "no missed defects": Scenario(miss_rate=0.0),
    "no missed defects, half reviewed": Scenario(miss_rate=0.0, reviewed=0.5),
    "one defect in a thousand": Scenario(defect_rate=0.001, miss_rate=0.2),
    "half of the defects missed": Scenario(miss_rate=0.5),
    "10 % defective, half reviewed": Scenario(defect_rate=0.1, miss_rate=0.02, reviewed=0.5),
    "many false alarms, 20 % sampled": Scenario(alarm_rate=0.03, defect_share=0.2, reviewed=0.8),
    "100,000 photographs, half reviewed": Scenario(photographs=100_000, reviewed=0.5),
    "10 % of the good ones sampled": Scenario(good_share=(0.1,), reviewed=0.7),
    "sampling rate changed at noon": Scenario(good_share=(0.02, 0.1), reviewed=0.8),
    "a candidate finds half, a third reviewed": Scenario(
        miss_rate=0.3, reviewed=0.3, differing=0.01, differing_missed=0.5
    ),
    "a candidate finds most, a third reviewed": Scenario(
        miss_rate=0.1, good_share=(0.1,), reviewed=0.3, differing=0.002, differing_missed=0.8
    ),
    "500 photographs": Scenario(photographs=500, reviewed=0.6),
}


@dataclass
class Coverage:
    """Intervals of one figure: days with the truth inside, days with both, and the sum of widths."""

    held: int = 0
    days: int = 0
    width: float = 0.0

    def add(self, estimate: Estimate, truth: float | None) -> None:
        """Adds the interval of one day."""
        if truth is None or estimate.low is None or estimate.high is None:
            return
        self.days += 1
        self.held += estimate.low - 1e-9 <= truth <= estimate.high + 1e-9
        self.width += estimate.high - estimate.low

    def __str__(self) -> str:
        days = max(self.days, 1)
        return f"{self.held / days:.1%}, {self.width / days:.3g}"


@dataclass
class Day:
    """The counts of one day, and the truth."""

    kinds: dict[Stratum, StratumCounts] = field(default_factory=dict)
    missed: int = 0
    caught: int = 0
    false_alarms: int = 0
    called_defective: int = 0

    def truth(self, photographs: int) -> Mapping[str, float | None]:
        """Returns the true figures."""
        defective = self.missed + self.caught
        return {
            "defect_rate": defective / photographs,
            "missed": self.missed,
            "miss_rate": self.missed / defective if defective else None,
            "false_alarms": self.false_alarms,
            "false_alarm_share": self.false_alarms / self.called_defective if self.called_defective else None,
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table with a row for each scenario."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--days", type=int, default=2000, help="of each scenario; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    options = parser.parse_args(arguments)
    measured = {name: measure(one, options.days, options.seed) for name, one in SCENARIOS.items()}
    rows = [[name, *figures.values()] for name, figures in measured.items()]
    print(markdown_table([f"{options.days} days of", *(name.replace("_", " ") for name in FIGURES)], rows))


def measure(scenario: Scenario, days: int, seed: int) -> dict[str, Coverage]:
    """Simulates days and counts on how many each interval contains the truth."""
    generator = np.random.default_rng(seed)
    coverage = {name: Coverage() for name in FIGURES}
    for _ in range(days):
        day = make_day(scenario, generator)
        statistics = compute_statistics(Filters(), day.kinds)
        for name, truth in day.truth(scenario.photographs).items():
            coverage[name].add(getattr(statistics, name), truth)
    return coverage


def make_day(scenario: Scenario, generator: np.random.Generator) -> Day:
    """Simulates one day."""

    def part(total: int, share: float) -> tuple[int, int]:
        chosen = int(generator.binomial(total, share))
        return chosen, total - chosen

    defective, good = part(scenario.photographs, scenario.defect_rate)
    missed, caught = part(defective, scenario.miss_rate)
    alarms, passed = part(good, scenario.alarm_rate)
    doubtful_defective, caught = part(caught, scenario.doubtful)
    doubtful_good, alarms = part(alarms, scenario.doubtful)
    near_missed, far_missed = part(missed, scenario.near_missed)
    near_passed, far_passed = part(passed, scenario.near)
    kinds = [
        (Stratum("defect", scenario.defect_share), caught, alarms),
        (Stratum("review", scenario.defect_share), doubtful_defective, doubtful_good),
        (Stratum("near", 1.0), near_missed, near_passed),
    ]
    for number, share in enumerate(scenario.good_share, 1):
        rest = 1 / (len(scenario.good_share) - number + 1)
        (here, far_missed), (fine, far_passed) = part(far_missed, rest), part(far_passed, rest)
        kinds.append((Stratum("chance", share), here, fine))
    looked_at = {by: _sample(by, bad, fine, scenario, generator) for by, bad, fine in kinds}
    return Day(looked_at, missed, caught + doubtful_defective, alarms, caught + alarms)


def _sample(
    by: Stratum, defective: int, good: int, scenario: Scenario, generator: np.random.Generator
) -> StratumCounts:
    """Samples one stratum and reviews part of the sample."""
    rates = (scenario.differing_missed, scenario.differing) if by.reason in CALLED_GOOD else (0.0, 0.0)
    differing = [int(generator.binomial(*one)) for one in zip((defective, good), rates, strict=True)]
    parts = [((defective - differing[0], good - differing[1]), scenario.reviewed), (tuple(differing), 1.0)]
    found = []
    for (bad, fine), share in parts:
        drawn = int(generator.binomial(bad + fine, by.probability))
        reviewed = int(generator.binomial(drawn, share))
        unsure = int(generator.binomial(reviewed, scenario.unsure))
        sure = reviewed - unsure
        defects = int(generator.hypergeometric(bad, fine, sure)) if sure else 0
        found.append(ReviewCounts(drawn, reviewed, unsure, defects))
    return StratumCounts(defective + good, *found)


if __name__ == "__main__":
    main()
