"""The command `evaluate`: metrics and report of a finished run."""

from pathlib import Path

from datasets.sample import Split
from training.config import ExperimentConfig
from training.data.reading_pool import ReadingPool
from training.data.run_data import record_reader
from training.metrics.evaluation import evaluate
from training.metrics.storage import save_evaluation
from training.reporting.gallery import read_and_predict
from training.reporting.report import write_report
from training.reporting.summary import describe
from training.reporting.tables import evaluation_table
from training.run.folder import RunFolder
from training.run.records import RunResult
from training.run.run_log import read_log


def evaluate_run(path: Path, split: Split) -> str:
    """Evaluates a finished run on a split, writes the evaluation and the report, and returns a summary.

    Raises:
        SegdecError: If the run has not finished, or its images cannot be read.
    """
    folder = RunFolder.finished(path)
    experiment, result = folder.experiment(), folder.result()
    records, predictor, read = folder.records(split), folder.predictor(), record_reader(experiment)
    pool = ReadingPool(experiment.data.decode_threads)
    evaluation = evaluate(predictor, records, read, batch_size=experiment.batch_size, pool=pool)
    save_evaluation(path, evaluation, split=split, seed=experiment.seed)
    write_report(
        path / "report.html",
        title=experiment.name,
        facts=_facts(experiment, result, split),
        evaluation=evaluation,
        show=read_and_predict(predictor, records, read),
        warnings=result.warnings,
        history=[record for record in read_log(path) if record["kind"] == "train"],
    )
    return f"{describe(evaluation)}\n\n{evaluation_table(evaluation)}\nReport: {path / 'report.html'}"


def _facts(experiment: ExperimentConfig, result: RunResult, split: str) -> dict[str, str]:
    return {
        "Network": _describe_network(experiment),
        "Data": f"{experiment.data.layout}, {experiment.data.root}",
        "Evaluated on": f"split '{split}'",
        "Thresholds": f"chosen on {result.chosen_by}; mask threshold {result.model.thresholds.mask:.3f}",
        "Seed": str(experiment.seed),
    }


def _describe_network(experiment: ExperimentConfig) -> str:
    """Returns the preset, the input size, and the mask stride if it is not 8."""
    size, stride = experiment.input, experiment.network.mask_stride
    native = size.policy == "native"
    shape = "size of the image" if native else f"{size.policy} {size.width} × {size.height} px"
    finer = f", mask stride {stride} px" if stride != 8 else ""
    return f"{experiment.network.preset}, input {shape}{finer}"
