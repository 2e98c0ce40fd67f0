"""Whether the constants of the click segmentation suit other photographs: chosen on all data sets but one.

    python -m benchmarks.click_constants DATA --photographs 8 --write docs/labelling.md

DATA, the simulated clicks and NoC@80 are those of `benchmarks.clicks`. For each data set, the constants with
the fewest clicks on all other sets are chosen from a grid, and their clicks on this set are counted.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from types import ModuleType
from typing import NamedTuple

import numpy as np

from api.labelling import corrections, edges, segmenter
from benchmarks.clicks import SETS, load_samples, prepare_clicks, simulate
from benchmarks.harness import describe_machine, markdown_table, wrap_lines
from benchmarks.suite.table import add_write_option, print_and_write
from datasets.sample import Sample
from segdec.errors import ConfigError
from segdec.runtime.cli import clean_exit, parse_seed

MARKER = "<!-- click constants -->"
TARGET = 0.80
"""IoU until which clicks are counted."""


class Constant(NamedTuple):
    """A constant of the segmentation, and the values that are tried."""

    module: ModuleType
    name: str
    values: tuple[float, ...]

    def __str__(self) -> str:
        return f"{self.module.__name__.rpartition('.')[2]}.{self.name}"


CONSTANTS = (
    Constant(segmenter, "THRESHOLD", (0.25, 0.35, 0.45)),
    Constant(edges, "WEIGHT", (0.5, 0.7, 0.9)),
    Constant(corrections, "WIDTH", (0.8, 1.1, 1.4)),
)
Values = tuple[float, ...]
"""One value for each of `CONSTANTS`."""


@contextmanager
def set_constants(values: Values) -> Iterator[None]:
    """Segments with other constants until the end of the block."""
    served = read_constants()
    for constant, value in zip(CONSTANTS, values, strict=True):
        setattr(constant.module, constant.name, value)
    try:
        yield
    finally:
        for constant, value in zip(CONSTANTS, served, strict=True):
            setattr(constant.module, constant.name, value)


def read_constants() -> Values:
    """Returns the constants that are in use."""
    return tuple(float(getattr(constant.module, constant.name)) for constant in CONSTANTS)


def count_clicks(samples: Sequence[Sample], values: Values) -> float:
    """Returns NoC@80, the mean number of clicks, with these constants."""
    with set_constants(values):
        return mean(
            simulate(prepare_clicks, one.image, np.asarray(one.mask) > 0, TARGET).count_clicks(TARGET)
            for one in samples
        )


def choose_values(counts: Mapping[str, Mapping[Values, float]], left_out: str) -> Values:
    """Returns the values with the fewest clicks on average over all sets but one; the first if several have.

    Args:
        counts: Set → values → NoC.
        left_out: The set that is not looked at.
    """
    others = [clicks for name, clicks in counts.items() if name != left_out]
    return min(others[0], key=lambda values: mean(clicks[values] for clicks in others))


def tabulate(counts: Mapping[str, Mapping[Values, float]], served: Values) -> str:
    """Returns the table: for each set left out the chosen values, and clicks with them and with others."""
    rows, figures = [], list[tuple[float, ...]]()
    for name, clicks in counts.items():
        chosen = choose_values(counts, name)
        figures.append((clicks[chosen], clicks[served], min(clicks.values())))
        rows.append([name, *(f"{value:g}" for value in chosen), *(f"{one:.1f}" for one in figures[-1])])
    means = np.mean(figures, axis=0)
    rows.append(["mean", *[""] * len(CONSTANTS), *(f"{one:.1f}" for one in means)])
    heading = (
        "left out",
        *(f"`{constant}`" for constant in CONSTANTS),
        "chosen on others",
        "served",
        "best here",
    )
    return markdown_table(heading, rows)


def measure(options: argparse.Namespace) -> str:
    """Returns the table and its description."""
    grid = list(itertools.product(*(constant.values for constant in CONSTANTS)))
    served = read_constants()
    grid += [served] * (served not in grid)
    counts = dict[str, dict[Values, float]]()
    for name in options.sets:
        samples = load_samples(options.data / name, options.photographs, options.seed)
        counts[name] = {values: count_clicks(samples, values) for values in grid}
        print(name, f"{counts[name][served]:.2f}", file=sys.stderr, flush=True)
    grids = "; ".join(f"{constant} {', '.join(map(str, constant.values))}" for constant in CONSTANTS)
    served_text = ", ".join(f"{value:g}" for value in served)
    text = (
        f"NoC@80, at most {options.photographs} photographs of a set, seed {options.seed}; "
        f"{describe_machine()['date']}. Tried: {grids}; served: {served_text}. best here: the fewest clicks "
        "of the grid on the set itself."
    )
    return f"{tabulate(counts, served)}\n\n{wrap_lines(text)}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints the table and writes it."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.click_constants", description=(__doc__ or "").split("\n")[0]
    )
    add = parser.add_argument
    add("data", type=Path, metavar="DATA", help="folder with one folder for each data set")
    add(
        "--sets",
        nargs="+",
        default=list(SETS),
        metavar="NAME",
        help=f"two or more, default: {' '.join(SETS)}",
    )
    add("--photographs", type=int, default=8, metavar="N", help="of each set (default: %(default)s)")
    add("--seed", type=parse_seed, default=0, metavar="N")
    add_write_option(parser, MARKER)
    options = parser.parse_args(arguments)
    with clean_exit(group="train"):
        if len(set(options.sets)) < 2:
            raise ConfigError(
                f"--sets names {' '.join(options.sets)}. Expected two sets or more: one is left out."
            )
        print_and_write(lambda: measure(options), options.write, MARKER)


if __name__ == "__main__":
    main()
