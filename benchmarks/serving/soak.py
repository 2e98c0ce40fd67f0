"""Does the service grow? Many requests with photographs of many sizes, and the memory of its process.

    python -m benchmarks.serving.soak [--requests 200000] [--sizes 50] [--json FILE]

The network is tiny, takes photographs of any size and runs in TensorFlow; each request chooses one of 50
sizes of 32 to 128 px at random. Memory is what is resident (VmRSS), read between two portions of requests.
"""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path

import numpy as np

from benchmarks.reporting import Target, benchmark_parser, conclude
from benchmarks.serving.load import closed_loop, encode_request, generators
from benchmarks.serving.server_process import ServerProcess, start_service
from benchmarks.untrained_models import TINY, given_or_untrained, photograph
from segdec.errors import RunError
from segdec.runtime.cli import clean_exit

CLIENTS = 8
PORTIONS = 20
SETTLED = 2
"""Portions after which the memory should not grow any more."""
GROWTH = 0.02
SIDES = (32, 129)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--requests", type=int, default=200_000, help="in all (default: %(default)s)")
    parser.add_argument("--sizes", type=int, default=50, help="of photographs (default: %(default)s)")
    parser.add_argument(
        "--model", type=Path, metavar="FOLDER", help="an artifact with native input (default: a tiny network)"
    )
    options = parser.parse_args(arguments)
    with clean_exit(extra="tensorflow"), tempfile.TemporaryDirectory() as folder, generators() as pool:
        model = given_or_untrained(options.model, Path(folder), TINY, "tiny")
        with start_service("--model", str(model)) as service:
            rows = list(soak(pool, service, photographs(options.sizes), options.requests // PORTIONS))
    settled, last = (int(str(rows[index]["resident KiB"])) for index in (SETTLED, -1))
    growth = Target(f"growth after {rows[SETTLED]['requests']} requests", last / settled - 1, highest=GROWTH)
    return conclude(options.json, rows, [growth], sizes=options.sizes)


def photographs(count: int) -> list[bytes]:
    """Makes requests with photographs of different sizes."""
    random = np.random.default_rng(0)
    sizes: set[tuple[int, ...]] = set()
    while len(sizes) < count:
        sizes.add(tuple(int(side) for side in random.integers(*SIDES, 2)))
    return [
        encode_request("POST", "/v1/predict", photograph(*size), {"Content-Type": "image/png"})
        for size in sorted(sizes)
    ]


def soak(
    pool: Executor, service: ServerProcess, requests: Sequence[bytes], portion: int
) -> Iterator[dict[str, object]]:
    """Yields the memory before any request and after each portion; prints it too, since it takes long.

    Raises:
        RunError: If an answer is not good.
    """
    yield {"requests": 0, "resident KiB": service.resident_kib(), "requests/s": 0.0}
    for number in range(1, PORTIONS + 1):
        begun = time.perf_counter()
        load = pool.submit(
            closed_loop, service.port, requests, clients=CLIENTS, count=portion, seed=number
        ).result()
        if load.statuses() != {200: portion}:
            raise RunError(f"Statuses {load.statuses()}; expected 200 only.")
        rate = portion / (time.perf_counter() - begun)
        row: dict[str, object] = {
            "requests": number * portion,
            "resident KiB": service.resident_kib(),
            "requests/s": rate,
        }
        print(f"{row['requests']} requests: {row['resident KiB']} KiB", file=sys.stderr, flush=True)
        yield row


if __name__ == "__main__":
    sys.exit(main())
