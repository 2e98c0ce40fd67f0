"""Choosing the limits of a finished run anew: by other settings, or on more photographs than validation has.

Thresholds stand on the few defective photographs of validation. The training photographs can be scored as
well, by networks that have not learned from them: each of several folds is left out once and judged by a
network that was trained like the run on the others. Or the folds of a cross-validation have done so already.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from datasets.folds import Cluster, deal
from datasets.name_lists import read_name_list
from datasets.sample import Record, Split
from datasets.splitting import SPLITS, write_splits
from segdec.config import Thresholds
from segdec.engines.tensorflow import NetworkEngine
from segdec.errors import ConfigError, RunError
from segdec.predictor import Predictor
from training.config import ExperimentConfig, ThresholdConfig
from training.data.reading_pool import ReadingPool
from training.data.run_data import record_reader, run_records
from training.evaluation.calibration import align_log_odds
from training.evaluation.formatting import count_of
from training.evaluation.run_evaluation import evaluate_run
from training.evaluation.storage import METRICS, load_evaluation
from training.evaluation.thresholds import ScoredPhotographs, join_scored
from training.evaluation.validation import Validation, Validator, choose_limits, gather
from training.run.folder import RunFolder
from training.trainer import Trainer

FOLDS = "folds"
"""Folder of a run with the networks that score its training photographs."""


@dataclass(frozen=True)
class Scores:
    """Photographs that a network like the run's has scored, and what it makes of good ones.

    Attributes:
        photographs: As that network scored them.
        good: Log-odds that it gives good photographs: those of the run's validation, or its own.
    """

    photographs: ScoredPhotographs
    good: NDArray[np.float64]


def calibrate_run(
    path: Path, settings: ThresholdConfig, *, folds: int = 0, by: Sequence[Path] = ()
) -> Iterator[str]:
    """Chooses calibration and thresholds of a finished run, and evaluates it anew if it was before.

    Args:
        path: The run's folder.
        settings: What the limits are chosen by.
        folds: Into so many the training photographs are divided, each scored by a network trained without it;
            0 for none.
        by: Evaluated runs of the same experiment that have tested photographs which this one trained on.

    Yields:
        What was done, for the terminal.

    Raises:
        SegdecError: If a run has not finished or cannot be read, or the photographs do not fit.
    """
    folder = RunFolder.finished(path)
    experiment, result = folder.experiment(), folder.result()
    validation = measure_split(folder, "val")
    own = validation.photographs
    scored = [*score_folds(folder, experiment, folds), *score_by(folder, by)]
    others = [_align(each, own.good) for each in scored]
    chosen = choose_limits(result.model, validation, settings, others)
    chosen_by = _describe(own, others)
    changes = {
        "model": chosen.model,
        "validation": chosen.validation,
        "warnings": chosen.notes,
        "chosen_by": chosen_by,
    }
    folder.save_limits(
        experiment.model_copy(update={"threshold": settings}), result.model_copy(update=changes)
    )
    yield describe_limits(chosen.model.thresholds, chosen_by)
    yield from (f"warning: {note}" for note in chosen.notes)
    if (path / METRICS).exists():
        split = cast(Split, load_evaluation(path).split)
        yield f"Measured again on the split '{split}':\n{evaluate_run(path, split)}"


def measure_split(folder: RunFolder, split: Split) -> Validation:
    """Runs a finished run's network over the photographs of a split."""
    experiment, model = folder.experiment(), folder.result().model
    records = run_records(experiment.data, folder.splits, model.classes, split)
    predictor = Predictor(NetworkEngine(folder.network()), model)
    pool = ReadingPool(experiment.data.decode_threads)
    return Validator(predictor, records, record_reader(experiment), experiment.batch_size, pool).measure()


# === Folds of the training photographs ===


def score_folds(folder: RunFolder, experiment: ExperimentConfig, folds: int) -> Iterator[Scores]:
    """Trains a network without each fold, where that was not done yet, and scores the fold with it."""
    if not folds:
        return
    classes = folder.result().model.classes
    train, val = (run_records(experiment.data, folder.splits, classes, split) for split in ("train", "val"))
    for number, left_out in enumerate(divide(train, folds, experiment.seed)):
        place = folder.path / FOLDS / f"{number + 1}_of_{folds}"
        place.parent.mkdir(exist_ok=True)
        splits = place.with_suffix(".txt")
        write_splits(splits, _assign(train, val, left_out))
        trained = Trainer(experiment.aside(place, splits)).run()
        tested = measure_split(trained, "test").photographs
        yield Scores(tested, measure_split(trained, "val").photographs.good)


