"""CPU time, wall time and memory of every engine, of its plain conversion and of PyTorch, for every preset.

    python -m benchmarks.inference.speed [--rounds 5] [--networks …] [--engines …] [--peers …] [--batches …]
        [--sizes …] [--run RUN] [--quick] [--json FILE]

Each competitor is a process with the default threads of its library. It gets photographs as uint8 [B, H, W,
1] and returns logits; scaling to 0…1 is part of its work. All have the same weights, random unless `--run`
names a finished run. Engines and plain conversions are compared by CPU time, the minimum of the rounds,
which other work on the machine hardly affects. PyTorch takes part if `peers.torch_network` can build the
network.
"""

import argparse
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from benchmarks.environments import peer_python
from benchmarks.harness import Target, benchmark_parser, finish, interleave, spread
from benchmarks.inference.competitor import Competitor
from benchmarks.inference.plain_conversion import plain_counterpart
from benchmarks.inference.workload import IMAGES, peers_support, photographs, write_workload
from segdec.config import NetworkConfig
from segdec.engines import ENGINES
from segdec.runtime.cli import clean_exit

Shape = tuple[int, int, int]
Row = Mapping[str, object]
CASES: tuple[Shape, ...] = ((1, 704, 256), (8, 704, 256), (1, 1408, 512))
"""Batch, height and width, px."""
SIZES = tuple(dict.fromkeys(f"{height}x{width}" for _, height, width in CASES))
TARGET_CASE = CASES[2]
PUBLISHED = "seed"
"""The network of the targets, and the only one that is measured in batches."""
RECOMMENDED = "compact, instance"
NETWORKS = {
    PUBLISHED: NetworkConfig(preset="seed"),
    "jim2019": NetworkConfig(preset="jim2019"),
    "comind2021": NetworkConfig(preset="comind2021"),
    "compact": NetworkConfig(preset="compact"),
    RECOMMENDED: NetworkConfig(preset="compact", normalization="instance", gradient_gate=True),
    "mobilenet": NetworkConfig(preset="mobilenet"),
}
"""All presets, and the network of `training/experiments/folder_compact.toml`."""
EAGER = "PyTorch eager"
PEERS = {EAGER: "torch_inference"}
"""Module of each peer."""
REQUIREMENTS = Path(__file__).parent / "peers" / "inference.txt"
MIN_GAIN = 0.95
"""Minimum CPU time of a plain conversion, relative to ours; two runs of one graph differ by 5 %."""
CPU, GAIN, TIMES, DIFFERENCE = "CPU s", "plain CPU / ours", "times PyTorch", "mask differs by"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__, rounds=5)
    parser.add_argument(
        "--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS), help="(default: all)"
    )
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), help="(default: all)")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS), help="(default: all)")
    parser.add_argument("--run", type=Path, help="a finished run (default: untrained networks)")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8], help="batch sizes (default: 1 8)")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES), help="(default: all)")
    parser.add_argument("--quick", action="store_true", help=f"one round, one case of '{RECOMMENDED}'")
    options = parser.parse_args(arguments)
    if options.quick:
        options.networks, options.batches, options.sizes, options.rounds = [RECOMMENDED], [1], SIZES[:1], 1
    if options.run:
        options.networks = [PUBLISHED]  # replaced by the network of the run
    rows: list[Row] = []
    with clean_exit():
        for name in options.networks:
            rows += measure_network(name, options)
    return finish(options.json, rows, targets(rows, options.engines), rounds=options.rounds)


def measure_network(name: str, options: argparse.Namespace) -> list[Row]:
    """Measures all requested cases of a network."""
    plain = list(dict.fromkeys(map(plain_counterpart, options.engines)))
    batches = options.batches if name == PUBLISHED else [1]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        network = write_workload(folder, NETWORKS[name], options.engines, plain, options.run)
        peers = options.peers if peers_support(network) else []
        for shape in CASES:
            if shape[0] in batches and f"{shape[1]}x{shape[2]}" in options.sizes:
                np.save(folder / IMAGES, photographs(*shape))
                competitors = make_competitors(folder, options.engines, peers, plain)
                measured = measure_case(folder, shape, competitors, options.rounds)
                rows += [{"network": name, **row} for row in measured]
    return rows


