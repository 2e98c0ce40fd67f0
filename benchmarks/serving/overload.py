"""Does the service stay in order at twice its capacity? Every answer is 200 or 503, and none waits too long.

    python -m benchmarks.serving.overload [--seconds 120] [--factor 2] [--model FOLDER] [--json FILE]

The capacity is the rate that 16 clients reach who ask again as soon as they are answered. Then requests
come at twice that rate, evenly, whether those before are answered or not. A photograph that is accepted
has at most a full queue before it: the queue bound is (queue size + 1) / capacity. Another process asks
/livez every 50 ms all along.
"""

import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path

from benchmarks.reporting import Target, benchmark_parser, conclude
from benchmarks.serving.load import Load, closed_loop, encode_request, generators, latency_ms, open_loop
from benchmarks.serving.server_process import start_service
from benchmarks.untrained_models import given_or_untrained, photograph
from segdec.runtime.cli import clean_exit

CLIENTS = 16
LIVEZ_RATE = 20.0
LIVEZ_MS = 50.0
QUEUE_BOUNDS = 2.0
"""How many times the queue bound the slowest accepted photographs may take."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="of overload (default: %(default)s)")
    parser.add_argument(
        "--capacity-seconds", type=float, default=15.0, help="to find the capacity (default: %(default)s)"
    )
    parser.add_argument("--factor", type=float, default=2.0, help="of the capacity (default: %(default)s)")
    parser.add_argument("--queue-size", type=int, default=32, help="of the service (default: %(default)s)")
    parser.add_argument("--side", type=int, default=256, help="of the photograph, px (default: %(default)s)")
    parser.add_argument(
        "--model",
        type=Path,
        metavar="FOLDER",
        help="an artifact (default: an untrained compact network, 256 px)",
    )
    options = parser.parse_args(arguments)
    with clean_exit(extra="tensorflow"), tempfile.TemporaryDirectory() as folder, generators(2) as pool:
        model = given_or_untrained(options.model, Path(folder))
        with start_service("--model", str(model), "--queue-size", str(options.queue_size)) as service:
            request = encode_request(
                "POST", "/v1/predict", photograph(options.side, options.side), {"Content-Type": "image/png"}
            )
            capacity = find_capacity(pool, service.port, request, options.capacity_seconds)
            load, livez = press(pool, service.port, request, options.factor * capacity, options.seconds)
    bound_ms = 1000 * (options.queue_size + 1) / capacity
    return conclude(
        options.json,
        tabulate(load, livez),
        targets(load, livez, bound_ms),
        capacity_per_s=round(capacity, 2),
        offered_per_s=round(options.factor * capacity, 2),
        queue_bound_ms=round(bound_ms, 1),
        statuses=load.statuses(),
    )


def find_capacity(pool: Executor, port: int, request: bytes, seconds: float) -> float:
    """Measures requests a second, after a warm-up that is not counted."""
    pool.submit(closed_loop, port, [request], clients=CLIENTS, seconds=seconds / 5).result()
    return pool.submit(closed_loop, port, [request], clients=CLIENTS, seconds=seconds).result().rate


def press(pool: Executor, port: int, request: bytes, rate: float, seconds: float) -> tuple[Load, Load]:
    """Asks at `rate`, and /livez beside it; both loads."""
    load = pool.submit(open_loop, port, request, rate=rate, seconds=seconds)
    livez = pool.submit(open_loop, port, encode_request("GET", "/livez"), rate=LIVEZ_RATE, seconds=seconds)
    return load.result(), livez.result()


def tabulate(load: Load, livez: Load) -> list[dict[str, object]]:
    """Returns latencies by what was answered."""
    kinds = {
        "accepted": load.of(200),
        "refused": load.of(503),
        "/livez": livez.of(200),
    }
    return [
        {
            "latency": name,
            "answers": len(exchanges),
            "a second": len(exchanges) / load.duration_s,
            **{
                f"p{100 * quantile:g} ms": latency_ms(exchanges, quantile)
                for quantile in (0.5, 0.9, 0.99, 1.0)
            },
        }
        for name, exchanges in kinds.items()
    ]


def targets(load: Load, livez: Load, bound_ms: float) -> list[Target]:
    """Returns what was to be reached."""
    orderly = len(load.of(200)) + sum(exchange.retry_after for exchange in load.of(503))
    accepted_ms, livez_ms = latency_ms(load.of(200), 0.99), latency_ms(livez.of(200), 0.99)
    refused = len(load.of(503)) / len(load.exchanges)
    return [
        Target(
            "answers that are neither 200 nor 503 with Retry-After", len(load.exchanges) - orderly, highest=0
        ),
        Target("share refused: there was an overload", refused, lowest=0.2),
        Target("p99 of accepted, queue bounds", accepted_ms / bound_ms, highest=QUEUE_BOUNDS),
        Target("p99 of /livez, ms", livez_ms, highest=LIVEZ_MS),
        Target("/livez not answered with 200", len(livez.exchanges) - len(livez.of(200)), highest=0),
    ]


if __name__ == "__main__":
    sys.exit(main())
