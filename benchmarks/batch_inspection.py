"""Photographs/s of `segdec predict --results` in one process, in shards and on Ray.

    python -m benchmarks.batch_inspection [--model FOLDER] [--size 512x704] [--photographs 200] [--rounds 3]

Each round runs the whole commands on grey PNG files: one process with all cores, a shard with one thread for
each core, and Ray with an actor for each core, if it is installed. The start-up time is that of a single
photograph.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet

from benchmarks.environments import ROOT
from benchmarks.harness import Target, benchmark_parser, finish, interleave, spread
from benchmarks.untrained_models import NATIVE, given_or_untrained, photograph
from segdec.errors import RunError
from segdec.runtime.cli import clean_exit
from segdec.runtime.threads import available_cores


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    defaults = {"size": "512x704", "photographs": 200, "rounds": 3}
    parser = benchmark_parser(__doc__, model="an artifact for grey photographs", **defaults)
    options = parser.parse_args(arguments)
    with clean_exit(extra="batch"), tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = given_or_untrained(options.model, folder, NATIVE)
        (folder / "photographs").mkdir()
        images = write_photographs(folder / "photographs", options.size, options.photographs)
        competitors = {}
        for way, commands in list_ways().items():
            for some in (images[:1], images):
                competitors[f"{way}, {len(some)}"] = partial(inspect, commands, model, some, folder)
        measured = interleave(competitors, options.rounds)
    return finish(options.json, tabulate(measured, len(images)), targets(measured, len(images)))


def write_photographs(folder: Path, size: str, count: int) -> list[Path]:
    """Writes `count` grey PNG files of `size`, for example `512x704`."""
    height, width = map(int, size.split("x"))
    paths = [folder / f"{number}.png" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_bytes(photograph(height, width, seed=number))
    return paths


def list_ways() -> dict[str, list[list[str]]]:
    """Returns the flags of the concurrent commands of each way."""
    cores = available_cores()
    found: dict[str, list[list[str]]] = {
        "one process": [[]],
        f"{cores} shards": [["--shard", f"{n}/{cores}", "--threads", "1"] for n in range(1, cores + 1)],
    }
    return found | ({"Ray": [["--ray"]]} if find_spec("ray") else {})


def inspect(commands: Sequence[Sequence[str]], model: Path, images: Sequence[Path], folder: Path) -> float:
    """Returns the seconds until all commands have ended.

    Raises:
        RunError: If a command fails, or results are missing.
    """
    listed = folder / "photographs.txt"
    listed.write_text("".join(f"{path}\n" for path in images), encoding="utf-8")
    with ExitStack() as stack:
        results = stack.enter_context(tempfile.TemporaryDirectory(dir=folder))
        command = [sys.executable, "-m", "segdec", "predict", str(listed), "--model", str(model)]
        started = [[*command, "--results", results, *flags] for flags in commands]
        begun = time.perf_counter()
        pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        running = [stack.enter_context(subprocess.Popen(command, cwd=ROOT, **pipes)) for command in started]
        errors = [process.communicate()[1] for process in running]
        seconds = time.perf_counter() - begun
        for command, process, error in zip(started, running, errors, strict=True):
            if process.returncode:
                raise RunError(f"`{' '.join(command)}` exited with {process.returncode}:\n{error[-2000:]}")
        rows = sum(pyarrow.parquet.read_metadata(file).num_rows for file in Path(results).glob("*.parquet"))
    if rows != len(images):
        raise RunError(f"{rows} rows for {len(images)} photographs. Expected one for each.")
    return seconds


def tabulate(measured: Mapping[str, Sequence[float]], count: int) -> list[dict[str, object]]:
    """Returns a row for each way."""
    return [
        {
            "way": name,
            "start, s": median(one),
            **{f"s for all, {key}": value for key, value in spread(every).items()},
            "photographs/s, start included": count / median(every),
            "photographs/s after it": rate(one, every, count),
        }
        for name, one, every in _pairs(measured)
    ]


def rate(one: Sequence[float], every: Sequence[float], count: int) -> float:
    """Returns photographs/s once everything has started: the median of the rounds."""
    return median((count - 1) / (all_s - one_s) for one_s, all_s in zip(one, every, strict=True))


def targets(measured: Mapping[str, Sequence[float]], count: int) -> list[Target]:
    """Cores that are shared out lose nothing against one process that has all of them."""
    (_, first, all_of_first), *others = _pairs(measured)
    alone = rate(first, all_of_first, count)
    return [
        Target(f"{name} / one process", rate(one, every, count) / alone, lowest=0.9)
        for name, one, every in others
    ]


def _pairs(measured: Mapping[str, Sequence[float]]) -> list[tuple[str, Sequence[float], Sequence[float]]]:
    """Name of the way, seconds for one photograph, seconds for all."""
    entries = list(measured.items())
    return [
        (name.rpartition(", ")[0], one, every)
        for (name, one), (_, every) in zip(entries[::2], entries[1::2], strict=True)
    ]


if __name__ == "__main__":
    sys.exit(main())
