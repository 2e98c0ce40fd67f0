"""Whether the next version is better than its parent, on photographs that neither has learnt from."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from datasets.name_lists import read_name_list
from datasets.splitting import SPLITS
from segdec.engines.tensorflow import NetworkEngine
from segdec.predictor import Predictor
from segdec.runtime.files import atomic_folder
from training.data.reading_pool import ReadingPool
from training.data.run_data import list_split_records, record_reader
from training.experiment_file import save_experiment
from training.formatting import count_of
from training.metrics.comparison import Comparison, Difference, Verdict, compare_evaluations
from training.metrics.evaluation import evaluate
from training.metrics.storage import EvaluatedRun, load_evaluation, save_evaluation
from training.reporting.tables import format_number
from training.run.folder import RunFolder

PARENT = "parent"
"""Folder of a run with what its parent says of the run's test photographs."""

SHOWN = {
    "false_negative_rate": "missed",
    "false_positive_rate": "false alarms",
    "average_precision": "AP",
    "pixel_f1": "pixel F1",
}


@dataclass(frozen=True)
class ParentComparison:
    """Both networks on photographs that neither has learnt from.

    Attributes:
        on: What the photographs are, with the comparison on them.
        verdict: On all of them: worse if it is worse on any, better if it is better on some.
    """

    on: dict[str, Comparison]
    verdict: Verdict


def evaluate_parent(parent: RunFolder, run: RunFolder) -> Path:
    """Lets a parent judge the test photographs of a run; returns the folder, which `compare` takes.

    Raises:
        SegdecError: If a photograph cannot be read.
        OSError: If the folder cannot be written.
    """
    experiment, result = run.experiment(), parent.result()
    records = list_split_records(experiment, run.splits, result.model.classes, "test")
    predictor = Predictor(NetworkEngine(parent.network()), result.model)
    pool = ReadingPool(experiment.data.decode_threads)
    evaluation = evaluate(
        predictor, records, record_reader(experiment), batch_size=experiment.batch_size, pool=pool
    )
    with atomic_folder(run.path / PARENT, overwrite=True) as folder:
        (folder / "config.toml").write_text(save_experiment(parent.experiment()), encoding="utf-8")
        save_evaluation(folder, evaluation, split="test", seed=experiment.seed)
    return run.path / PARENT


def compare_with_parent(parent: RunFolder, run: RunFolder) -> ParentComparison:
    """Compares an evaluated run with its parent on the parent's test photographs, and on those held back.

    Raises:
        RunError: If one of them was not evaluated.
    """
    old, new = load_evaluation(run.path / PARENT), load_evaluation(run.path)
    tested = {line.name for line in read_name_list(parent.splits, SPLITS, "split") if line.word == "test"}
    held = {result.name for result in new.results} - tested
    found = {
        "the test photographs of before": _compare(old, new, tested),
        "the photographs held back": _compare(old, new, held),
    }
    on = {what: comparison for what, comparison in found.items() if comparison is not None}
    return ParentComparison(on, combine_verdicts([comparison.verdict for comparison in on.values()]))


def _compare(old: EvaluatedRun, new: EvaluatedRun, names: Collection[str]) -> Comparison | None:
    one, other = old.subset(names), new.subset(names)
    return compare_evaluations(one, other) if one.results and other.results else None


def combine_verdicts(verdicts: Sequence[Verdict]) -> Verdict:
    """Returns what verdicts on several sets of photographs say together."""
    if "worse" in verdicts:
        return "worse"
    return "better" if "better" in verdicts else "not worse"


# === In words ===


def describe_comparison(judgement: ParentComparison) -> Iterator[tuple[str, str]]:
    """Yields topics and sentences: figures before and after with the intervals of what they differ by."""
    for what, comparison in judgement.on.items():
        figures = "; ".join(
            f"{name} {_tell(comparison.differences[figure])}"
            for figure, name in SHOWN.items()
            if comparison.differences[figure].value is not None
        )
        alone = len(comparison.first_right), len(comparison.second_right)
        right = f"right in the former one alone {alone[0]}, in the new one alone {alone[1]}"
        number = count_of(comparison.photographs, "photograph")
        why = " ".join(comparison.conclusion()).replace(f"'{comparison.first}'", "The former one")
        why = why.replace(f"'{comparison.second}'", "The new one")
        yield "judged", f"on {what}, {number}: {figures}; {right}. {comparison.verdict.capitalize()}: {why}"
    yield "verdict", judgement.verdict


def _tell(difference: Difference) -> str:
    interval = difference.interval
    change = ""
    if interval is not None and interval.low < interval.high:  # one without width does not mean certainty
        change = f" ({interval.low:+.3f} to {interval.high:+.3f})"
    return f"{format_number(difference.first)} → {format_number(difference.second)}{change}"
