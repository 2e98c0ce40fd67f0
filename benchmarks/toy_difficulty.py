"""Difficulty of the toy set: average precision of a plain threshold and of a trained run.

The plain threshold scores an image by a quantile of |image − blurred image|. Blur and quantile are chosen on
the training images; the average precision is on the test images.

    python -m datasets toy data/toy
    python -m benchmarks.toy_difficulty
    python -m benchmarks.toy_difficulty --run runs/demo

Expected for that toy set (400 images, seed 0): plain threshold, test AP 0.762.
"""

import argparse
import csv
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from datasets.loading import load_dataset
from datasets.reading import read
from datasets.sample import Dataset, Split
from segdec.errors import RunError
from segdec.runtime.cli import clean_exit

SIGMAS = (0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0)
QUANTILES = (1.0, 0.9995, 0.999, 0.998, 0.995, 0.99, 0.98, 0.95, 0.9, 0.75, 0.5)

Scores = dict[tuple[float, float], list[float]]
"""(sigma, quantile) → one score for each image."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the average precisions."""
    parser = argparse.ArgumentParser(description="Average precision of a plain threshold on the toy set.")
    parser.add_argument(
        "root", type=Path, nargs="?", default=Path("data/toy"), help="the toy set (default: %(default)s)"
    )
    parser.add_argument("--run", type=Path, help="run folder with predictions.csv, written by evaluate")
    options = parser.parse_args(arguments)
    with clean_exit():
        print_baseline(load_dataset("toy", options.root))
        if options.run is not None:
            print_run(options.run / "predictions.csv")


def print_baseline(dataset: Dataset) -> None:
    """Chooses blur and quantile on the training images; prints both average precisions."""
    labels, scores = score_split(dataset, "train")
    best = max(scores, key=lambda choice: average_precision_score(labels, scores[choice]))
    at_training = average_precision_score(labels, scores[best])
    labels, scores = score_split(dataset, "test")
    at_test = average_precision_score(labels, scores[best])
    print(f"plain threshold  test AP {at_test:.3f}  ({len(labels)} images, {sum(labels)} with a defect)")
    print(f"                 sigma {best[0]:g} px, quantile {best[1]:g}, training AP {at_training:.3f}")


def score_split(dataset: Dataset, split: Split) -> tuple[list[bool], Scores]:
    """Returns true labels, and the scores of the images for each blur and quantile."""
    items = dataset.of_split(split)
    scores: Scores = {choice: [] for choice in product(SIGMAS, QUANTILES)}
    for item in items:
        image = read(item).image.mean(axis=-1, dtype=np.float32)
        for sigma in SIGMAS:
            for quantile, value in zip(QUANTILES, contrast(image, sigma), strict=True):
                scores[sigma, quantile].append(float(value))
    return [item.label > 0 for item in items], scores


def contrast(image: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    """Returns the `QUANTILES` of |image − blurred image| for one image, float32 [H, W]."""
    return np.asarray(
        np.quantile(np.abs(image - cv2.GaussianBlur(image, (0, 0), sigma)), QUANTILES), np.float32
    )


def print_run(path: Path) -> None:
    """Prints the average precision of the test scores written by `training evaluate`."""
    if not path.is_file():
        raise RunError(f"{path} does not exist. Write it with: python -m training evaluate {path.parent}")
    with path.open(newline="", encoding="utf-8") as file:
        rows = _test_rows(csv.DictReader(file), path)
    labels, scores = [row["true_label"] != "good" for row in rows], [float(row["score"]) for row in rows]
    if not any(labels):
        raise RunError(f"{path} has no test image with a defect. Expected a run on the toy set.")
    print(f"trained run      test AP {average_precision_score(labels, scores):.3f}  ({len(rows)} images)")


def _test_rows(table: "csv.DictReader[str]", path: Path) -> list[dict[str, str]]:
    missing = sorted({"split", "true_label", "score"} - set(table.fieldnames or ()))
    if missing:
        raise RunError(
            f"{path} has no column {', '.join(missing)}. Write it again: python -m training evaluate"
        )
    return [row for row in table if row["split"] == "test"]


if __name__ == "__main__":
    main()
