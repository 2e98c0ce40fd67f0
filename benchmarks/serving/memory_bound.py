"""Memory of the service under large photographs and many requests, compared with its limit.

    python -m benchmarks.serving.memory_bound [--memory-mb 2500] [--engine NAME] [--model FOLDER]

A model with native input reports the largest photograph that it accepts (`GET /v1/models`). The loads are: a
grey photograph of 4096 × 4096 px; the largest accepted one; many sizes from 16 clients; 64 concurrent bodies
of 31 MB. MB are 10⁶ bytes; the peak is that of the process since its start.
"""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np

from benchmarks.harness import Target, benchmark_parser, finish
from benchmarks.serving.server_process import ServerProcess, start_service
from benchmarks.untrained_models import given_or_untrained
from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.images import encode_png
from segdec.runtime.cli import clean_exit

NATIVE = ModelConfig(
    network=NetworkConfig(preset="compact", normalization="instance", mask_stride=2),
    input=InputConfig(),
    classes=("good", "defect"),
)
"""The network of `make demo`."""

BEYOND = 4096
CLIENTS = 16
BODIES = 64
BODY_BYTES = 31 * 10**6
RELEASE_S = 25.0
"""Longer than the service takes to release memory."""

MAX_GROWTH_MB = 268.0
"""Permitted growth of the memory in use; the service does not release less."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__, model="an artifact (default: an untrained one of the demo's network)")
    parser.add_argument("--memory-mb", type=float, default=2500.0, help="memory limit (default: %(default)s)")
    parser.add_argument("--engine", default="tensorflow", help="of the service (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=4, help="rounds of sizes (default: %(default)s)")
    options = parser.parse_args(arguments)
    with clean_exit(extra="tensorflow"), tempfile.TemporaryDirectory() as place:
        model = given_or_untrained(options.model, Path(place), NATIVE)
        limit = str(int(options.memory_mb * 1e6))
        flags = ("--model", str(model), "--engine", options.engine, "--memory-bytes", limit)
        patient = ("--deadline-ms", "600000", "--engine-timeout-s", "600", "--engine-lost-s", "1200")
        with start_service(*flags, *patient) as service:
            rows, facts = press(service, options.rounds)
    return finish(options.json, rows, targets(rows, options.memory_mb), **facts)


def press(service: ServerProcess, rounds: int) -> tuple[list[dict[str, object]], dict[str, object]]:
    """Sends all loads; returns a row for each, and the reported limits."""
    rows = [_row(service, "ready", Counter())]
    with httpx.Client(base_url=f"http://127.0.0.1:{service.port}", timeout=600) as client:
        model = client.get("/v1/models").json()["models"][0]
        largest = model["max_pixels"]
        side = int(largest**0.5) // 8 * 8
        sizes = [side, *(max(side * eighths // 64 * 8, 8) for eighths in (2, 6, 3, 7, 1, 5, 4))]
        loads = {
            f"{BEYOND} × {BEYOND}": [_grey(BEYOND)],
            f"{side} × {side}, the largest": [_grey(side)],
            "of all sizes": [_grey(size) for size in sizes * rounds],
            f"{BODIES} bodies of 31 MB": [bytes(BODY_BYTES)] * BODIES,
        }
        for name, bodies in loads.items():
            rows.append(_row(service, name, _ask(client, bodies)))
    time.sleep(RELEASE_S)
    rows.append(_row(service, f"{RELEASE_S:g} s later", Counter()))
    return rows, {"max_pixels": largest, "limited_by": model["limited_by"]}


def _ask(client: httpx.Client, bodies: Sequence[bytes]) -> Counter[str]:
    """Sends all bodies concurrently; counts the outcomes."""

    def ask(body: bytes) -> str:
        try:
            headers = {"Content-Type": "image/png"}
            response = client.post("/v1/predict?mask=none", content=body, headers=headers)
        except httpx.TransportError as error:  # rejected before the body was sent
            return type(error).__name__
        return "200" if response.is_success else f"{response.status_code} {response.json()['code']}"

    clients = BODIES if len(bodies[0]) == BODY_BYTES else CLIENTS
    with ThreadPoolExecutor(clients) as threads:
        return Counter(threads.map(ask, bodies))


def _row(service: ServerProcess, load: str, answers: Counter[str]) -> dict[str, object]:
    return {
        "load": load,
        "answers": ", ".join(f"{count} × {what}" for what, count in sorted(answers.items())) or "–",
        "in use, MB": service.resident_kib() * 1024 / 1e6,
        "peak so far, MB": service.peak_mb(),
    }


def _grey(side: int) -> bytes:
    return encode_png(np.full((side, side), 120, np.uint8))


def targets(rows: Sequence[dict[str, object]], memory_mb: float) -> list[Target]:
    """Returns the targets."""
    ready, beyond, largest, *_, last = rows
    handled = beyond["answers"] in ("1 × 413 too_many_pixels_for_memory", "1 × 200")
    growth_mb = float(str(last["in use, MB"])) - float(str(ready["in use, MB"]))
    return [
        Target("peak, MB", float(str(last["peak so far, MB"])), highest=memory_mb),
        Target(f"{BEYOND} × {BEYOND} rejected or answered", float(handled), lowest=1),
        Target("the largest answered", float(largest["answers"] == "1 × 200"), lowest=1),
        Target("growth of the memory in use, MB", growth_mb, highest=MAX_GROWTH_MB),
    ]


if __name__ == "__main__":
    sys.exit(main())
