"""Cost of the record: requests/s of /v1/inspect compared with /v1/predict on one service.

    python -m benchmarks.serving.recording [--rounds 9] [--seconds 10] [--model FOLDER] [--json FILE]
    python -m benchmarks.serving.recording --database postgresql://USER:PASSWORD@HOST/NAME

Eight clients on keep-alive connections send different photographs of the toy set with different part ids, so
that each inspection stores a picture and a row before its answer (`--record required`). `--folder` should be
on the production disk: temporary folders are often in memory. Ratios are paired by round. With `--stub` the
network takes no time.
"""

import struct
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.harness import Target, benchmark_parser, finish, interleave, paired_ratio, spread
from benchmarks.serving.load import Load, closed_loop, encode_request, generators, latency_ms
from benchmarks.serving.server_process import ServerProcess, start_service
from benchmarks.serving.stub_service import start_stub
from benchmarks.untrained_models import COMPACT, given_or_untrained
from datasets.layouts.toy import make_sample
from segdec.config import InputConfig
from segdec.errors import RunError
from segdec.images import encode_png
from segdec.runtime.cli import clean_exit

CLIENTS = 8
PHOTOGRAPHS = 64
"""Different photographs; a PNG comment makes each file unique."""
PREDICT, INSPECT = "/v1/predict", "/v1/inspect"
PATHS = {PREDICT: PREDICT, INSPECT: f"{INSPECT}?station=line1&part_id={{}}"}
MIN_RATE = 0.8
MAX_P99 = 2.0
IEND_BYTES = 12
"""Size of a PNG's last chunk."""
TOY = COMPACT.model_copy(
    update={
        "network": COMPACT.network.model_copy(update={"normalization": "instance", "mask_stride": 2}),
        "input": InputConfig(),
    }
)
"""The network of the toy set's experiment."""


@dataclass
class Measured:
    """A path and its measurements, including the uncounted first round."""

    path: str
    loads: list[Load] = field(default_factory=list)
    processor_ms: list[float] = field(default_factory=list)

    def latencies(self, quantile: float) -> list[float]:
        """Returns a quantile, 0…1, of each measured round, ms."""
        return [latency_ms(load.exchanges, quantile) for load in self.loads[1:]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(
        __doc__, model="an artifact (default: the toy set's network, untrained)", rounds=9, seconds=10.0
    )
    parser.add_argument("--database", metavar="URL", help="an empty database (default: SQLite in the folder)")
    parser.add_argument(
        "--folder", type=Path, default=Path("build"), help="parent of the record (default: %(default)s)"
    )
    parser.add_argument("--stub", action="store_true", help="replace the network by a stub")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    images = [encode_png(make_sample(number).image) for number in range(PHOTOGRAPHS)]
    with (
        clean_exit(extra="tensorflow"),
        tempfile.TemporaryDirectory(dir=options.folder) as place,
        generators() as pool,
    ):
        settings = {"record": "required", "record-folder": f"{place}/record"}
        settings |= {"record-database": options.database} if options.database else {}
        asked = {name: Measured(path) for name, path in PATHS.items()}
        with start_stub(settings) if options.stub else start(options.model, Path(place), settings) as service:
            ways = {name: partial(ask, pool, service, asked[name], images, options.seconds) for name in asked}
            measured = interleave(ways, options.rounds)
    found = ratios(measured, asked)
    return finish(options.json, tabulate(measured, asked), targets(found), ratios=found)


def start(model: Path | None, folder: Path, settings: Mapping[str, str]) -> ServerProcess:
    """Starts the service with a model."""
    flags = [word for name, value in settings.items() for word in (f"--{name}", value)]
    return start_service("--model", str(given_or_untrained(model, folder, TOY)), *flags)


def stamp(png: bytes, number: int) -> bytes:
    """Returns a PNG file with a number in a comment."""
    chunk = b"tEXt" + f"Comment\0{number:012}".encode("ascii")
    comment = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return png[:-IEND_BYTES] + comment + png[-IEND_BYTES:]


def encode_part(path: str, photographs: Sequence[bytes], first: int, number: int) -> bytes:
    """Returns the request for part `first + number`, whose photograph no other part has."""
    part = first + number
    image = stamp(photographs[part % len(photographs)], part)
    return encode_request("POST", path.format(part), image, {"Content-Type": "image/png"})


def ask(
    pool: Executor, service: ServerProcess, asked: Measured, images: Sequence[bytes], seconds: float
) -> float:
    """Measures successful answers/s once; adds the measurement to `asked`.

    Raises:
        RunError: If an answer is not 200.
    """
    first = sum(len(load.exchanges) for load in asked.loads)
    before_s = service.processor_s()
    request = partial(encode_part, asked.path, images, first)
    load = pool.submit(closed_loop, service.port, request, clients=CLIENTS, seconds=seconds).result()
    if set(load.statuses()) != {200}:
        bad = next(exchange for exchange in load.exchanges if exchange.status != 200)
        raise RunError(f"Statuses {load.statuses()}; expected 200 only. First other: {bad.body[:500]!r}")
    asked.loads.append(load)
    asked.processor_ms.append((service.processor_s() - before_s) * 1000 / len(load.exchanges))
    return load.rate


def tabulate(
    measured: Mapping[str, Sequence[float]], asked: Mapping[str, Measured]
) -> list[dict[str, object]]:
    """Returns a row for each path."""
    return [
        {
            "requests/s": name,
            **spread(rates),
            "p50 ms": spread(asked[name].latencies(0.5))["median"],
            "p99 ms": spread(asked[name].latencies(0.99))["median"],
            "processor ms each": spread(asked[name].processor_ms[1:])["median"],
        }
        for name, rates in measured.items()
    ]


def ratios(
    measured: Mapping[str, Sequence[float]], asked: Mapping[str, Measured]
) -> dict[str, dict[str, float]]:
    """Returns the ratios of inspecting to predicting, with intervals."""
    inspected, predicted = asked[INSPECT], asked[PREDICT]
    return {
        "requests/s": paired_ratio(measured[INSPECT], measured[PREDICT]),
        "p50": paired_ratio(inspected.latencies(0.5), predicted.latencies(0.5)),
        "p99": paired_ratio(inspected.latencies(0.99), predicted.latencies(0.99)),
        "processor time": paired_ratio(inspected.processor_ms[1:], predicted.processor_ms[1:]),
    }


def targets(found: Mapping[str, Mapping[str, float]]) -> list[Target]:
    """Returns the targets."""
    return [
        Target("requests/s, inspect / predict", found["requests/s"]["ratio"], lowest=MIN_RATE),
        Target("p99, inspect / predict", found["p99"]["ratio"], highest=MAX_P99),
    ]


if __name__ == "__main__":
    sys.exit(main())
