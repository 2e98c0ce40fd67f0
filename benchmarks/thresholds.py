"""Cost of thresholds chosen on few defects: fewest errors, 0.5, the current rule, and the best possible.

    python -m training join runs/fold_0 runs/fold_1 runs/fold_2 runs/fold_3 runs/fold_4
    python -m benchmarks.thresholds runs/fold_0 runs/fold_1 runs/fold_2 runs/fold_3 runs/fold_4

The test photographs of evaluated runs are pooled. Each draw takes some of them as a validation set; each
rule chooses a threshold on it, and the cost is computed on the others, in false alarms per photograph: a
missed defect costs `--miss-cost` false alarms. The best possible threshold is chosen on those others; a
rule's excess is its cost beyond.

With `--three-outcomes` each run is a data set of its own, and its out-of-fold scores are drawn by part: how
many good parts are rejected or for review, and how many defective ones missed, with the two limits that
training chooses where a single threshold would reject many good parts, and with that threshold.

The share of defects in a validation set differs from that in the others. `share unknown` assumes that they
are equal, as training does by default; `share known` uses the true share, as with `threshold.defect_rate`.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from benchmarks.harness import markdown_table
from segdec.errors import ConfigError
from segdec.runtime.cli import clean_exit
from training.config import ThresholdConfig
from training.metrics.storage import load_evaluation
from training.metrics.three_outcomes import limit_missed, limit_rejected
from training.metrics.thresholds import ScoredPhotographs, choose_score_thresholds
from training.metrics.validation import collect_scored
from training.run.folder import RunFolder

BASELINE_RULE = "fewest errors"
"""The rule with which the others are compared."""

DRAWN_PARTS = tuple((good, defective) for good in (10, 25, None) for defective in (3, 5, 10, None))
"""Numbers of good and of defective parts on which three outcomes are chosen; None is half of them."""

Floats = NDArray[np.float64]
Rule = Callable[[Floats, Floats], float]
"""Returns a threshold in log-odds for the log-odds of good and of defective photographs."""


@dataclass(frozen=True)
class Excess:
    """Mean cost per photograph of each rule, and of `best`, for a number of defects in the validation set."""

    defects: int
    costs: dict[str, float]

    def excess(self, rule: str) -> float:
        """Returns the cost per photograph above the best possible one."""
        return self.costs[rule] - self.costs["best"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table with a row for each number of defects."""
    parser = argparse.ArgumentParser(description="Cost of thresholds chosen on few defects.")
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="evaluated runs, which are pooled")
    parser.add_argument("--defects", type=int, nargs="+", default=[3, 5, 10], help="default: 3 5 10")
    parser.add_argument("--good", type=int, default=35, help="good photographs drawn; default: %(default)s")
    parser.add_argument("--draws", type=int, default=2000, help="default: %(default)s")
    parser.add_argument("--three-outcomes", action="store_true", help="measure the limits of three outcomes")
    parser.add_argument("--miss-cost", type=float, default=10.0, help="in false alarms; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing; default: %(default)s")
    options = parser.parse_args(arguments)
    with clean_exit():
        if options.three_outcomes:
            pools = [load_out_of_fold(run) for run in options.runs]
            print(describe_outcomes(measure_outcomes(pools, options.draws, options.seed)))
            return
        results = [result for run in options.runs for result in load_evaluation(run).results]
        pool = collect_scored(results)
        lines = [
            measure(pool, defects, options.good, options.draws, options.miss_cost, options.seed)
            for defects in options.defects
        ]
        print(describe(lines))


def measure(
    pool: ScoredPhotographs, defects: int, good: int, draws: int, miss_cost: float, seed: int
) -> Excess:
    """Draws validation sets and computes the costs of the rules on the rest.

    Raises:
        ConfigError: If drawing leaves no photographs.
    """
    if defects >= len(pool.defective) or good >= len(pool.good):
        raise ConfigError(
            f"{defects} of {len(pool.defective)} defective and {good} of {len(pool.good)} good photographs "
            "leave none for measuring. Use fewer --defects or --good, or more runs."
        )
    defect_rate = (len(pool.defective) - defects) / (len(pool.labels) - defects - good)
    unknown, known = (ThresholdConfig(miss_cost=miss_cost, defect_rate=rate) for rate in (None, defect_rate))
    rules: dict[str, Rule] = {
        BASELINE_RULE: choose_min_errors,
        "0.5": lambda *_: 0.0,
        "share unknown": lambda fine, bad: choose(fine, bad, unknown),
        "share known": lambda fine, bad: choose(fine, bad, known),
    }
    generator = np.random.default_rng(seed)
    costs: dict[str, list[float]] = {name: [] for name in (*rules, "best")}
    for _ in range(draws):
        chosen_good, rest_good = _part(pool.good, good, generator)
        chosen_bad, rest_bad = _part(pool.defective, defects, generator)
        every = np.concatenate([rest_good, rest_bad, [np.inf]])
        costs["best"].append(min(cost(rest_good, rest_bad, cut, miss_cost) for cut in every))
        for name, rule in rules.items():
            costs[name].append(cost(rest_good, rest_bad, rule(chosen_good, chosen_bad), miss_cost))
    return Excess(defects, {name: float(np.mean(values)) for name, values in costs.items()})


def cost(good: Floats, defective: Floats, cut: float, miss_cost: float) -> float:
    """Returns the cost of a threshold per photograph, in false alarms."""
    alarms, misses = np.count_nonzero(good >= cut), np.count_nonzero(defective < cut)
    return float((alarms + miss_cost * misses) / (len(good) + len(defective)))


