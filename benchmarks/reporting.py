"""How a benchmark ends: machine and figures on stdout and as JSON, and an exit code."""

import argparse
import json
import math
import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("segdec", "tensorflow", "numpy", "opencv-python-headless", "fastapi", "starlette", "uvicorn")
INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")
"""Flags in /proc/cpuinfo of what speeds a network up."""


@dataclass(frozen=True)
class Target:
    """A figure and the limit that it has to keep: at least `lowest`, or at most `highest`."""

    name: str
    value: float
    lowest: float | None = None
    highest: float | None = None

    @property
    def met(self) -> bool:
        """Whether it does; NaN does not."""
        if self.lowest is not None:
            return self.value >= self.lowest
        return self.highest is not None and self.value <= self.highest

    def __str__(self) -> str:
        limit = f"≥ {self.lowest:g}" if self.lowest is not None else f"≤ {self.highest:g}"
        return f"{'met   ' if self.met else 'MISSED'}  {self.name}: {self.value:.4g} ({limit})"


def benchmark_parser(docstring: str | None) -> argparse.ArgumentParser:
    """Returns a parser with the flag of every script; the first line of its docstring describes it."""
    parser = argparse.ArgumentParser(description=(docstring or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as JSON too")
    return parser


def conclude(
    file: Path | None, rows: Sequence[Mapping[str, object]], targets: Sequence[Target], **figures: Any
) -> int:
    """Prints machine, figures and targets, writes them as JSON to `file`, and returns the exit code."""
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
    """Prints rows of equal keys, as columns."""
    if not rows:
        return
    cells = [list(rows[0]), *([cell_text(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    for line in cells:
        first, *others = (
            cell.ljust(width) if not i else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join([first, *others]))


def cell_text(value: object) -> str:
    """Returns a figure with four digits, or what else stands in a table."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def describe_machine() -> dict[str, str]:
    """Returns processor and what it computes with, cores, memory and versions."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = {line.partition(":")[2].strip() for line in info if line.startswith("model name")}
    flags = {flag for line in info if line.startswith("flags") for flag in line.split()}
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": str(len(os.sched_getaffinity(0))),
        "processor": ", ".join(sorted(models)) or platform.machine(),
        "of its instructions": " ".join(flag for flag in INSTRUCTIONS if flag in flags),
        "memory": f"{memory_gib:.0f} GiB",
        "Linux": platform.release(),
        "Python": platform.python_version(),
        **{package: _version(package) for package in PACKAGES},
    }


def interleave(competitors: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Measures each competitor once a round, in turn, so that a slow moment of the machine meets them all.

    A round before them is not counted.
    """
    measured: dict[str, list[float]] = {name: [] for name in competitors}
    for number in range(rounds + 1):
        for name, measure in competitors.items():
            value = measure()
            if number:
                measured[name].append(value)
    return measured


def spread(values: Sequence[float]) -> dict[str, float]:
    """Returns median, smallest and largest."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def paired_ratio(values: Sequence[float], others: Sequence[float]) -> dict[str, float]:
    """Returns how many times as large values are as those measured beside them, and its 95 % interval.

    The ratio is the geometric mean of each round's; the interval is Student's, of their logarithms. One round
    has none: NaN.
    """
    from scipy.stats import t

    logs = [math.log(value / other) for value, other in zip(values, others, strict=True)]
    mean, half = statistics.fmean(logs), math.nan
    if len(logs) > 1:
        half = float(t.ppf(0.975, len(logs) - 1)) * statistics.stdev(logs) / math.sqrt(len(logs))
    return {"ratio": math.exp(mean), "from": math.exp(mean - half), "to": math.exp(mean + half)}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