def make_competitors(
    folder: Path, engines: Sequence[str], peers: Sequence[str], plain: Sequence[str]
) -> dict[str, Competitor]:
    """Returns the competitors by name."""
    python = (sys.executable, "-m")
    commands = {
        f"segdec {engine}": (*python, "benchmarks.inference.artifact_inference", str(folder), engine)
        for engine in engines
    }
    for peer in peers:
        module = f"benchmarks.inference.peers.{PEERS[peer]}"
        commands[peer] = (peer_python(REQUIREMENTS), "-m", module, str(folder), peer)
    for engine in plain:
        commands[f"plain {engine}"] = (*python, "benchmarks.inference.plain_conversion", str(folder), engine)
    return {
        name: Competitor([*command, str(folder / IMAGES), str(logits_file(folder, name))])
        for name, command in commands.items()
    }


def measure_case(folder: Path, shape: Shape, competitors: Mapping[str, Competitor], rounds: int) -> list[Row]:
    """Measures the competitors in turn; returns a row for each, times per image."""
    with ExitStack() as stack:
        for competitor in competitors.values():
            stack.enter_context(competitor)
        seconds = interleave({name: each.measure for name, each in competitors.items()}, rounds)
    cpu = {
        name: min(answer["cpu_seconds"] for answer in each.answers[1:]) for name, each in competitors.items()
    }
    reference = read_logits(folder, next(name for name in (EAGER, "plain tensorflow", *cpu) if name in cpu))
    rows: list[Row] = []
    for name, each in competitors.items():
        differences = [
            float(np.abs(ours - other).max())
            for ours, other in zip(read_logits(folder, name), reference, strict=True)
        ]
        baseline = f"plain {plain_counterpart(name.removeprefix('segdec '))}" if "segdec" in name else ""
        eager = spread(seconds[EAGER])["median"] if EAGER in seconds else math.nan
        row: dict[str, object] = {"case": describe(shape), "competitor": name}
        row |= {f"s, {key}": value / shape[0] for key, value in spread(seconds[name]).items()}
        row |= {TIMES: eager / spread(seconds[name])["median"], CPU: cpu[name] / shape[0]}
        row |= {GAIN: cpu.get(baseline, math.nan) / cpu[name], "peak MB": each.answers[-1]["peak_mb"]}
        row |= {DIFFERENCE: differences[0], "logits differ by": differences[1]}
        rows.append({**row, "version": each.ready["version"]})
    return rows


def targets(rows: Sequence[Row], engines: Sequence[str]) -> list[Target]:
    """Returns the targets of the published network, NaN if not measured, and of each engine."""

    def figures(column: str, *precisions: str) -> list[float]:
        names = [f"segdec {engine}" for engine in engines if ENGINES[engine].precision in precisions]
        case = (PUBLISHED, describe(TARGET_CASE))
        found = [row for row in rows if (row["network"], row["case"]) == case and row["competitor"] in names]
        return [float(str(row[column])) for row in found] or [math.nan]

    found = [
        Target(f"fastest exact engine, {TIMES}", max(figures(TIMES, "float32")), lowest=3.5),
        Target(f"fastest reduced engine, {TIMES}", max(figures(TIMES, "bfloat16", "int8")), lowest=8.0),
        Target(f"exact engines, {DIFFERENCE}", max(figures(DIFFERENCE, "float32")), highest=1e-4),
    ]
    for engine in engines:
        gains = [float(str(row[GAIN])) for row in rows if row["competitor"] == f"segdec {engine}"]
        if gains:
            found.append(Target(f"{engine}, {GAIN}, minimum", min(gains), lowest=MIN_GAIN))
    return found


def describe(shape: Shape) -> str:
    """Returns a case as text."""
    batch, height, width = shape
    return f"{height} × {width}, batch {batch}"


def logits_file(folder: Path, competitor: str) -> Path:
    """Returns the file of a competitor's logits."""
    return folder / f"logits of {competitor}.npz"


def read_logits(folder: Path, competitor: str) -> tuple[np.ndarray, np.ndarray]:
    """Reads mask scores [B, H/s, W/s, 1], 0…1, and class logits [B, classes] of a competitor."""
    with np.load(logits_file(folder, competitor)) as logits:
        mask, classes = (logits[name].astype(np.float64) for name in ("mask", "classes"))
    return 1.0 / (1.0 + np.exp(-mask)), classes


if __name__ == "__main__":
    sys.exit(main())
