"""What an engine needs to be installed: its size, its start-up and its memory, side by side.

    python -m benchmarks.installation [--rounds 3] [--json FILE]

Each engine gets an environment of its own with nothing but its extra, in which the command line labels one
photograph with a `compact` model: from the start of the process to its end.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.environments import ENVIRONMENTS, ROOT, run_command
from benchmarks.reporting import benchmark_parser, conclude, interleave, spread
from benchmarks.untrained_models import COMPACT, export_network, photograph
from segdec.runtime.cli import clean_exit, import_tensorflow

ENGINES = ("tensorflow", "openvino")
MEASURED = """
import runpy, sys
from pathlib import Path
sys.argv = sys.argv[1:]
try:
    runpy.run_module("segdec", run_name="__main__")
finally:
    # Not ru_maxrss: a process inherits that of the one that started it.
    print("peak", Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0], file=sys.stderr)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="starts of each (default: %(default)s)")
    options = parser.parse_args(arguments)
    with clean_exit(), tempfile.TemporaryDirectory() as name:
        model, image = Path(name) / "model", Path(name) / "part.png"
        write_model(model)
        image.write_bytes(photograph(256, 256))
        pythons = {engine: install_extra(engine) for engine in ENGINES}
        peaks: dict[str, float] = {}

        def start(engine: str) -> float:
            seconds, peaks[engine] = label(pythons[engine], engine, model, image)
            return seconds

        seconds = interleave({engine: partial(start, engine) for engine in ENGINES}, options.rounds)
    rows = [
        {
            "engine": engine,
            "installed, MB": size_mb(environment(engine)),
            **{f"s from start to end, {key}": value for key, value in spread(seconds[engine]).items()},
            "memory peak, MB": peaks[engine],
        }
        for engine in ENGINES
    ]
    return conclude(options.json, rows, [], rounds=options.rounds)


def write_model(folder: Path) -> None:
    """Writes an untrained artifact for both engines."""
    import_tensorflow()
    from segdec.network.network import build_network

    network = build_network(COMPACT.network)
    export_network(network, COMPACT, folder, name="compact", engines=ENGINES)


def install_extra(extra: str, group: str | None = None) -> Path:
    """Makes a new environment that has this extra, and a dependency group, alone; returns its Python.

    Raises:
        RunError: If it cannot be installed.
    """
    folder = environment(extra, group)
    python = folder / "bin" / "python"
    if not python.exists():
        run_command(sys.executable, "-m", "venv", str(folder))
    pip = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run_command(*pip, "pip>=25.1")  # the first that knows groups
    groups = ("--group", group) if group else ()
    run_command(*pip, "-e", f".[{extra}]", *groups, "-c", "constraints.txt")
    return python


def environment(extra: str, group: str | None = None) -> Path:
    """Returns where the environment with this extra, and a dependency group, lies."""
    return ENVIRONMENTS / "-".join(("extra", extra, *((group,) if group else ())))


def label(python: Path, engine: str, model: Path, image: Path) -> tuple[float, float]:
    """Labels `image`; returns seconds and the memory peak in MB."""
    words = ("segdec", "predict", str(image), "--model", str(model), "--engine", engine)
    began = time.perf_counter()
    done = subprocess.run(
        [str(python), "-c", MEASURED, *words], cwd=ROOT, check=True, capture_output=True, text=True
    )
    seconds = time.perf_counter() - began
    found = re.search(r"^peak (\d+)$", done.stderr, re.MULTILINE)
    return seconds, float(found.group(1)) / 1024 if found else float("nan")


def size_mb(folder: Path) -> float:
    """Returns the size of all files below `folder`, MB."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


if __name__ == "__main__":
    sys.exit(main())
