"""Which batches are worth forming? Milliseconds a photograph, by its size and the number that go together.

    python -m benchmarks.serving.batch_sizes [--rounds 7] [--model FOLDER] [--json FILE]

An untrained `compact` network runs in this process. All combinations are measured in turn; the table shows
medians. What an engine calls `batch_pixels` comes from here.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.reporting import benchmark_parser, conclude, interleave, spread
from benchmarks.untrained_models import NATIVE, given_or_untrained
from segdec.runtime.cli import clean_exit

if TYPE_CHECKING:
    from segdec.predictor import Predictor

SIDES = (32, 64, 128, 256, 512)
BATCHES = (1, 2, 4, 8)
PIXELS = 2**18
"""Of one measurement, so that small photographs are not drowned by the clock."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="measurements of each (default: %(default)s)")
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="an artifact with native input")
    options = parser.parse_args(arguments)
    with clean_exit(extra="tensorflow"), tempfile.TemporaryDirectory() as folder:
        model = given_or_untrained(options.model, Path(folder), NATIVE)
        from segdec.predictor import Predictor

        predictor = Predictor.load(model)
        tasks = {
            name(side, batch): partial(infer, predictor, side, batch) for side in SIDES for batch in BATCHES
        }
        measured = interleave(tasks, options.rounds)
    rows: list[dict[str, object]] = [
        {"ms a photograph": f"{side} × {side} px"}
        | {f"batch of {batch}": spread(measured[name(side, batch)])["median"] for batch in BATCHES}
        for side in SIDES
    ]
    return conclude(options.json, rows, [], batch_pixels=predictor.batch_pixels)


def name(side: int, batch: int) -> str:
    """Returns what a combination is called."""
    return f"{side} × {side} px, {batch}"


def infer(predictor: "Predictor", side: int, batch: int) -> float:
    """Returns the milliseconds a photograph of `side` × `side` px takes, `batch` of them at a time."""
    images = np.random.default_rng(0).integers(
        0, 256, (batch, side, side, predictor.config.network.input_channels), np.uint8
    )
    times = max(1, PIXELS // images.size)
    begun = time.perf_counter()
    for _ in range(times):
        predictor.infer(images)
    return (time.perf_counter() - begun) * 1000 / times / batch


if __name__ == "__main__":
    sys.exit(main())
