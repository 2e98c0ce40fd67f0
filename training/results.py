"""What becomes of a finished run: its images and its artifact."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datasets.assignments import read_assignments
from datasets.checking import describe_problems
from datasets.reading import read
from datasets.sample import Record, Split
from datasets.splitting import SPLITS
from segdec.artifact import Manifest
from segdec.engines.tensorflow import NetworkEngine
from segdec.errors import DatasetError, SegdecError
from segdec.export import export_model
from segdec.predictor import Predictor
from training.config import DataConfig
from training.evaluation.stored import METRICS
from training.run_data import load_data
from training.run_folder import RunFolder
from training.sample_photograph import choose_sample


def export_run(
    path: Path, out: Path, *, name: str | None, version: str, overwrite: bool, with_sample: bool = True
) -> Manifest:
    """Writes the artifact of a finished run, with the newest metrics measured on it.

    Args:
        path: Run folder.
        out: Folder of the artifact.
        name: Of the model; None for that of the run.
        version: Of the model.
        overwrite: Whether to replace an artifact at `out`.
        with_sample: Whether a validation photograph travels in the artifact for its self-test; seeded
            noise does otherwise, or when the photographs cannot be read any more.

    Raises:
        SegdecError: If the run has not finished or the artifact cannot be written.
    """
    folder = RunFolder.finished(path)
    result = folder.result()
    split, metrics = _metrics(folder, result.validation)
    network = folder.network()
    predictor = Predictor(NetworkEngine(network), result.model)
    return export_model(
        network,
        out,
        config=result.model,
        name=name or folder.experiment().name,
        version=version,
        metrics=metrics,
        metrics_split=split,
        data_fingerprint=result.data_fingerprint,
        sample=_sample(predictor, folder) if with_sample else None,
        overwrite=overwrite,
    )


def _sample(predictor: Predictor, folder: RunFolder) -> NDArray[np.uint8] | None:
    """A validation photograph [H, W, C]; None when they have been moved away since the training."""
    try:
        records = run_records(folder.experiment().data, folder.splits, predictor.config.classes, "val")
        # With the default limit on pixels: each start of a service reads this photograph.
        return choose_sample(
            predictor, records, partial(read, white_level=predictor.config.input.white_level)
        )
    except (SegdecError, OSError) as error:
        print(
            f"note: The artifact's self-test gets noise instead of a validation photograph: {error}",
            file=sys.stderr,
        )
        return None


def run_records(data: DataConfig, splits: Path, classes: tuple[str, ...], split: Split) -> tuple[Record, ...]:
    """The images of a split as the run was started with it, whatever was added since."""
    dataset = load_data(data, splits)
    started_with = {line.name for line in read_assignments(splits, SPLITS, "split") if line.word == split}
    if gone := [problem for problem in dataset.problems if problem.name in started_with]:
        raise DatasetError(describe_problems(gone))
    if dataset.classes != classes:
        raise DatasetError(
            f"'{data.root}' holds the classes {', '.join(dataset.classes)}. "
            f"Expected those the model was trained on: {', '.join(classes)}."
        )
    if not dataset.of_split(split):
        raise DatasetError(
            f"The split '{split}' of '{data.root}' holds no image. Evaluate another --split, or train "
            "with a splits file that has one."
        )
    return dataset.of_split(split)


def _metrics(folder: RunFolder, validation: dict[str, float | None]) -> tuple[str, dict[str, float]]:
    """Split and single figures of the last evaluation, or of validation when there was none."""
    path = folder.path / METRICS
    figures: dict[str, Any] = {"split": "val", **validation}
    if path.exists():
        figures = json.loads(path.read_text(encoding="utf-8"))
    split = figures.pop("split")
    return split, {name: float(value) for name, value in figures.items() if isinstance(value, int | float)}
