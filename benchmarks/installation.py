"""Installed size, run time and memory of each engine's extra.

    python -m benchmarks.installation [--rounds 3] [--json FILE]

Each engine gets an environment with only its extra, in which `segdec predict` labels one photograph with a
`compact` model. Measured is the whole process.
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
from benchmarks.harness import benchmark_parser, finish, interleave, spread
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
    # ru_maxrss would include the parent process
    print("peak", Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0], file=sys.stderr)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    options = benchmark_parser(__doc__, rounds=3).parse_args(arguments)
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
    return finish(options.json, rows, [], rounds=options.rounds)


def write_model(folder: Path) -> None:
    """Writes an untrained artifact for both engines."""
    import_tensorflow()
    from segdec.network.network import build_network

    network = build_network(COMPACT.network)
    export_network(network, COMPACT, folder, name="compact", engines=ENGINES)


def install_extra(extra: str) -> Path:
    """Creates an environment with this extra only; returns its Python.

    Raises:
        RunError: If it cannot be installed.
    """
    folder = environment(extra)
    python = folder / "bin" / "python"
    if not python.exists():
        run_command(sys.executable, "-m", "venv", str(folder))
    pip = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run_command(*pip, "-e", f".[{extra}]", "-c", "constraints.txt")
    return python


def environment(extra: str) -> Path:
    """Returns the folder of the environment with this extra."""
    return ENVIRONMENTS / f"extra-{extra}"


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
