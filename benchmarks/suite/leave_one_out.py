"""Choices of the recipe of `fit`, made on all data sets but one and measured on that one.

    python -m benchmarks.suite DATA --defects all --out build/suite
    python -m benchmarks.suite DATA --defects all --out build/area_256 -- --area 65536
    python -m benchmarks.suite.leave_one_out build/suite build/area_256 --write docs/evaluation.md

Each folder holds the results of the suite with one choice, the first those of the current one. For each data
set the choice with the highest mean average precision on the other sets is taken.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, median

from benchmarks.harness import markdown_table, wrap_lines
from benchmarks.suite.table import add_write_option, print_and_write
from segdec.errors import ConfigError
from segdec.runtime.cli import clean_exit

MARKER = "<!-- leave one out -->"
MIN_SETS = 3

Precisions = Mapping[str, float]
"""Average precision of each data set; median over the seeds."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "folders", type=Path, nargs="+", metavar="OUT", help="--out of the suite, each choice"
    )
    add_write_option(parser, MARKER)
    options = parser.parse_args(arguments)

    def compare() -> str:
        return describe({folder.name: load_precisions(folder) for folder in options.folders})

    with clean_exit():
        print_and_write(compare, options.write, MARKER)


def load_precisions(folder: Path) -> Precisions:
    """Returns the average precision of each data set that was trained with all its defects.

    Raises:
        ConfigError: If there is none.
    """
    found: dict[str, list[float]] = {}
    for path in sorted((folder / "results").glob("*_all_seed*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        found.setdefault(result["name"], []).append(result["average_precision"])
    if not found:
        raise ConfigError(f"'{folder}' has no result with all defects. Expected the --out of the suite.")
    return {name: median(values) for name, values in found.items()}


def choose_without(choices: Mapping[str, Precisions], left_out: str) -> str:
    """Returns the choice with the highest mean over all data sets but one; the first of equal ones."""
    return max(
        choices, key=lambda choice: mean(value for name, value in choices[choice].items() if name != left_out)
    )


def describe(choices: Mapping[str, Precisions]) -> str:
    """Returns a Markdown table of the data sets that were measured with every choice.

    Raises:
        ConfigError: If there are fewer than two choices, or than `MIN_SETS` common data sets.
    """
    names = [name for name in next(iter(choices.values())) if all(name in own for own in choices.values())]
    if len(choices) < 2 or len(names) < MIN_SETS:
        raise ConfigError(
            f"{len(choices)} folders have {len(names)} data sets in common. Expected at least two folders "
            f"with different names and {MIN_SETS} common data sets."
        )
    common = {choice: {name: own[name] for name in names} for choice, own in choices.items()}
    chosen = {name: choose_without(common, name) for name in names}
    rows = [
        [name, *(common[one][name] for one in common), chosen[name], common[chosen[name]][name]]
        for name in names
    ]
    means = [mean(own.values()) for own in common.values()]
    rows.append(["mean", *means, "", mean(common[chosen[name]][name] for name in names)])
    heading = ["set", *common, "chosen on the others", "AP of it"]
    cells = [[f"{cell:.3f}" if isinstance(cell, float) else cell for cell in row] for row in rows]
    current = next(iter(common))
    note = f"Average precision of the test photographs with each choice; the current one is {current}."
    return f"{markdown_table(heading, cells)}\n\n{wrap_lines(note)}"


if __name__ == "__main__":
    main()
