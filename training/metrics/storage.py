"""Files of an evaluation in the run folder: enough to join and compare runs without their images."""

import csv
import hashlib
import io
import json
import zlib
from collections.abc import Collection, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from segdec.artifact import ModelRating
from segdec.errors import RunError
from segdec.runtime.files import write_bytes_atomic, write_text_atomic
from training.metrics.evaluation import Evaluation
from training.metrics.photograph_results import PhotographResult, read_predictions, write_predictions
from training.metrics.pixel_histogram import PixelHistogram
from training.metrics.rating import Rating
from training.metrics.regions import Overlap

METRICS_FILE = "metrics.json"
PREDICTIONS_FILE = "predictions.csv"
PIXEL_SCORES_FILE = "pixel_scores.npz"

OVERLAP_COLUMNS = 1 + len(fields(Overlap))
"""Columns of the stored overlaps: the place of the result, then the fields of `Overlap`."""

READ_ERRORS = (OSError, EOFError, ValueError, LookupError, TypeError, csv.Error, BadZipFile, zlib.error)
"""Exceptions that a damaged file may cause."""


@dataclass(frozen=True)
class EvaluatedRun:
    """The last evaluation of a run; see `Evaluation`."""

    path: Path
    seed: int | None
    split: str
    classes: tuple[str, ...]
    results: tuple[PhotographResult, ...]
    mask_scores: PixelHistogram
    defect_rate: float | None = None

    def subset(self, names: Collection[str]) -> "EvaluatedRun":
        """Returns the evaluation of these images; the histogram of mask scores stays that of all images."""
        return replace(self, results=tuple(result for result in self.results if result.name in names))

    def results_by_name(self) -> dict[str, PhotographResult]:
        """Returns the results by image name."""
        return {result.name: result for result in self.results}


def save_evaluation(
    folder: Path, evaluation: Evaluation, *, split: str, seed: int | None, rating: Rating | None = None
) -> None:
    """Writes `predictions.csv`, `pixel_scores.npz` and `metrics.json`, each atomically.
    Raises an `OSError` if the folder is missing, full or not writable.
    """
    write_predictions(folder / PREDICTIONS_FILE, evaluation.results)
    placed = list(enumerate(evaluation.results))
    overlaps = [(place, *astuple(overlap)) for place, result in placed for overlap in result.overlaps]
    alarms = [(place, number) for place, result in placed for number in result.false_regions]
    arrays = {
        **evaluation.mask_scores.to_arrays(),
        "overlaps": np.array(overlaps, np.int64).reshape(-1, OVERLAP_COLUMNS),
        "false_regions": np.array(alarms, np.int64).reshape(-1, 2),
        "predictions_sha256": np.array(_digest(folder / PREDICTIONS_FILE)),
    }
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **arrays)
    write_bytes_atomic(folder / PIXEL_SCORES_FILE, packed.getvalue())
    run = {"seed": seed, "classes": list(evaluation.classes), "defect_rate": evaluation.defect_rate}
    rated = None if rating is None else asdict(rating)
    metrics = {"split": split, "rating": rated, "run": run, **evaluation.metrics.to_dict()}
    write_text_atomic(folder / METRICS_FILE, json.dumps(metrics, indent=2) + "\n")


def read_rating(folder: Path) -> ModelRating | None:
    """Returns the rating of the model in the last evaluation of a run; None without one."""
    path = folder / METRICS_FILE
    rating = json.loads(path.read_text(encoding="utf-8")).get("rating") if path.exists() else None
    if rating is None:
        return None
    return ModelRating.model_validate({name: rating[name] for name in ModelRating.model_fields})


def load_evaluation(folder: Path) -> EvaluatedRun:
    """Reads what `save_evaluation` wrote.
    Raises a `RunError` if the folder is not a run, it was not evaluated, or its files are damaged or belong
    to different evaluations.
    """
    if not (folder / "config.toml").exists():
        raise RunError(f"'{folder}' is not a run folder: it has no config.toml. Give a run folder.")
    again = f"Evaluate it with: python -m training evaluate {folder}"
    for name in (METRICS_FILE, PREDICTIONS_FILE, PIXEL_SCORES_FILE):
        if not (folder / name).exists():
            raise RunError(f"The run '{folder}' has not been evaluated: it has no {name}. {again}")
    try:
        return _load(folder)
    except READ_ERRORS as error:
        reason = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else error
        raise RunError(f"The evaluation of '{folder}' cannot be read: {reason}. {again}") from error


def _load(folder: Path) -> EvaluatedRun:
    metrics: dict[str, Any] = json.loads((folder / METRICS_FILE).read_text(encoding="utf-8"))
    classes = tuple(str(name) for name in metrics["run"]["classes"])
    packed = io.BytesIO((folder / PIXEL_SCORES_FILE).read_bytes())  # NumPy would leave a damaged file open
    with np.load(packed, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    if str(arrays["predictions_sha256"]) != _digest(folder / PREDICTIONS_FILE):
        raise ValueError(
            f"{PREDICTIONS_FILE} and {PIXEL_SCORES_FILE} belong to different evaluations, or were edited"
        )
    results = read_predictions(folder / PREDICTIONS_FILE, classes)
    rate = metrics["run"]["defect_rate"]
    return EvaluatedRun(
        path=folder,
        seed=metrics["run"]["seed"],
        split=str(metrics["split"]),
        classes=classes,
        results=_with_regions(results, arrays["overlaps"], arrays["false_regions"]),
        mask_scores=PixelHistogram.from_arrays(arrays),
        defect_rate=None if rate is None else float(rate),
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _with_regions(
    results: Sequence[PhotographResult], listed: NDArray[np.int64], alarms: NDArray[np.int64]
) -> tuple[PhotographResult, ...]:
    if listed.shape[1:] != (OVERLAP_COLUMNS,):
        raise ValueError(f"its overlaps have the shape {listed.shape}; expected {OVERLAP_COLUMNS} columns")
    overlaps: list[list[Overlap]] = [[] for _ in results]
    for place, *counts in listed.tolist():
        overlaps[place].append(Overlap(*counts))
    false: list[list[int]] = [[] for _ in results]
    for place, number in alarms.tolist():
        false[place].append(number)
    return tuple(
        replace(result, overlaps=tuple(own), false_regions=tuple(wrong))
        for result, own, wrong in zip(results, overlaps, false, strict=True)
    )