def divide(records: Sequence[Record], folds: int, seed: int) -> list[frozenset[str]]:
    """Divides the groups of records into folds, each class evenly.

    Raises:
        ConfigError: If there are fewer than two folds, or a fold would hold no good or no defective group.
    """
    if folds < 2:
        raise ConfigError(f"--folds {folds}. Expected at least 2: what is left out of one trains the other.")
    labels: dict[str, int] = {}
    for record in records:
        labels[record.group] = max(labels.get(record.group, 0), record.label)
    sizes = Counter(record.group for record in records)
    parts = deal(
        [Cluster((group,), labels[group], sizes[group]) for group in sorted(labels)], [1] * folds, seed
    )
    groups = [frozenset(cluster.groups[0] for cluster in part) for part in parts]
    for own in groups:
        defective = sum(record.label > 0 for record in records if record.group in own)
        good = sum(record.label == 0 for record in records if record.group in own)
        if not good or not defective:
            raise ConfigError(
                f"--folds {folds} would leave a fold with {good} good and {defective} defective training "
                "photographs. Expected some of both in each: ask for fewer folds."
            )
    return groups


def _assign(train: Sequence[Record], val: Sequence[Record], left_out: frozenset[str]) -> Iterator[Record]:
    yield from val
    yield from (record.assigned("test" if record.group in left_out else "train") for record in train)


# === Other runs ===


def score_by(folder: RunFolder, others: Sequence[Path]) -> Iterator[Scores]:
    """Takes what other runs said of photographs that this one trained on.

    Raises:
        RunError: If one has tested photographs that this run tests too, or knows other classes.
    """
    classes = folder.result().model.classes
    splits = _names_by_split(folder)
    for path in others:
        evaluated = load_evaluation(path)
        if evaluated.classes != classes:
            raise RunError(
                f"'{path}' knows the classes {', '.join(evaluated.classes)}, '{folder.path}' "
                f"{', '.join(classes)}. Expected runs of one experiment."
            )
        names = {result.name for result in evaluated.results}
        if same := sorted(names & splits["test"]):
            raise RunError(
                f"'{path}' was evaluated on {len(same)} photographs that '{folder.path}' is tested on, the "
                f"first is '{same[0]}'. Limits chosen on them could not be tested any more. Expected the "
                "other folds of a cross-validation."
            )
        fresh = [result for result in evaluated.results if result.name in splits["train"]]
        if not fresh:
            raise RunError(
                f"'{path}' was evaluated on none of the photographs that '{folder.path}' trained on. "
                "Expected the other folds of a cross-validation."
            )
        photographs = gather(fresh)
        yield Scores(photographs, photographs.good)


def _names_by_split(folder: RunFolder) -> dict[Split, set[str]]:
    names: dict[Split, set[str]] = {"train": set(), "val": set(), "test": set()}
    for line in read_name_list(folder.splits, SPLITS, "split"):
        names[cast(Split, line.word)].add(line.name)
    return names


def _align(scores: Scores, own_good: NDArray[np.float64]) -> ScoredPhotographs:
    aligned = align_log_odds(scores.photographs.log_odds, scores.good, own_good)
    return replace(scores.photographs, log_odds=aligned)


def _describe(own: ScoredPhotographs, others: Sequence[ScoredPhotographs]) -> str:
    text = f"{_count(own)} of validation"
    if not others:
        return text
    scored, networks = _count(join_scored(others)), count_of(len(others), "other network")
    return f"{text} and {scored} of training, which {networks} scored"


def _count(photographs: ScoredPhotographs) -> str:
    return f"{len(photographs.good)} good and {len(photographs.defective)} defective photographs"


def describe_limits(thresholds: Thresholds, chosen_by: str) -> str:
    """Returns a line for the terminal."""
    review = "" if thresholds.review is None else f", for review from {thresholds.review:.4f}"
    return f"Defective from a score of {thresholds.score:.4f}{review}, chosen on {chosen_by}."
