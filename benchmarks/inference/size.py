"""What the size of the image, the batch and the features cost, for our engine and PyTorch.

    python -m benchmarks.inference.size [--rounds 5] [--engine tensorflow] [--quick] [--json FILE]

From one base, 704 × 256 px, one image, 1024 features, one of the three changes at a time.
"""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.inference.arithmetic import network_flop
from benchmarks.inference.competitors import EAGER, engine_name, inference_competitors
from benchmarks.inference.interleaved_timing import Timing, time_interleaved
from benchmarks.inference.workload import write_images, write_workload
from benchmarks.reporting import benchmark_parser, conclude, spread
from segdec.config import NetworkConfig
from segdec.engines import ENGINES
from segdec.runtime.cli import clean_exit


@dataclass(frozen=True)
class Case:
    """One size: pixels of an image, images and features."""

    height: int = 704
    width: int = 256
    batch: int = 1
    features: int = 1024

    @property
    def network(self) -> NetworkConfig:
        """The seed network at this number of features."""
        return NetworkConfig(preset="seed", feature_width=self.features)


BASE = Case()
CASES = (
    BASE,
    replace(BASE, width=512),
    replace(BASE, height=1408, width=512),
    replace(BASE, batch=2),
    replace(BASE, batch=4),
    replace(BASE, features=512),
    replace(BASE, features=256),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="inferences of each (default: %(default)s)")
    parser.add_argument("--engine", choices=ENGINES, default="tensorflow", help="ours (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="one round of the base and of 256 features")
    options = parser.parse_args(arguments)
    cases, rounds = ((BASE, CASES[-1]), 1) if options.quick else (CASES, options.rounds)
    rows: list[dict[str, object]] = []
    with clean_exit(), tempfile.TemporaryDirectory() as name:
        for case in cases:
            folder = Path(name) / str(case.features)
            if not folder.exists():
                write_workload(folder, case.network, [options.engine])
            write_images(folder, (case.batch, case.height, case.width))
            timing = time_interleaved(inference_competitors(folder, [options.engine], [EAGER]), rounds)
            rows += tabulate(case, timing)
    return conclude(options.json, rows, [], rounds=rounds, engine=engine_name(options.engine))


def tabulate(case: Case, timing: Timing) -> list[dict[str, object]]:
    """Returns a row for each competitor of a case."""
    flop = case.batch * network_flop(case.network, case.height, case.width)
    return [
        {
            **asdict(case),
            "GFLOP": flop / 1e9,
            "competitor": name,
            **{f"s, {key}": value for key, value in spread(seconds).items()},
            "% of peak": timing.peak_share(name, flop),
        }
        for name, seconds in timing.seconds.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
