"""CPU time that a memory of good surface and the pooled score add beside three heads, for every engine.

    python -m benchmarks.inference.memory_cost [--rounds 30] [--encoder mobilenet] [--engines …]
        [--sizes 256x256 640x256] [--batches 1 8] [--json FILE]

Both networks have random weights and are measured in turn in one process, per photograph. Besides minima and
medians, the table has the median ratio of the rounds.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Target, benchmark_parser, finish, interleave
from benchmarks.inference.workload import CALIBRATION, build_untrained, photographs
from segdec.config import NetworkConfig
from segdec.encoders import ENCODERS
from segdec.engines import ENGINES, Engine
from segdec.runtime.cli import clean_exit, import_tensorflow

HEADS, PATCHES = 3, 500
"""As `fit` chooses them."""
WITH, WITHOUT = "memory and pooled score", "heads only"
MINIMA, MEDIAN = "ratio of minima", "median ratio"
MAX_RATIO = 1.2
"""Maximum CPU time with both, relative to that without: the lower of both ratios, as other work on the
machine increases each of them."""

Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__, rounds=30)
    parser.add_argument("--encoder", choices=ENCODERS, default="mobilenet", help="(default: mobilenet)")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), help="(default: all)")
    parser.add_argument("--sizes", nargs="+", default=["256x256", "640x256"], help="height and width, px")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8], help="batch sizes (default: 1 8)")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    with clean_exit(group="train"), tempfile.TemporaryDirectory() as place:
        import_tensorflow()
        networks = build_networks(options.encoder)
        for engine in options.engines:
            rows += measure_engine(engine, networks, Path(place) / engine, options)
    return finish(options.json, rows, targets(rows), rounds=options.rounds)


def build_networks(encoder: str) -> dict[str, Any]:
    """Returns the networks without and with a memory and a pooled score."""
    fields: dict[str, Any] = {"encoder": encoder, "heads": HEADS, "standardize_features": True}
    configs = {
        name: NetworkConfig(preset="mobilenet", memory=memory, pooled_score=memory > 0, **fields)
        for name, memory in {WITHOUT: 0, WITH: PATCHES}.items()
    }
    networks = {name: build_untrained(config) for name, config in configs.items()}
    random = np.random.default_rng(0)
    added = networks[WITH].memory, networks[WITH].pooled_score
    for weight in (weight for part in added for weight in part.weights):  # engines skip the addition of zeros
        weight.assign(random.uniform(0.5, 1.5, weight.shape))
    return networks


def measure_engine(
    engine: str, networks: Mapping[str, Any], folder: Path, options: argparse.Namespace
) -> list[Row]:
    """Returns a row for each size and batch."""
    from segdec.export.model_export import write_engine

    for name, network in networks.items():
        write_engine(engine, network, folder / name, list(photographs(*CALIBRATION)))
    rows: list[Row] = []
    for size in options.sizes:
        height, width = map(int, size.split("x"))
        loaded = {name: ENGINES[engine].load(folder / name, size=(height, width)) for name in networks}
        for batch in options.batches:
            case = {"engine": engine, "case": f"{height} × {width}, batch {batch}"}
            rows.append(case | compare(loaded, photographs(batch, height, width), options.rounds))
    return rows


def compare(engines: Mapping[str, Engine], images: NDArray[np.uint8], rounds: int) -> Row:
    """Measures engines by name on images [B, H, W, 1] in turn; returns CPU times per photograph, ms."""

    def cpu_ms(engine: Engine) -> float:
        began = time.process_time()
        engine.infer(images)
        return 1e3 * (time.process_time() - began) / len(images)

    found = interleave({name: partial(cpu_ms, engine) for name, engine in engines.items()}, rounds)
    row: Row = {f"{name}, minimum": min(values) for name, values in found.items()}
    row |= {f"{name}, median": statistics.median(values) for name, values in found.items()}
    pairs = zip(found[WITH], found[WITHOUT], strict=True)
    row[MINIMA] = min(found[WITH]) / min(found[WITHOUT])
    return row | {MEDIAN: statistics.median(one / other for one, other in pairs)}


def targets(rows: Sequence[Row]) -> list[Target]:
    """Returns the target of each engine, for its most expensive case."""
    ratios: dict[str, list[float]] = {}
    for row in rows:
        ratios.setdefault(row["engine"], []).append(min(row[MINIMA], row[MEDIAN]))
    return [Target(f"{engine}, ratio", max(found), highest=MAX_RATIO) for engine, found in ratios.items()]


if __name__ == "__main__":
    sys.exit(main())
