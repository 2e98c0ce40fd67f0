"""From the start of the process to the first good answer of /readyz, and where the time goes.

    python -m benchmarks.serving.cold_start [--rounds 5] [--python PYTHON] [--model FOLDER] [--json FILE]

Each round starts the service once, and once a process that only imports what the service does, with
`-X importtime`: its report says what each package costs (time spent in its own modules), and slows them a
little. Loading, self-test and warm-up are what the service logs when it is ready. The rest is interpreter,
settings, checks of the files and listener. The files are in the page cache.

`--python` measures another environment, best one with the extras `serve` and `tensorflow` only, as the
container has: Keras imports scikit-learn and matplotlib where it finds them.
"""

import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.environments import ROOT
from benchmarks.reporting import Target, benchmark_parser, conclude, spread
from benchmarks.serving.server_process import start_service
from benchmarks.untrained_models import given_or_untrained
from segdec.errors import RunError
from segdec.runtime.cli import clean_exit

IMPORTED = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+([\w.]+)")
LOGGED = re.compile(r"(load|self-test|warm-up) (\d+) ms")
TOTAL, IMPORTS, REST = "start to ready", "imports", "rest"
MODULES = ("tensorflow", "segdec.engines.tensorflow", "api.settings", "api.listener.server")
"""What the process imports, TensorFlow first."""
UNNEEDED = ("datasets", "training", "tensorboard", "mlflow")
"""Packages that serving has no use for."""
SHOWN = 15
STANDARD = "standard library"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="starts (default: %(default)s)")
    parser.add_argument("--python", default=sys.executable, help="runs the service (default: this one)")
    parser.add_argument(
        "--model", type=Path, metavar="FOLDER", help="an artifact (default: an untrained compact network)"
    )
    options = parser.parse_args(arguments)
    with clean_exit(extra="tensorflow"), tempfile.TemporaryDirectory() as folder:
        model = given_or_untrained(options.model, Path(folder))
        measured = [
            (measure_start(options.python, model), measure_imports(options.python))
            for _ in range(options.rounds)
        ]
    starts, imports = zip(*measured, strict=True)
    rows = [*tabulate_phases(starts, imports), *tabulate_packages(imports)]
    found = [package for package in UNNEEDED if any(package in cost for cost in imports)]
    return conclude(
        options.json,
        rows,
        [Target(f"packages imported of {', '.join(UNNEEDED)}", len(found), highest=0)],
        python=options.python,
    )


def measure_start(python: str, model: Path) -> dict[str, float]:
    """Measures milliseconds until ready, and of each phase that the service logs."""
    with start_service("--model", str(model), python=(python,)) as service:
        return {TOTAL: service.start_s * 1000, **read_phases(service.log())}


def measure_imports(python: str) -> dict[str, float]:
    """Measures milliseconds spent importing, by package.

    Raises:
        RunError: If the imports fail.
    """
    command = [python, "-X", "importtime", "-c", f"import {', '.join(MODULES)}"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RunError(f"`{' '.join(command)}` left with {done.returncode}:\n{done.stderr[-2000:]}")
    return read_imports(done.stderr)


def read_phases(log: str) -> dict[str, float]:
    """Reads milliseconds by phase, as far as the log names them."""
    return {phase: float(ms) for phase, ms in LOGGED.findall(log)}


def read_imports(report: str) -> dict[str, float]:
    """Reads milliseconds by package from what `-X importtime` wrote; the standard library is one."""
    costs: Counter[str] = Counter()
    for own_us, module in IMPORTED.findall(report):
        package = module.partition(".")[0]
        costs[STANDARD if package in sys.stdlib_module_names else package] += int(own_us)
    return {package: own_us / 1000 for package, own_us in costs.items()}


def tabulate_phases(
    starts: Sequence[Mapping[str, float]], imports: Sequence[Mapping[str, float]]
) -> list[dict[str, object]]:
    """Returns a row for the whole and for each phase, ms."""
    phases = {phase: [start[phase] for start in starts] for phase in starts[0]}
    phases[IMPORTS] = [sum(cost.values()) for cost in imports]
    known = sum(statistics.median(values) for phase, values in phases.items() if phase != TOTAL)
    rows: list[dict[str, object]] = [{"ms": phase, **spread(values)} for phase, values in phases.items()]
    rest = statistics.median(phases[TOTAL]) - known
    return [*rows, {"ms": REST, "median": rest, "min": "", "max": ""}]


def tabulate_packages(imports: Sequence[Mapping[str, float]]) -> list[dict[str, object]]:
    """Returns a row for each of the packages that take longest to import, ms."""
    rows: list[dict[str, object]] = [
        {"ms": f"  import {package}", **spread([cost.get(package, 0.0) for cost in imports])}
        for package in imports[0]
    ]
    return sorted(rows, key=lambda row: -float(str(row["median"])))[:SHOWN]


if __name__ == "__main__":
    sys.exit(main())
