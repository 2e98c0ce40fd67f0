"""Comparison of the new network with its parent, on images that neither was trained on."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from datasets.splitting import SPLIT_WORDS, read_split_lines
from segdec.runtime.counts import count_of
from segdec.runtime.files import atomic_folder
from training.data.reading_pool import ReadingPool
from training.data.run_data import item_reader
from training.experiment_file import save_experiment
from training.metrics.comparison import MetricDifference, RunComparison, Verdict, compare_evaluations
from training.metrics.evaluation import Parts, evaluate
from training.metrics.storage import EvaluatedRun, load_evaluation, save_evaluation
from training.reporting.tables import format_number
from training.run.folder import RunFolder, parts_by_fold

PARENT = "parent"
"""Folder of a run with the evaluation of its parent on the test images of the run."""

SHOWN_METRICS = {
    "false_negative_rate": "missed",
    "false_positive_rate": "false alarms",
    "average_precision": "AP",
    "pixel_f1": "pixel F1",
}


def evaluate_parent(parent: RunFolder, run: RunFolder) -> Path:
    """Evaluates the parent on the compared images of a run; returns the folder of the evaluation.

    With folds, each image is scored by the parent's head of its fold, as by the run's.

    Raises:
        SegdecError: If an image cannot be read.
        OSError: If the folder cannot be written.
    """
    experiment, split = run.experiment(), parent.compared_split
    pool, read = ReadingPool(experiment.data.decode_threads), item_reader(experiment)
    parts: Parts = [(parent.predictor(), run.items(split))]
    if split == "train":
        parts = parts_by_fold(parent.network(), run.items(split), parent.result().model)
    evaluation = evaluate(parts, read, batch_size=experiment.batch_size, pool=pool)
    with atomic_folder(run.path / PARENT, overwrite=True) as folder:
        (folder / "config.toml").write_text(save_experiment(parent.experiment()), encoding="utf-8")
        save_evaluation(folder, evaluation, split=split, seed=experiment.seed)
    return run.path / PARENT


def compare_with_parent(parent: RunFolder, run: RunFolder) -> tuple[dict[str, RunComparison], Verdict]:
    """Compares an evaluated run with its parent, on the parent's compared images and on the new ones.

    Returns the comparisons by name of the set, and the common verdict. Raises a `RunError` if one of them was
    not evaluated.
    """
    old, new = load_evaluation(run.path / PARENT), load_evaluation(run.path)
    split = parent.compared_split
    tested = {line.name for line in read_split_lines(parent.splits) if SPLIT_WORDS[line.word][0] == split}
    held = {result.name for result in new.results} - tested
    comparisons = {
        f"the former {split} photographs": _compare(old, new, tested),
        f"the new {split} photographs": _compare(old, new, held),
    }
    by_set = {what: comparison for what, comparison in comparisons.items() if comparison is not None}
    return by_set, combine_verdicts([each.verdict for each in by_set.values()])


def _compare(old: EvaluatedRun, new: EvaluatedRun, names: Collection[str]) -> RunComparison | None:
    one, other = old.subset(names), new.subset(names)
    return compare_evaluations(one, other) if one.results and other.results else None


def combine_verdicts(verdicts: Sequence[Verdict]) -> Verdict:
    """Returns `worse` if any verdict is, otherwise `better` if any is."""
    if "worse" in verdicts:
        return "worse"
    return "better" if "better" in verdicts else "not worse"


def describe_comparison(by_set: Mapping[str, RunComparison]) -> Iterator[str]:
    """Yields a sentence for each set: metrics of both networks, intervals of their differences, verdict."""
    for what, each in by_set.items():
        metrics = "; ".join(
            f"{name} {_describe_difference(each.differences[metric])}"
            for metric, name in SHOWN_METRICS.items()
            if each.differences[metric].value is not None
        )
        first, second = len(each.first_right), len(each.second_right)
        right = f"correct only in the parent {first}, only in the new one {second}"
        number = count_of(each.photographs, "photograph")
        why = " ".join(each.conclusion()).replace(f"'{each.first}'", "The parent")
        why = why.replace(f"'{each.second}'", "The new one")
        yield f"on {what}, {number}: {metrics}; {right}. {each.verdict.capitalize()}: {why}"


def _describe_difference(difference: MetricDifference) -> str:
    interval = difference.interval
    change = ""
    if interval is not None and interval.low < interval.high:  # an interval without width is not certainty
        change = f" ({interval.low:+.3f} to {interval.high:+.3f})"
    return f"{format_number(difference.first)} → {format_number(difference.second)}{change}"
