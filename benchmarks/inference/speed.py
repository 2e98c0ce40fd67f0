"""Seconds an image, memory peak and agreement of every engine and of its peers, for every preset.

    python -m benchmarks.inference.speed [--rounds 5] [--networks …] [--engines …] [--peers …] [--batches …]
        [--sizes …] [--run RUN] [--quick] [--json FILE]

Every engine stands beside a plain conversion of the same network, see `plain_conversion`: both by processor
time, the least of the rounds, so that other work on the machine decides nothing. The peers' network knows
batch and instance normalisation alone: beside `jim2019` and `comind2021` there are none. Beside `mobilenet`,
which stands on an encoder, PyTorch runs the published network: the ratio is to that. All weights are random:
what int8 loses with them says nothing of trained ones.

Each competitor is a process of its own with the threads that its library takes by itself. It gets photographs
as uint8 [B, H, W, 1] and answers logits; scaling to 0…1 is part of its work. All have the same weights: the
table says how far mask scores and class logits are from those of PyTorch, or of plain TensorFlow. The memory
peak is that of the process since its start, after three inferences before the rounds, one that does not
count, and one a round. A case whose competitors would not fit into the memory that is free is left out.

The share of the peak is that of the arithmetic of the network computed directly; an algorithm with fewer
multiplications can pass 100 %. The peak is the fastest float32 matrix product in the same rounds.
"""

import argparse
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.inference.arithmetic import network_flop
from benchmarks.inference.competitors import (
    EAGER,
    PEERS,
    PUBLISHED_EAGER,
    engine_name,
    inference_competitors,
    logits_file,
    plain_name,
    published_competitor,
)
from benchmarks.inference.interleaved_timing import Timing, time_interleaved
from benchmarks.inference.plain_conversion import plain_counterpart
from benchmarks.inference.workload import IMAGES, peers_know, write_images, write_workload
from benchmarks.reporting import Target, benchmark_parser, conclude, spread
from segdec.config import NetworkConfig
from segdec.encoders import SEGDECNET
from segdec.engines import ENGINES
from segdec.runtime.cli import clean_exit

Shape = tuple[int, int, int]
Floats = NDArray[np.float64]
CASES: tuple[Shape, ...] = ((1, 704, 256), (8, 704, 256), (1, 1408, 512), (8, 1408, 512))
"""Batch, height and width, px."""
SIZES = tuple(dict.fromkeys(f"{height}x{width}" for _, height, width in CASES))
AIMED: Shape = CASES[2]
"""What the targets are about."""
PUBLISHED = "seed"
"""The network that the targets against PyTorch are about, and the only one that is measured in batches."""
RECOMMENDED = "compact, instance"
PRETRAINED = "mobilenet"
"""The network whose targets are about PyTorch running the published one."""
NETWORKS = {
    PUBLISHED: NetworkConfig(preset="seed"),
    "jim2019": NetworkConfig(preset="jim2019"),
    "comind2021": NetworkConfig(preset="comind2021"),
    "compact": NetworkConfig(preset="compact"),
    RECOMMENDED: NetworkConfig(preset="compact", normalization="instance", gradient_gate=True),
    PRETRAINED: NetworkConfig(preset="mobilenet"),
}
"""All presets, and the network of `training/experiments/folder_compact.toml`."""
HELD_MAPS = 4
"""Maps of the widest layer at full resolution that a process holds at once, about."""
AS_FAST = 0.95
"""Times less processor time than a plain conversion: two runs of one graph differ by so much."""
BESIDE_PLAIN = "times less CPU time than plain"
TIMES = "times as fast as PyTorch eager"
EXACT_TIMES, REDUCED_TIMES = 3.5, 8.0
PRECISIONS = {"float32": 10.0, "int8": 20.0}
"""Of the network on an encoder, how many times as fast as the published one is with PyTorch."""
MASK_DIFFERENCE = 1e-4
EXACT_MB, INT8_MB = 1500.0, 700.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="inferences of each (default: %(default)s)")
    parser.add_argument(
        "--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS), help="(default: all)"
    )
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), help="(default: all)")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS), help="(default: all)")
    parser.add_argument("--run", type=Path, help="a finished run (default: an untrained network)")
    parser.add_argument(
        "--batches", nargs="+", type=int, default=[1, 8], help="sizes of a batch (default: %(default)s)"
    )
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES), help="(default: both)")
    parser.add_argument("--quick", action="store_true", help=f"one round, one case of '{RECOMMENDED}'")
    options = parser.parse_args(arguments)
    if options.quick:
        options.networks, options.batches, options.sizes, options.rounds = [RECOMMENDED], [1], SIZES[:1], 1
    if options.run:
        options.networks = [PUBLISHED]  # whose place the run's takes
    rows: list[dict[str, object]] = []
    versions: dict[str, str] = {}
    left_out: list[str] = []
    with clean_exit():
        for name in options.networks:
            batches = options.batches if name == PUBLISHED else [1]
            asked = [shape for shape in CASES if shape[0] in batches and size_name(shape) in options.sizes]
            left_out += measure(name, asked, options, rows, versions)
    return conclude(
        options.json,
        rows,
        targets(rows, options.engines),
        versions=versions,
        left_out=left_out,
        rounds=options.rounds,
    )


