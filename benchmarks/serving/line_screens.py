"""Latency of the status of the line for many open screens, each of which asks once a second.

    python -m benchmarks.serving.line_screens --folder FOLDER [--screens 200] [--seconds 20] [--json FILE]

The folder has the record of `large_record`, or gets one with `--rows` inspections. The service has a stub
network and inspects nothing meanwhile.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from api.database.database import open_database
from api.record.initialization import DATABASE
from benchmarks.harness import Target, benchmark_parser, finish
from benchmarks.serving.generated_record import write_record
from benchmarks.serving.large_record import KEEP
from benchmarks.serving.load import encode_request, generators, open_loop
from benchmarks.serving.stub_service import start_stub
from segdec.runtime.cli import clean_exit

MAX_MS = 500.0
"""Highest latency of 99 of 100 requests: the page asks again after a second."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Creates the record if there is none, measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="of the record; an existing one is reused")
    parser.add_argument("--rows", type=int, default=100_000, help="inspections (default: %(default)s)")
    parser.add_argument("--screens", type=int, default=200, help="open pages (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=20.0, help="duration (default: %(default)s)")
    options = parser.parse_args(arguments)
    url = f"sqlite:///{options.folder / DATABASE}"
    with clean_exit():
        engine = open_database(url)
        write_record(engine, options.folder, options.rows)
        engine.dispose()
        settings = {"record": "required", "record-folder": str(options.folder), "record-free-share": "0"}
        with start_stub(settings | KEEP) as service, generators() as pool:
            request = encode_request("GET", "/v1/line")
            load_settings = {"rate": options.screens, "seconds": options.seconds}
            load = pool.submit(open_loop, service.port, request, **load_settings).result()
    took = [exchange.latency_ms for exchange in load.exchanges]
    failed = sum(exchange.status != 200 for exchange in load.exchanges)
    p50, p99 = np.percentile(took, [50, 99])
    row = {"screens": options.screens, "requests": len(took), "failed": failed, "p50 ms": p50, "p99 ms": p99}
    targets = [
        Target("99th percentile, ms", float(p99), highest=MAX_MS),
        Target("failed requests", failed, highest=0),
    ]
    return finish(options.json, [row], targets)


if __name__ == "__main__":
    sys.exit(main())
