"""The table of the suite, and its place in a Markdown file."""

from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median

from benchmarks.harness import markdown_table
from benchmarks.suite.results import FitResult, Result
from segdec.errors import ConfigError
from segdec.runtime.files import write_text_atomic

NOTHING = "–"
HEADING = (
    "set",
    "defects",
    "AP",
    "AUROC",
    "missed",
    "false alarms",
    "excess cost",
    "for review",
    "mask IoU",
    "s",
    "steps",
    "ms",
)
BASELINE_HEADING = ("head AP / AUROC", "memory AP / AUROC", "above the better one")


@dataclass(frozen=True)
class Row:
    """The results of a data set with all seeds, and those of its baselines by name."""

    results: Sequence[FitResult]
    baselines: Mapping[str, Result] = field(default_factory=dict)

    @property
    def defects(self) -> str:
        """The number of defective training photographs."""
        number = self.results[0].defects
        return "all" if number is None else str(number)

    def figure(self, name: str) -> float | None:
        """Returns the median of a figure over the seeds; None if it does not exist."""
        values = [getattr(result, name) for result in self.results]
        return None if None in values else median(values)

    def baseline(self, name: str, figure: str) -> float | None:
        """Returns a figure of a baseline; None if it was not measured with the same defects."""
        result = self.baselines.get(name)
        return (
            None if result is None or (name == "head" and self.defects != "all") else getattr(result, figure)
        )

    def above(self, figure: str) -> float | None:
        """Returns by how much a figure is above that of the better baseline."""
        known = [value for name in self.baselines if (value := self.baseline(name, figure)) is not None]
        own = self.figure(figure)
        return None if not known or own is None else own - max(known)


def tabulate(rows: Sequence[Row]) -> str:
    """Returns a Markdown table: medians over the seeds, and means over the sets."""
    with_baselines = any(row.baselines for row in rows)
    heading = [*HEADING, *(BASELINE_HEADING if with_baselines else ())]
    lines = [_cells(row, with_baselines=with_baselines) for row in rows]
    for defects in dict.fromkeys(row.defects for row in rows):
        own = [row for row in rows if row.defects == defects]
        if len(own) > 1:
            lines.append(_mean_cells(own, with_baselines=with_baselines))
    return markdown_table(heading, lines)


def add_write_option(parser: ArgumentParser, marker: str) -> None:
    """Adds the option `--write FILE`."""
    text = f"Markdown file whose table between two {marker} is replaced"
    parser.add_argument("--write", type=Path, metavar="FILE", help=text)


def print_and_write(measure: Callable[[], str], file: Path | None, marker: str) -> None:
    """Prints what `measure` returns, and replaces the text between the two markers of a file by it.

    Raises:
        ConfigError: If the file does not have two markers, before it is measured.
    """
    if file is not None:
        split_marked(file, marker)
    text = measure()
    print(text)
    if file is not None:
        replace_marked(file, text, marker)


def replace_marked(path: Path, content: str, marker: str) -> None:
    """Replaces the text between the two markers of a Markdown file, atomically.

    Raises:
        ConfigError: If the file cannot be read or does not have two markers.
    """
    before, _, after = split_marked(path, marker)
    write_text_atomic(path, f"{before}{marker}\n\n{content.strip()}\n\n{marker}{after}")


def split_marked(path: Path, marker: str) -> tuple[str, str, str]:
    """Returns the text before, between and after the two markers; raises the errors of `replace_marked`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"'{path}' cannot be read ({error}). Expected a Markdown file.") from error
    parts = text.split(marker)
    if len(parts) != 3:
        raise ConfigError(
            f"'{path}' has {len(parts) - 1} lines '{marker}'. Expected two, around the place of the table."
        )
    return parts[0], parts[1], parts[2]


def _cells(row: Row, *, with_baselines: bool) -> list[str]:
    first = row.results[0]
    counts = [
        (row.figure(name), of) for name, of in (("missed", first.defective), ("false_alarms", first.good))
    ]
    return [
        first.name,
        row.defects,
        _number(row.figure("average_precision"), 3),
        _number(row.figure("auroc"), 3),
        *(f"{_count(count)} of {of}" for count, of in counts),
        _count(row.figure("excess_cost")),
        _count(row.figure("reviews")),
        _number(row.figure("mask_iou"), 3),
        _number(row.figure("seconds"), 0),
        _count(row.figure("steps")),
        _number(row.figure("ms_per_photograph"), 0),
        *(_baseline_cells([row]) if with_baselines else ()),
    ]


def _mean_cells(rows: Sequence[Row], *, with_baselines: bool) -> list[str]:
    figures = {
        name: _mean([row.figure(name) for row in rows]) for name in ("average_precision", "auroc", "mask_iou")
    }
    first = [_number(figures["average_precision"], 3), _number(figures["auroc"], 3)]
    cells = ["mean", rows[0].defects, *first, "", "", "", "", _number(figures["mask_iou"], 3), "", "", ""]
    return cells + (_baseline_cells(rows) if with_baselines else [])


def _baseline_cells(rows: Sequence[Row]) -> list[str]:
    """Average precision and AUROC of each baseline, and the differences: means over the rows."""
    pairs = [
        [_mean([row.baseline(name, figure) for row in rows]) for figure in ("average_precision", "auroc")]
        for name in ("head", "memory")
    ]
    above = [_mean([row.above(figure) for row in rows]) for figure in ("average_precision", "auroc")]
    texts = [" / ".join(_number(value, 3) for value in pair) for pair in pairs]
    return [*texts, " / ".join(NOTHING if value is None else f"{value:+.3f}" for value in above)]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean(known) if known else None


def _number(value: float | None, decimals: int) -> str:
    return NOTHING if value is None else f"{value:.{decimals}f}"


def _count(value: float | None) -> str:
    """A whole number, or the half one that a median of an even number of seeds may be."""
    return NOTHING if value is None else f"{value:g}"