def measure(
    name: str,
    cases: Sequence[Shape],
    options: argparse.Namespace,
    rows: list[dict[str, object]],
    versions: dict[str, str],
) -> list[str]:
    """Measures the cases of a network, adds to `rows` and `versions`, and returns what did not fit."""
    plain = list(dict.fromkeys(map(plain_counterpart, options.engines)))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        network = write_workload(folder, NETWORKS[name], options.engines, plain=plain, run=options.run)
        peers = options.peers if peers_know(network) else []
        beside = EAGER in options.peers and name == PRETRAINED
        if beside:
            write_workload(folder / PUBLISHED, NETWORKS[PUBLISHED])
        fitting = fitting_cases(cases, network, len(options.engines) + len(peers) + len(plain))
        for shape in fitting:
            write_images(folder, shape)
            competitors = inference_competitors(folder, options.engines, peers, plain)
            published = published_competitor(folder / PUBLISHED, folder / IMAGES) if beside else {}
            timing = time_interleaved({**competitors, **published}, options.rounds)
            logits = {each: read_answer(folder, each) for each in competitors}
            known = network.encoder == SEGDECNET
            flop = network_flop(network, *shape[1:]) if known else math.nan
            found = tabulate(shape, timing, logits, flop)
            rows += [{"network": name, **row} for row in found]
            versions |= timing.versions
    return [f"{name}, {describe(shape)}" for shape in cases if shape not in fitting]


def tabulate(
    shape: Shape, timing: Timing, answers: Mapping[str, tuple[Floats, Floats]], flop: float
) -> list[dict[str, object]]:
    """Returns a row for each competitor of a case.

    Args:
        shape: Batch, height and width.
        timing: Of the case.
        answers: Mask scores and class logits of each competitor that runs the network.
        flop: Of the network, an image; NaN where it is not known.
    """
    known = [name for name in (EAGER, plain_name("tensorflow")) if name in answers]
    reference = [*known, *answers][0]
    eager = EAGER if EAGER in timing.seconds else PUBLISHED_EAGER
    other = (np.full(1, math.nan), np.full(1, math.nan))  # another network, which is compared with nothing
    rows: list[dict[str, object]] = []
    for name, seconds in timing.seconds.items():
        mask, classes = (
            float(np.abs(found - expected).max())
            for found, expected in zip(answers.get(name, other), answers[reference], strict=True)
        )
        row: dict[str, object] = {"case": describe(shape), "competitor": name}
        row |= {f"s an image, {key}": value / shape[0] for key, value in spread(seconds).items()}
        row |= {TIMES: timing.ratio(name, eager)}
        row |= {"CPU s an image": timing.least_cpu(name) / shape[0], BESIDE_PLAIN: beside_plain(timing, name)}
        row |= {
            "% of peak": timing.peak_share(name, flop * shape[0]),
            "memory peak, MB": timing.peak_mb[name],
        }
        rows.append({**row, "mask differs by": mask, "class logits differ by": classes})
    return rows


def beside_plain(timing: Timing, competitor: str) -> float:
    """Returns how many times the processor time of our engine its plain conversion takes; else NaN."""
    plain = {engine_name(engine): plain_name(engine) for engine in ENGINES}
    return timing.least_cpu(plain.get(competitor, "")) / timing.least_cpu(competitor)


