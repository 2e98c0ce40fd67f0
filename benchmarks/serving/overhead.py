"""Requests/s of the service compared with the in-process `Predictor`.

    python -m benchmarks.serving.overhead [--rounds 7] [--seconds 10] [--model FOLDER] [--json FILE]

Both run the same artifact. Eight clients on keep-alive connections send the raw PNG and get the mask with
the answer. In this process one thread decodes and predicts, one photograph at a time or in batches of eight,
without encoding an answer. All are measured in turn. The target compares with the faster way in this
process.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import Target, benchmark_parser, finish, interleave, spread
from benchmarks.serving.load import closed_loop, encode_request, generators
from benchmarks.serving.server_process import start_service
from benchmarks.untrained_models import DEFAULT_MODEL, given_or_untrained, photograph
from segdec.errors import RunError
from segdec.images import decode_image
from segdec.runtime.cli import clean_exit, import_tensorflow

if TYPE_CHECKING:
    from segdec.predictor import Predictor

CLIENTS = 8
MIN_RATE_SHARE = 0.9
"""Required share of the in-process rate."""
HTTP = f"service, {CLIENTS} clients"
SINGLE = "in process, one by one"
BATCHED = f"in process, batches of {CLIENTS}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__, model=DEFAULT_MODEL, rounds=7, seconds=10.0, side=256)
    options = parser.parse_args(arguments)
    image = photograph(options.side, options.side)
    with clean_exit(extra="tensorflow"), tempfile.TemporaryDirectory() as folder:
        model = given_or_untrained(options.model, Path(folder))
        measured = compare(model, image, options.rounds, options.seconds)
    rates = {name: spread(values) for name, values in measured.items()}
    rows = [{"requests/s": name, **rate} for name, rate in rates.items()]
    ratios = {name: rates[HTTP]["median"] / rates[name]["median"] for name in (SINGLE, BATCHED)}
    reached = Target("service / faster way in process", min(ratios.values()), lowest=MIN_RATE_SHARE)
    return finish(options.json, rows, [reached], ratios=ratios, side_px=options.side)


def compare(model: Path, image: bytes, rounds: int, seconds: float) -> dict[str, list[float]]:
    """Measures requests/s of each way, by round."""
    import_tensorflow()
    from segdec.predictor import Predictor

    predictor = Predictor.load(model)
    request = encode_request("POST", "/v1/predict", image, {"Content-Type": "image/png"})
    with start_service("--model", str(model)) as service, generators() as pool:

        def ask() -> float:
            load = pool.submit(
                closed_loop, service.port, [request], clients=CLIENTS, seconds=seconds
            ).result()
            if set(load.statuses()) != {200}:
                raise RunError(f"Statuses {load.statuses()}; expected 200 only.")
            return load.rate

        ways: dict[str, Callable[[], float]] = {HTTP: ask}
        ways[SINGLE] = partial(repeat, predictor, image, 1, seconds)
        ways[BATCHED] = partial(repeat, predictor, image, CLIENTS, seconds)
        return interleave(ways, rounds)


def repeat(predictor: "Predictor", image: bytes, batch: int, seconds: float) -> float:
    """Returns photographs/s, decoded and predicted `batch` at a time."""
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        predictor.predict([decode_image(image, "photograph").pixels for _ in range(batch)], batch_size=batch)
        count += batch
    return count / (time.perf_counter() - begun)


if __name__ == "__main__":
    sys.exit(main())
