"""What does the service hold at most, for one camera that sends large photographs?

    python -m benchmarks.serving.memory [--size 1408x512] [--photographs 20] [--json FILE]

The full network (preset `seed`, untrained) runs in an environment that only serves, as the image has it:
Keras imports scikit-learn and matplotlib where it finds them. One client sends one photograph after another.
The peak is the most that the process ever had in use (`VmHWM`), libraries included; MB are 10⁶ bytes.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path

import numpy as np

from benchmarks.installation import install_extra
from benchmarks.reporting import Target, benchmark_parser, conclude
from benchmarks.serving.load import closed_loop, encode_request, generators
from benchmarks.serving.server_process import start_service
from benchmarks.untrained_models import export_untrained, photograph
from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.engines import ENGINES
from segdec.errors import RunError
from segdec.runtime.cli import clean_exit

SEED = ModelConfig(network=NetworkConfig(preset="seed"), input=InputConfig(), classes=("good", "defect"))
TARGETS_MB = {"tensorflow": 1500.0, "openvino": 1500.0, "openvino-int8": 700.0}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--size", default="1408x512", help="height and width, px (default: %(default)s)")
    parser.add_argument("--photographs", type=int, default=20, help="sent (default: %(default)s)")
    options = parser.parse_args(arguments)
    height, width = map(int, options.size.split("x"))
    with clean_exit(group="quantize"), tempfile.TemporaryDirectory() as name, generators() as pool:
        model = Path(name) / "seed"
        grey = np.random.default_rng(0).integers(0, 256, (4, 256, 256, 1), dtype=np.uint8)
        export_untrained(SEED, model, name="seed", engines=list(TARGETS_MB), calibration=list(grey))
        image = photograph(height, width)
        peaks = {engine: measure(pool, model, engine, image, options.photographs) for engine in TARGETS_MB}
    return conclude(options.json, tabulate(peaks), targets(peaks))


def measure(pool: Executor, model: Path, engine: str, image: bytes, count: int) -> tuple[float, float]:
    """Measures the peak in MB when the service is ready, and after `count` photographs.

    Raises:
        RunError: If one of them is not answered.
    """
    python = install_extra(ENGINES[engine].package, "serve")
    flags = ("--model", str(model), "--engine", engine)
    with start_service(*flags, python=[str(python)]) as service:
        ready_mb = service.peak_mb()
        request = encode_request("POST", "/v1/predict", image, {"Content-Type": "image/png"})
        load = pool.submit(closed_loop, service.port, [request], clients=1, count=count).result()
        if load.statuses() != {200: count}:
            raise RunError(
                f"{engine} answered {load.statuses()}. Expected 200 for each of {count} photographs."
            )
        return ready_mb, service.peak_mb()


def tabulate(peaks: Mapping[str, tuple[float, float]]) -> list[dict[str, object]]:
    """Returns a row for each engine."""
    return [
        {"engine": engine, "peak when ready, MB": ready, "peak in the end, MB": end}
        for engine, (ready, end) in peaks.items()
    ]


def targets(peaks: Mapping[str, tuple[float, float]]) -> list[Target]:
    """Returns what was to be reached."""
    return [
        Target(f"{engine}: peak, MB", end, highest=TARGETS_MB[engine]) for engine, (_, end) in peaks.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