def choose(good: Floats, defective: Floats, settings: ThresholdConfig) -> float:
    """Chooses a threshold as training does."""
    odds = np.concatenate([good, defective])
    labels = np.repeat([0, 1], [len(good), len(defective)])
    names = tuple(map(str, range(len(odds))))
    limits = choose_score_thresholds(ScoredPhotographs(labels, odds, names), settings)
    return (float(logit(limits.threshold)) - limits.calibration.intercept) / limits.calibration.slope


def choose_min_errors(good: Floats, defective: Floats) -> float:
    """Chooses the threshold with the fewest errors, then the fewest misses."""
    values = np.sort(np.concatenate([good, defective]))
    cuts = np.concatenate([values, [np.inf]])
    misses = np.array([np.count_nonzero(defective < cut) for cut in cuts])
    alarms = np.array([np.count_nonzero(good >= cut) for cut in cuts])
    best = int(np.lexsort((misses, misses + alarms))[0])
    if best == 0:
        return float(values[0] - 1)
    return float(values[-1] + 1) if best == len(values) else float((values[best - 1] + values[best]) / 2)


# === Three outcomes ===


@dataclass(frozen=True)
class OutcomeShares:
    """Mean shares of one data set, 0 to 1: of good parts and of defective ones.

    `single_rejected` and `single_missed` are those of the single threshold that training would choose.
    """

    rejected: float
    reviewed: float
    missed: float
    single_rejected: float
    single_missed: float


def load_out_of_fold(run: Path) -> tuple[Floats, Floats]:
    """Returns the worst log-odds of the good and of the defective parts on which a run chose thresholds.

    Raises:
        SegdecError: If the run has not finished, or was made by a version that did not store them.
    """
    scored = RunFolder.finished(run).result().scored
    if scored is None:
        raise ConfigError(f"'{run}' has no scores of its photographs. Expected a run of this version.")
    photographs = scored.unpack()
    return photographs.worst_of_groups(good=True), photographs.worst_of_groups(good=False)


def measure_outcomes(
    pools: Sequence[tuple[Floats, Floats]], draws: int, seed: int
) -> dict[tuple[int | None, int | None], list[OutcomeShares]]:
    """Draws good and defective parts of each data set, chooses limits on them, and measures on the others.

    Returns the shares of each data set by the numbers of good and of defective parts; None is half of them.
    Data sets with fewer parts are left out.
    """
    generator = np.random.default_rng(seed)
    measured: dict[tuple[int | None, int | None], list[OutcomeShares]] = {}
    for numbers in DRAWN_PARTS:
        for pool in pools:
            counts = [
                len(each) // 2 if number is None else number
                for each, number in zip(pool, numbers, strict=True)
            ]
            if all(0 < count < len(each) for count, each in zip(counts, pool, strict=True)):
                shares = [_draw_outcomes(pool, counts, generator) for _ in range(draws)]
                measured.setdefault(numbers, []).append(OutcomeShares(*np.mean(shares, axis=0).tolist()))
    return measured


def _draw_outcomes(
    pool: tuple[Floats, Floats], counts: Sequence[int], generator: np.random.Generator
) -> tuple[float, ...]:
    (good, other_good), (defective, other_defective) = (
        _part(each, count, generator) for each, count in zip(pool, counts, strict=True)
    )
    upper, lower = limit_rejected(good), limit_missed(good, defective)
    if lower > upper:
        upper = lower = (lower + upper) / 2
    single = choose(good, defective, ThresholdConfig())
    return (
        float(np.mean(other_good >= upper)),
        float(np.mean((other_good >= lower) & (other_good < upper))),
        float(np.mean(other_defective < lower)),
        float(np.mean(other_good >= single)),
        float(np.mean(other_defective < single)),
    )


def describe_outcomes(measured: Mapping[tuple[int | None, int | None], Sequence[OutcomeShares]]) -> str:
    """Returns a Markdown table: means over the data sets in percent, and the worst one in brackets."""
    names = tuple(field.name for field in fields(OutcomeShares))
    rows = []
    for (good, defective), shares in measured.items():
        columns = [[100 * getattr(each, name) for each in shares] for name in names]
        cells = [f"{np.mean(column):.1f} ({max(column):.1f})" for column in columns]
        rows.append([good or "half", defective or "half", len(shares), *cells])
    outcomes = ["good rejected", "good for review", "defective missed"]
    single = ["one threshold: good rejected", "defective missed"]
    return markdown_table(["good", "defective", "data sets", *outcomes, *single], rows)


def describe(lines: Sequence[Excess]) -> str:
    """Returns a Markdown table with the excess of each rule, and its ratio to that of `BASELINE_RULE`."""
    rules = [name for name in lines[0].costs if name != "best"]
    rows = []
    for line in lines:
        baseline = {rule: line.excess(BASELINE_RULE) for rule in rules if rule != BASELINE_RULE}
        cells = [_cell(line.excess(rule), baseline.get(rule, 0.0)) for rule in rules]
        rows.append([line.defects, f"{line.costs['best']:.3f}", *cells])
    return markdown_table(["defects", "best possible", f"excess: {rules[0]}", *rules[1:]], rows)


def _cell(excess: float, baseline: float) -> str:
    return f"{excess:.3f} ({excess / baseline:.2f})" if baseline > 0 else f"{excess:.3f}"


def _part(values: Floats, count: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
    shuffled = generator.permutation(values)
    return shuffled[:count], shuffled[count:]


if __name__ == "__main__":
    main()
