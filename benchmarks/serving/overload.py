"""Behaviour of the service at twice its capacity: every answer is 200 or 503, with bounded latency.

    python -m benchmarks.serving.overload [--seconds 120] [--factor 2] [--model FOLDER] [--json FILE]

The capacity is the rate of 16 clients in a closed loop. Then requests arrive evenly at twice that rate. An
accepted photograph has at most a full queue before it: the queue bound is (queue size + 1) / capacity.
Another process requests /livez every 50 ms.
"""

import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path

from benchmarks.harness import Target, benchmark_parser, finish
from benchmarks.serving.load import Load, closed_loop, encode_request, generators, latency_ms, open_loop
from benchmarks.serving.server_process import start_service
from benchmarks.untrained_models import DEFAULT_MODEL, given_or_untrained, photograph
from segdec.runtime.cli import clean_exit

CLIENTS = 16
LIVEZ_RATE = 20.0
LIVEZ_MS = 50.0
QUEUE_BOUNDS = 2.0
"""Maximum latency of accepted photographs, in queue bounds."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__, model=DEFAULT_MODEL, seconds=120.0, side=256)
    parser.add_argument(
        "--capacity-seconds", type=float, default=15.0, help="to find the capacity (default: %(default)s)"
    )
    parser.add_argument("--factor", type=float, default=2.0, help="of the capacity (default: %(default)s)")
    parser.add_argument("--queue-size", type=int, default=32, help="of the service (default: %(default)s)")
    options = parser.parse_args(arguments)
    with clean_exit(extra="tensorflow"), tempfile.TemporaryDirectory() as folder, generators(2) as pool:
        model = given_or_untrained(options.model, Path(folder))
        with start_service("--model", str(model), "--queue-size", str(options.queue_size)) as service:
            image = photograph(options.side, options.side)
            request = encode_request("POST", "/v1/predict", image, {"Content-Type": "image/png"})
            capacity = find_capacity(pool, service.port, request, options.capacity_seconds)
            load, livez = press(pool, service.port, request, options.factor * capacity, options.seconds)
    bound_ms = 1000 * (options.queue_size + 1) / capacity
    return finish(
        options.json,
        tabulate(load, livez),
        targets(load, livez, bound_ms),
        capacity_per_s=round(capacity, 2),
        offered_per_s=round(options.factor * capacity, 2),
        queue_bound_ms=round(bound_ms, 1),
        statuses=load.statuses(),
    )


def find_capacity(pool: Executor, port: int, request: bytes, seconds: float) -> float:
    """Measures requests/s after a warm-up."""
    pool.submit(closed_loop, port, [request], clients=CLIENTS, seconds=seconds / 5).result()
    return pool.submit(closed_loop, port, [request], clients=CLIENTS, seconds=seconds).result().rate


def press(pool: Executor, port: int, request: bytes, rate: float, seconds: float) -> tuple[Load, Load]:
    """Sends requests at `rate`, and to /livez; returns both loads."""
    load = pool.submit(open_loop, port, request, rate=rate, seconds=seconds)
    livez = pool.submit(open_loop, port, encode_request("GET", "/livez"), rate=LIVEZ_RATE, seconds=seconds)
    return load.result(), livez.result()


def tabulate(load: Load, livez: Load) -> list[dict[str, object]]:
    """Returns latencies by status."""
    kinds = {"accepted": load.of(200), "rejected": load.of(503), "/livez": livez.of(200)}
    rows = []
    for name, exchanges in kinds.items():
        row = {"latency": name, "answers": len(exchanges), "a second": len(exchanges) / load.duration_s}
        quantiles = {f"p{100 * one:g} ms": latency_ms(exchanges, one) for one in (0.5, 0.9, 0.99, 1.0)}
        rows.append({**row, **quantiles})
    return rows


def targets(load: Load, livez: Load, bound_ms: float) -> list[Target]:
    """Returns the targets."""
    orderly = len(load.of(200)) + sum(exchange.retry_after for exchange in load.of(503))
    accepted_ms, livez_ms = latency_ms(load.of(200), 0.99), latency_ms(livez.of(200), 0.99)
    refused = len(load.of(503)) / len(load.exchanges)
    return [
        Target("answers other than 200 and 503 with Retry-After", len(load.exchanges) - orderly, highest=0),
        Target("share rejected: the service was overloaded", refused, lowest=0.2),
        Target("p99 of accepted, queue bounds", accepted_ms / bound_ms, highest=QUEUE_BOUNDS),
        Target("p99 of /livez, ms", livez_ms, highest=LIVEZ_MS),
        Target("/livez not answered with 200", len(livez.exchanges) - len(livez.of(200)), highest=0),
    ]


if __name__ == "__main__":
    sys.exit(main())
