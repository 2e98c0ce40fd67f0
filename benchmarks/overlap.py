"""What does overlapping bring? Photographs/s from files: one by one, and by `Predictor.predict_many`.

    python -m benchmarks.overlap [--model FOLDER] [--size 512x704] [--photographs 24] [--rounds 5]

An untrained `compact` network runs in this process, on grey PNG files that are made first. All ways are
measured in turn; a round is the whole folder. The shares of one by one tell which part sets the pace: no
overlapping is faster than the slowest of them.
"""

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.reporting import benchmark_parser, conclude, interleave, spread
from benchmarks.untrained_models import NATIVE, given_or_untrained, photograph
from segdec.images import read_image
from segdec.runtime.cli import clean_exit
from segdec.runtime.threads import limit_opencv_threads

if TYPE_CHECKING:
    from segdec.predictor import Predictor

PARTS = ("decode", "prepare", "infer", "interpret")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="an artifact for grey photographs")
    parser.add_argument("--size", default="512x704", help="height and width, px (default: %(default)s)")
    parser.add_argument("--photographs", type=int, default=24, help="in a round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of each way (default: %(default)s)")
    options = parser.parse_args(arguments)
    with clean_exit(extra="tensorflow"), tempfile.TemporaryDirectory() as folder:
        paths = write_photographs(Path(folder), options.size, options.photographs)
        limit_opencv_threads()
        model = given_or_untrained(options.model, Path(folder), NATIVE)
        from segdec.predictor import Predictor

        predictor = Predictor.load(model)
        seconds: list[list[float]] = []
        ways = {
            "one by one": lambda: one_by_one(predictor, paths, seconds),
            "overlapped, batch 1": lambda: overlapped(predictor, paths, 1),
            "overlapped": lambda: overlapped(predictor, paths, None),
        }
        measured = interleave(ways, options.rounds)
    return conclude(options.json, rows(measured), [], shares=shares(seconds[len(paths) :]))


def write_photographs(folder: Path, size: str, count: int) -> list[Path]:
    """Writes `count` grey PNG files of `size`, for example `512x704`."""
    height, width = map(int, size.split("x"))
    paths = [folder / f"{number}.png" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_bytes(photograph(height, width, seed=number))
    return paths


def one_by_one(predictor: "Predictor", paths: Sequence[Path], seconds: list[list[float]]) -> float:
    """Returns photographs/s if each is finished before the next is read; adds what it took to `seconds`."""
    begun = time.perf_counter()
    for path in paths:
        marks = [time.perf_counter()]
        pixels = read_image(path).pixels
        marks.append(time.perf_counter())
        prepared = predictor.prepare(pixels)
        marks.append(time.perf_counter())
        logits = predictor.infer(prepared[np.newaxis])
        marks.append(time.perf_counter())
        predictor.interpret(logits, 0, (pixels.shape[0], pixels.shape[1]))
        marks.append(time.perf_counter())
        seconds.append(np.diff(marks).tolist())
    return len(paths) / (time.perf_counter() - begun)


def overlapped(predictor: "Predictor", paths: Sequence[Path], batch_size: int | None) -> float:
    """Returns photographs/s of `Predictor.predict_many`, decoding included."""
    begun = time.perf_counter()
    images = (read_image(path).pixels for path in paths)
    with predictor.predict_many(images, batch_size=batch_size) as predictions:
        count = sum(1 for _ in predictions)
    return count / (time.perf_counter() - begun)


def rows(measured: Mapping[str, Sequence[float]]) -> list[dict[str, object]]:
    """Returns a row for each way: photographs/s, and the median ratio to one by one of the same round."""
    base = measured["one by one"]
    return [
        {"photographs/s": way, **spread(speeds)}
        | {"ratio": median(speed / other for speed, other in zip(speeds, base, strict=True))}
        for way, speeds in measured.items()
    ]


def shares(seconds: Sequence[Sequence[float]]) -> dict[str, float]:
    """Returns the share of each part in the time of one by one."""
    totals = np.sum(seconds, axis=0)
    return dict(zip(PARTS, (totals / totals.sum()).round(3).tolist(), strict=True))


if __name__ == "__main__":
    sys.exit(main())
