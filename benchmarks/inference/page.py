"""Writes the figures of a run into docs/performance.md, between its two comments, and draws them.

python -m benchmarks.inference.page [--figures build/bench] [--page docs/performance.md]
"""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.environments import ROOT
from benchmarks.inference.size import BASE
from benchmarks.reporting import cell_text
from segdec.errors import RunError
from segdec.runtime.cli import clean_exit
from segdec.runtime.files import write_text_atomic

BEGIN, END = "<!-- figures: make bench writes them -->", "<!-- end of figures -->"
PARTS = {
    "speed": "Inference",
    "training_step": "Training step",
    "size": "Cost against size",
}
"""File and heading of each benchmark."""
SERIES = {"pixels": "o-", "batch": "s--", "features": "^:"}
"""What grows in the plot of the cost, and its line."""
SECONDS = "s an image"

Figures = Mapping[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads the figures, writes page and plot."""
    parser = argparse.ArgumentParser(description="Write the figures of a run into the documentation.")
    parser.add_argument("--figures", type=Path, default=ROOT / "build" / "bench", metavar="FOLDER")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "performance.md", metavar="FILE")
    options = parser.parse_args(arguments)
    with clean_exit():
        parts = {name: read_figures(options.figures / f"{name}.json") for name in PARTS}
        text = options.page.read_text(encoding="utf-8")
        plot = options.page.with_suffix(".svg")
        draw(parts, plot)
        figures = f"{describe(parts)}\n\n![Seconds an image, and cost against size]({plot.name})"
        write_text_atomic(options.page, replace_figures(text, figures))


def read_figures(file: Path) -> Figures:
    """Reads what a benchmark wrote.

    Raises:
        RunError: If it has not been run.
    """
    try:
        figures: Figures = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"There is no {file}. Run `make bench` first.") from None
    return figures


def replace_figures(text: str, figures: str) -> str:
    """Returns the page with other figures between its two comments.

    Raises:
        RunError: If the comments are missing.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise RunError(f"The page has no place for the figures. Expected the lines {BEGIN} and {END}.")
    return f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}"


def describe(parts: Mapping[str, Figures]) -> str:
    """Returns machine, tables and targets in Markdown."""
    machine = next(iter(parts.values()))["machine"]
    blocks = ["; ".join(f"{name} {value}" for name, value in machine.items() if value) + "."]
    for name, figures in parts.items():
        blocks += [f"### {PARTS[name]}", describe_run(figures), markdown_table(figures["rows"])]
        if figures["targets"]:
            blocks.append(markdown_table([describe_target(target) for target in figures["targets"]]))
    return "\n\n".join(blocks)


def describe_run(figures: Figures) -> str:
    """Tells rounds, libraries, what was left out, and what engines said of this machine, a sentence each."""
    told = {name: version.partition("; ") for name, version in figures.get("versions", {}).items()}
    libraries = sorted({library for library, _, _ in told.values()})
    notes = [f"\n- {name}: {note}" for name, (_, _, note) in told.items() if note]
    said = [f"Rounds: {figures['rounds']}."]
    if libraries:
        said.append(f"Libraries: {', '.join(libraries)}.")
    if figures.get("left_out"):
        said.append(f"Left out, for want of memory: {'; '.join(figures['left_out'])}.")
    return "\n".join([" ".join(said), *notes])


def describe_target(target: Figures) -> dict[str, object]:
    """Returns a row of the table of targets."""
    lowest, value = target["lowest"], target["value"]
    return {
        "target": target["name"],
        "aimed at": f"≤ {target['highest']:g}" if lowest is None else f"≥ {lowest:g}",
        "reached": "not measured" if math.isnan(value) else float(value),
        "verdict": "met" if target["met"] else "missed",
    }


def markdown_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Writes rows of equal keys; figures stand to the right."""
    ruler = ["--:" if isinstance(value, int | float) else "---" for value in rows[0].values()]
    lines = [list(rows[0]), ruler, *([cell_text(value) for value in row.values()] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# === Plot ===


def draw(parts: Mapping[str, Figures], file: Path) -> None:
    """Draws the seconds an image of each competitor, and the cost against the arithmetic, as SVG."""
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": file.stem, "font.size": 9}):
        figure = Figure(figsize=(10, 4), layout="constrained")
        speed, size = figure.subplots(1, 2)
        draw_speed(speed, parts["speed"]["rows"])
        draw_size(size, parts["size"]["rows"])
        figure.savefig(file, metadata={"Date": None})


def draw_speed(axes: Axes, rows: Sequence[Figures]) -> None:
    """Draws a bar for each competitor of the first network's largest case of one image."""
    first = [row for row in rows if row["network"] == rows[0]["network"]]
    case = [row["case"] for row in first if row["case"].endswith("batch 1")][-1]
    shown = [row for row in first if row["case"] == case]
    medians = [row[f"{SECONDS}, median"] for row in shown]
    ends = ([row[f"{SECONDS}, {end}"] for row in shown] for end in ("min", "max"))
    errors = [[abs(value - median) for value, median in zip(end, medians, strict=True)] for end in ends]
    colors = ["C0" if row["competitor"].startswith("segdec") else "C7" for row in shown]
    axes.barh([row["competitor"] for row in shown], medians, xerr=errors, color=colors)
    axes.invert_yaxis()
    axes.set(title=f"{rows[0]['network']}, {case}", xlabel=f"{SECONDS}: median, fastest, slowest")


def draw_size(axes: Axes, rows: Sequence[Figures]) -> None:
    """Draws seconds against the arithmetic of the direct network, a line a competitor and what grows."""
    competitors = list(dict.fromkeys(row["competitor"] for row in rows))
    for color, competitor in enumerate(competitors):
        for series, line in SERIES.items():
            points = sorted(
                (row["GFLOP"], row["s, median"])
                for row in rows
                if row["competitor"] == competitor and grows(row, series)
            )
            axes.plot(*zip(*points, strict=True), line, color=f"C{color}", label=f"{competitor}, {series}")
    axes.set(title="cost against size", xlabel="GFLOP of the network computed directly", ylabel="s a batch")
    axes.legend()


def grows(row: Figures, series: str) -> bool:
    """Returns whether a case belongs to a series: all but what grows in it is as in the base."""
    same = {
        "pixels": (row["height"], row["width"]) == (BASE.height, BASE.width),
        "batch": row["batch"] == BASE.batch,
        "features": row["features"] == BASE.features,
    }
    return all(unchanged for name, unchanged in same.items() if name != series)


if __name__ == "__main__":
    main()