def targets(rows: Sequence[Mapping[str, object]], engines: Sequence[str]) -> list[Target]:
    """Returns what was to be reached; what was not measured is NaN, which misses.

    Args:
        rows: Of all networks and cases.
        engines: Ours.
    """

    def figures(column: str, *precisions: str) -> list[float]:
        return aimed_figures(rows, engines, PUBLISHED, column, *precisions)

    memory, mask = "memory peak, MB", "mask differs by"
    exact, reduced = ("float32",), ("bfloat16", "int8")
    return [
        Target(f"fastest exact engine, {TIMES}", max(figures(TIMES, *exact)), lowest=EXACT_TIMES),
        Target(f"fastest reduced engine, {TIMES}", max(figures(TIMES, *reduced)), lowest=REDUCED_TIMES),
        Target(f"exact engines, {mask}", max(figures(mask, *exact)), highest=MASK_DIFFERENCE),
        Target(f"exact engines, largest {memory}", max(figures(memory, *exact)), highest=EXACT_MB),
        Target(f"int8, {memory}", max(figures(memory, "int8")), highest=INT8_MB),
        *pretrained_targets(rows, engines),
        *plain_targets(rows, engines),
    ]


def pretrained_targets(rows: Sequence[Mapping[str, object]], engines: Sequence[str]) -> list[Target]:
    """Returns what the network on an encoder was to reach, where it was measured."""
    if all(row["network"] != PRETRAINED for row in rows):
        return []
    return [
        Target(
            f"{PRETRAINED}, fastest {precision} engine, {TIMES}",
            max(aimed_figures(rows, engines, PRETRAINED, TIMES, precision)),
            lowest=times,
        )
        for precision, times in PRECISIONS.items()
    ]


def aimed_figures(
    rows: Sequence[Mapping[str, object]],
    engines: Sequence[str],
    network: str,
    column: str,
    *precisions: str,
) -> list[float]:
    """Returns a column of our engines with these precisions, of the case that is aimed at; NaN of none."""
    aimed = {
        str(row["competitor"]): row
        for row in rows
        if (row["network"], row["case"]) == (network, describe(AIMED))
    }
    names = [engine_name(engine) for engine in engines if ENGINES[engine].precision in precisions]
    return [float(str(aimed[name][column])) for name in names if name in aimed] or [math.nan]


def plain_targets(rows: Sequence[Mapping[str, object]], engines: Sequence[str]) -> list[Target]:
    """Returns for each engine how it stands beside its plain conversion where it gains the least."""
    found = []
    for engine in engines:
        own = [row for row in rows if row["competitor"] == engine_name(engine)]
        ratios = {f"{row['network']}, {row['case']}": float(str(row[BESIDE_PLAIN])) for row in own}
        if ratios:
            case = min(ratios, key=lambda name: ratios[name])
            found.append(Target(f"{engine}, {BESIDE_PLAIN}, least: {case}", ratios[case], lowest=AS_FAST))
    return found


def size_name(shape: Shape) -> str:
    """Returns the size of a case as the command line names it."""
    return f"{shape[1]}x{shape[2]}"


def describe(shape: Shape) -> str:
    """Returns a case in words."""
    batch, height, width = shape
    return f"{height} × {width}, batch {batch}"


def fitting_cases(cases: Sequence[Shape], network: NetworkConfig, competitors: int) -> list[Shape]:
    """Returns the cases whose competitors fit into the memory that the machine can give, all at once."""
    status = Path("/proc/meminfo").read_text(encoding="ascii")
    free_bytes = int(status.partition("MemAvailable:")[2].split()[0]) * 1024
    pixel_bytes = HELD_MAPS * max(network.segmentation_widths[0]) * 4  # float32
    return [shape for shape in cases if competitors * math.prod(shape) * pixel_bytes <= free_bytes]


def read_answer(folder: Path, competitor: str) -> tuple[Floats, Floats]:
    """Reads mask scores [B, H/8, W/8, 1], 0…1, and class logits [B, classes] of a competitor."""
    with np.load(logits_file(folder, competitor)) as logits:
        mask, classes = (logits[name].astype(np.float64) for name in ("mask", "classes"))
    return 1.0 / (1.0 + np.exp(-mask)), classes


if __name__ == "__main__":
    sys.exit(main())
