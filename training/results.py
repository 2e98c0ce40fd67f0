"""What becomes of a finished run: its evaluation and its artifact."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datasets.layouts import load_dataset
from datasets.reading import read
from datasets.sample import Record, Sample, Split
from segdec.artifact import Manifest
from segdec.engines.tensorflow import NetworkEngine
from segdec.errors import DatasetError, SegdecError
from segdec.export import export_model
from segdec.files import write_text_atomic
from segdec.postprocessing import Prediction
from segdec.predictor import Predictor
from training.config import DataConfig, ExperimentConfig
from training.evaluation import Evaluation, evaluate, write_predictions
from training.gallery import Show
from training.report import describe, write_report
from training.run_folder import RunFolder
from training.run_log import read_log
from training.sample_photograph import choose_sample

METRICS = "metrics.json"


def evaluate_run(path: Path, split: Split) -> str:
    """Measures a finished run on a split; writes `metrics.json`, `predictions.csv` and `report.html`.

    Returns:
        A summary for the terminal.

    Raises:
        SegdecError: If the run has not finished, or its images cannot be read.
    """
    folder = RunFolder.finished(path)
    experiment, result = folder.experiment(), folder.result()
    records = _records(experiment.data, folder.splits, result.model.classes, split)
    predictor = Predictor(NetworkEngine(folder.network()), result.model)
    read_as_served = partial(read, white_level=result.model.input.white_level)
    evaluation = evaluate(predictor, records, read_as_served, batch_size=experiment.batch_size)
    write_predictions(path / "predictions.csv", evaluation.rows)
    figures = {"split": split, **evaluation.metrics.to_dict()}
    write_text_atomic(path / METRICS, json.dumps(figures, indent=2) + "\n")
    write_report(
        path / "report.html",
        title=experiment.name,
        facts=_facts(experiment, result.model.thresholds.mask, split),
        evaluation=evaluation,
        show=_show(predictor, records),
        warnings=result.warnings,
        history=[record for record in read_log(path) if record["kind"] == "train"],
    )
    return f"{_table(evaluation)}\nReport: {path / 'report.html'}"


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
        records = _records(folder.experiment().data, folder.splits, predictor.config.classes, "val")
        return choose_sample(
            predictor, records, partial(read, white_level=predictor.config.input.white_level)
        )
    except (SegdecError, OSError) as error:
        print(
            f"note: The artifact's self-test gets noise instead of a validation photograph: {error}",
            file=sys.stderr,
        )
        return None


def _records(data: DataConfig, splits: Path, classes: tuple[str, ...], split: Split) -> tuple[Record, ...]:
    """The images of a split as the run was started with it, whatever was added since."""
    dataset = load_dataset(data.layout, data.root, splits)
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


def _show(predictor: Predictor, records: tuple[Record, ...]) -> Show:
    by_name = {record.name: record for record in records}

    def show(name: str) -> tuple[Sample, Prediction]:
        sample = read(by_name[name], white_level=predictor.config.input.white_level)
        return sample, predictor.predict([sample.image])[0]

    return show


def _facts(experiment: ExperimentConfig, mask_threshold: float, split: str) -> dict[str, str]:
    size = experiment.input
    shape = f"{size.width} × {size.height} px" if size.policy == "resize" else "size of the photograph"
    return {
        "Network": f"{experiment.network.preset}, input {shape}",
        "Data": f"{experiment.data.layout}, {experiment.data.root}",
        "Measured on": f"split '{split}'",
        "Thresholds": f"chosen on the split 'val'; mask threshold {mask_threshold:.3f}",
        "Seed": str(experiment.seed),
    }


def _table(evaluation: Evaluation) -> str:
    lines = [describe(evaluation), ""]
    for name, value in evaluation.metrics.to_dict().items():
        if name != "confusion":
            shown = "–" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)
            lines.append(f"  {name:<18}{shown}")
    return "\n".join(lines)
