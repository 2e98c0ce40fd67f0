"""The command `evaluate`: metrics and report of a finished run."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from datasets.sample import Split, labels_of, unlocalized
from training.config import ExperimentConfig
from training.data.reading_pool import ReadingPool
from training.data.run_data import item_reader, list_dataset
from training.metrics.evaluation import Parts, evaluate
from training.metrics.rating import Rating, TrainingFacts, rate
from training.metrics.storage import save_evaluation
from training.reporting.gallery import read_and_predict
from training.reporting.operating_points import OperatingPointTable, format_share
from training.reporting.report import write_report
from training.reporting.summary import describe, describe_rating
from training.reporting.tables import evaluation_table
from training.run.folder import RunFolder
from training.run.records import ENCODERS_FILE, UNTRAINED_DECISION, RunResult
from training.run.run_log import read_log


@dataclass(frozen=True)
class EvaluationSummary:
    """The metrics of an evaluation as text, operating points and rating of the model; as `str` all."""

    text: str
    points: OperatingPointTable
    rating: Rating

    def __str__(self) -> str:
        return "\n".join([self.text, "", *self.points.to_lines(), "", *describe_rating(self.rating)])


def evaluate_run(path: Path, split: Split, parts: Parts | None = None) -> EvaluationSummary:
    """Evaluates a finished run on a split, rates the model, and writes the evaluation and the report.

    `parts` are the images of the split with predictors that are in memory; None to load them. Raises a
    `SegdecError` if the run has not finished, or its images cannot be read.
    """
    folder = RunFolder.finished(path)
    experiment, result = folder.experiment(), folder.result()
    parts, read = parts or folder.parts(split), item_reader(experiment)
    pool = ReadingPool(experiment.data.decode_threads)
    evaluation = evaluate(parts, read, batch_size=experiment.batch_size, pool=pool)
    rating = rate(evaluation, _training_facts(folder, experiment, result))
    points = describe_points(path, result)
    save_evaluation(path, evaluation, split=split, seed=experiment.seed, rating=rating)
    write_report(
        path / "report.html",
        title=experiment.name,
        facts=_describe_run(folder, experiment, result, split),
        evaluation=evaluation,
        rating=rating,
        points=points,
        show=read_and_predict(parts, read),
        warnings=result.warnings,
        history=[record for record in read_log(path) if record["kind"] == "train"],
    )
    lines = describe(evaluation), "", evaluation_table(evaluation), "", _describe_unlike(result)
    text = "\n".join([*lines, f"Report: {path / 'report.html'}"])
    return EvaluationSummary(text, points, rating)


def describe_points(path: Path, result: RunResult) -> OperatingPointTable:
    """Returns the operating points of the run in this folder as text."""
    review = result.model.thresholds.review is not None
    return OperatingPointTable.of(result.operating_points, result.chosen_by, path, review=review)


def _describe_unlike(result: RunResult) -> str:
    """A sentence on the training parts that are refused, or for review, as unlike the others."""
    trained = result.training_photographs
    if trained is None or trained.limits is None:
        return "Any photograph is inspected, also one that is unlike the training."
    if trained.refused is None or trained.warned is None:
        return "How often usual parts are unlike the training is unknown: there are too few parts."
    return (
        f"Unlike the training, of 100 usual parts: {format_share(trained.refused)} refused, "
        f"{format_share(trained.warned)} for review; 95 % intervals from {trained.refused.parts} parts."
    )


def _training_facts(folder: RunFolder, experiment: ExperimentConfig, result: RunResult) -> TrainingFacts:
    train = list_dataset(experiment.data, folder.splits).of_split("train")
    untrained = experiment.initial_weights is not None or not experiment.network.heads
    return TrainingFacts(
        steps=None if untrained else sum(experiment.stages.steps.values()),
        defective=int(np.count_nonzero(labels_of(train))),
        unlocalized=int(np.count_nonzero(unlocalized(train))),
        decision_trained=UNTRAINED_DECISION not in result.warnings,
    )


def _describe_run(
    folder: RunFolder, experiment: ExperimentConfig, result: RunResult, split: str
) -> dict[str, str]:
    compared = folder.path / ENCODERS_FILE
    chosen = {}
    if compared.exists():
        chosen["Choice of the encoder"] = " ".join(compared.read_text(encoding="utf-8").split())
    return {
        "Network": _describe_network(experiment),
        **chosen,
        "Data": f"{experiment.data.layout}, {experiment.data.root}",
        "Evaluated on": f"split '{split}'",
        "Thresholds": f"chosen on {result.chosen_by}; mask threshold {result.model.thresholds.mask:.3f}",
        "Seed": str(experiment.seed),
        "Photographs unlike the training": _describe_unlike(result),
    }


def _describe_network(experiment: ExperimentConfig) -> str:
    """Returns the preset, the input size, and the mask stride if it is not 8."""
    size, stride = experiment.input, experiment.network.mask_stride
    native = size.policy == "native"
    shape = "size of the image" if native else f"{size.policy} {size.width} × {size.height} px"
    finer = f", mask stride {stride} px" if stride != 8 else ""
    memory = f", memory of {experiment.network.memory} patches" if experiment.network.memory else ""
    return f"{experiment.network.preset}{memory}, input {shape}{finer}"
