"""The shared harness of all benchmarks: arguments, timing, tables, targets, JSON output and exit code."""

import argparse
import json
import math
import os
import platform
import statistics
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("segdec", "tensorflow", "numpy", "opencv-python-headless", "fastapi", "starlette", "uvicorn")
CPU_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")
"""Flags in /proc/cpuinfo that matter for inference speed."""

LINE_WIDTH = 120
"""Maximum number of characters of a line in the documentation."""

ARGUMENTS: dict[str, tuple[type, str]] = {
    "rounds": (int, "measurements of each"),
    "seconds": (float, "of each measurement"),
    "side": (int, "of the photograph, px"),
    "size": (str, "height and width of a photograph, px"),
    "photographs": (int, "number of photographs"),
}
"""Type and help of common arguments."""


@dataclass(frozen=True)
class Target:
    """A figure and its limit: at least `lowest`, or at most `highest`."""

    name: str
    value: float
    lowest: float | None = None
    highest: float | None = None

    @property
    def met(self) -> bool:
        """Whether the figure keeps the limit; NaN does not."""
        if self.lowest is not None:
            return self.value >= self.lowest
        return self.highest is not None and self.value <= self.highest

    def __str__(self) -> str:
        limit = f"≥ {self.lowest:g}" if self.lowest is not None else f"≤ {self.highest:g}"
        return f"{'met   ' if self.met else 'MISSED'}  {self.name}: {self.value:.4g} ({limit})"


def benchmark_parser(docstring: str | None, *, model: str = "", **defaults: Any) -> argparse.ArgumentParser:
    """Returns a parser with `--json`, `--model` if its help is given, and those of `ARGUMENTS` with defaults.

    The first line of the benchmark's docstring is the description.
    """
    parser = argparse.ArgumentParser(description=(docstring or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    if model:
        parser.add_argument("--model", type=Path, metavar="FOLDER", help=model)
    for name, default in defaults.items():
        kind, text = ARGUMENTS[name]
        parser.add_argument(f"--{name}", type=kind, default=default, help=f"{text} (default: %(default)s)")
    return parser


def finish(
    file: Path | None, rows: Sequence[Mapping[str, object]], targets: Sequence[Target], **figures: Any
) -> int:
    """Prints machine, table, figures and targets, writes them to `file`, and returns the exit code."""
    machine = describe_machine()
    print("; ".join(f"{name} {value}" for name, value in machine.items()), end="\n\n")
    print_table(rows)
    for name, value in figures.items():
        print(f"{name}: {value}")
    print(*("", *targets), sep="\n", flush=True)
    if file is not None:
        written = [{**asdict(target), "met": target.met} for target in targets]
        content = {"machine": machine, "rows": list(rows), **figures, "targets": written}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if all(target.met for target in targets) else 1


def print_table(rows: Sequence[Mapping[str, object]]) -> None:
    """Prints rows with equal keys as aligned columns."""
    if not rows:
        return
    cells = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    for first, *others in cells:
        print("  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]))


def markdown_table(heading: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Returns a Markdown table."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def wrap_lines(text: str) -> str:
    """Returns a text in lines as long as those of the documentation."""
    return textwrap.fill(text, LINE_WIDTH, break_on_hyphens=False)


def describe_machine() -> dict[str, str]:
    """Returns processor and its instructions, cores, memory and versions."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = {line.partition(":")[2].strip() for line in info if line.startswith("model name")}
    flags = {flag for line in info if line.startswith("flags") for flag in line.split()}
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": str(len(os.sched_getaffinity(0))),
        "processor": ", ".join(sorted(models)) or platform.machine(),
        "instructions": " ".join(flag for flag in CPU_FLAGS if flag in flags),
        "memory": f"{memory_gib:.0f} GiB",
        "Linux": platform.release(),
        "Python": platform.python_version(),
        **{package: _version(package) for package in PACKAGES},
    }


def interleave(competitors: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Measures all in turn, as slow moments of the machine then affect all; a first round is not counted."""
    measured: dict[str, list[float]] = {name: [] for name in competitors}
    for number in range(rounds + 1):
        for name, measure in competitors.items():
            value = measure()
            if number:
                measured[name].append(value)
    return measured


def spread(values: Sequence[float]) -> dict[str, float]:
    """Returns median, minimum and maximum."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def paired_ratio(values: Sequence[float], others: Sequence[float]) -> dict[str, float]:
    """Returns the geometric mean of the ratios of paired values, and its 95 % interval (NaN for one pair)."""
    from scipy.stats import t

    logs = [math.log(value / other) for value, other in zip(values, others, strict=True)]
    mean, half = statistics.fmean(logs), math.nan
    if len(logs) > 1:
        half = float(t.ppf(0.975, len(logs) - 1)) * statistics.stdev(logs) / math.sqrt(len(logs))
    return {"ratio": math.exp(mean), "from": math.exp(mean - half), "to": math.exp(mean + half)}


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
