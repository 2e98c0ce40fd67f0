"""Choosing the limits of a finished run anew: by other settings, or on more photographs than validation has.

Thresholds stand on the few defective photographs of validation. The training photographs can be scored as
well, by networks that have not learned from them: each of several folds is left out once and judged by a
network that was trained like the run on the others. Or the folds of a cross-validation have done so already.
"""

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from datasets.checking import CheckedPhotograph, check_dataset
from datasets.folds import find_clusters, stratified_group_split
from datasets.leaks import near_duplicates_for_split
from datasets.name_lists import read_name_list
from datasets.sample import Record, Split
from datasets.splitting import SPLITS, write_splits
from segdec.engines.tensorflow import NetworkEngine
from segdec.errors import ConfigError, RunError
from segdec.predictor import Predictor
from training.config import ExperimentConfig, ThresholdConfig
from training.data.reading_pool import ReadingPool
from training.data.run_data import list_dataset, list_split_records, open_check_cache, record_reader
from training.evaluate import evaluate_run
from training.formatting import format_percent, format_score
from training.metrics.calibration import align_log_odds
from training.metrics.storage import METRICS_FILE, load_evaluation
from training.metrics.thresholds import ScoredPhotographs
from training.metrics.validation import (
    ChosenThresholds,
    Validation,
    Validator,
    choose_thresholds,
    collect_scored,
)
from training.run.folder import RunFolder
from training.run.records import UNTRAINED_DECISION
from training.trainer import Trainer

FOLDS = "folds"
"""Folder of a run with the networks that score its training photographs."""


@dataclass(frozen=True)
class FoldScores:
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
    with folder.locked():
        chosen = _choose(folder, settings, folds, by)
    yield describe_thresholds(chosen)
    if (rate := chosen.model.calibration.defect_rate) is not None:
        yield (
            f"Scores are probabilities where {format_percent(rate)} of the photographs are defective: with "
            "another share the scores move rather than the threshold."
        )
    yield from (f"warning: {note}" for note in chosen.notes)
    if (path / METRICS_FILE).exists():
        split = cast(Split, load_evaluation(path).split)
        yield f"Measured again on the split '{split}':\n{evaluate_run(path, split)}"
    export = f"python -m training export {shlex.quote(str(path))} MODEL --overwrite"
    yield f"A model that was exported before keeps its own limits. To give it these: {export}"


def _choose(folder: RunFolder, settings: ThresholdConfig, folds: int, by: Sequence[Path]) -> ChosenThresholds:
    experiment, result = folder.experiment(), folder.result()
    # The folds come first: a training makes its devices, which must be before TensorFlow has started.
    scored = [*score_folds(folder, experiment, folds), *score_with_runs(folder, by)]
    validation = measure_split(folder, "val")
    others = [_align(each, validation.photographs.good) for each in scored]
    chosen = choose_thresholds(result.model, validation, settings, others, balanced=experiment.balanced)
    kept = [warning for warning in result.warnings if warning == UNTRAINED_DECISION]
    changes = {
        "model": chosen.model,
        "validation": chosen.validation,
        "warnings": (*chosen.notes, *kept),
        "chosen_by": chosen.chosen_by,
    }
    folder.save_thresholds(
        experiment.model_copy(update={"threshold": settings}), result.model_copy(update=changes)
    )
    return chosen


def describe_thresholds(chosen: ChosenThresholds) -> str:
    """Returns a line for the terminal."""
    thresholds = chosen.model.thresholds
    review = "" if thresholds.review is None else f", for review from {format_score(thresholds.review)}"
    return (
        f"Defective from a score of {format_score(thresholds.score)}{review}, chosen on {chosen.chosen_by}."
    )


def measure_split(folder: RunFolder, split: Split) -> Validation:
    """Runs a finished run's network over the photographs of a split."""
    experiment, model = folder.experiment(), folder.result().model
    records = list_split_records(experiment, folder.splits, model.classes, split)
    predictor = Predictor(NetworkEngine(folder.network()), model)
    pool = ReadingPool(experiment.data.decode_threads)
    return Validator(predictor, records, record_reader(experiment), experiment.batch_size, pool).measure()


# === Folds of the training photographs ===


def score_folds(folder: RunFolder, experiment: ExperimentConfig, folds: int) -> Iterator[FoldScores]:
    """Trains a network without each fold, where that was not done yet, and scores the fold with it."""
    if not folds:
        return
    if experiment.initial_weights is not None:
        raise ConfigError(
            f"--folds {folds} of a run that began with the weights of another one, which has learnt from the "
            "photographs of every fold. Expected a run that began at random: leave out --folds."
        )
    records = list_dataset(experiment.data, folder.splits).assigned()
    train, val = (replace(records, records=records.of_split(split)) for split in ("train", "val"))
    channels = folder.result().model.network.input_channels
    checked = check_dataset(
        train,
        white_level=experiment.input.white_level,
        max_pixels=experiment.data.max_pixels,
        known=open_check_cache(experiment, channels),
    )
    for number, left_out in enumerate(split_into_folds(checked.photographs, folds, experiment.seed), start=1):
        place = folder.path / FOLDS / f"{number}_of_{folds}"
        place.parent.mkdir(exist_ok=True)
        splits = place.with_suffix(".txt")
        write_splits(splits, (*val.records, *_assign(checked.dataset.records, left_out)))
        trained = Trainer(experiment.local_copy(place, splits)).run()
        tested = measure_split(trained, "test").photographs
        yield FoldScores(tested, measure_split(trained, "val").photographs.good)


def split_into_folds(photographs: Sequence[CheckedPhotograph], folds: int, seed: int) -> list[frozenset[str]]:
    """Divides the groups of photographs into folds, each class evenly.

    Equal pictures and near twins stay together: a network that has learned from one would judge the other too
    well. Where these are so many that they say nothing, a note tells so, and they are divided.

    Raises:
        ConfigError: If there are fewer than two folds, or a fold would hold no good group, or no defective
            one although there are some.
    """
    if folds < 2:
        raise ConfigError(f"--folds {folds}. Expected at least 2: what is left out of one trains the other.")
    twins, notes = near_duplicates_for_split(photographs)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    parts = stratified_group_split(find_clusters(photographs, twins), [1] * folds, seed)
    groups = [frozenset(group for cluster in part for group in cluster.groups) for part in parts]
    shows_defects = any(each.record.label for each in photographs)
    for own in groups:
        labels = [each.record.label > 0 for each in photographs if each.record.group in own]
        if all(labels) or (shows_defects and not any(labels)):
            raise ConfigError(
                f"--folds {folds} would leave a fold with {labels.count(False)} good and "
                f"{labels.count(True)} defective training photographs; groups, equal pictures and near twins "
                "stay together. Expected some of both: ask for fewer."
            )
    return groups


def _assign(records: Sequence[Record], left_out: frozenset[str]) -> Iterator[Record]:
    return (record.with_split("test" if record.group in left_out else "train") for record in records)


# === Other runs ===


def score_with_runs(folder: RunFolder, others: Sequence[Path]) -> Iterator[FoldScores]:
    """Takes what other runs said of photographs that they tested and this one trained on, each once.

    Raises:
        RunError: If one has tested photographs that this run tests too, knows other classes, or adds none.
    """
    classes = folder.result().model.classes
    splits = _names_by_split(folder)
    wanted = set(splits["train"])
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
        tested = [each for each in evaluated.results if each.split == "test" and each.name in wanted]
        if not tested:
            raise RunError(
                f"'{path}' has tested none of the photographs that '{folder.path}' trained on, or none that "
                "no run before it has. Expected the other folds of a cross-validation, evaluated on 'test'."
            )
        wanted -= names
        photographs = collect_scored(tested)
        yield FoldScores(photographs, photographs.good)


def _names_by_split(folder: RunFolder) -> dict[Split, set[str]]:
    names: dict[Split, set[str]] = {"train": set(), "val": set(), "test": set()}
    for line in read_name_list(folder.splits, SPLITS, "split"):
        names[cast(Split, line.word)].add(line.name)
    return names


def _align(scores: FoldScores, own_good: NDArray[np.float64]) -> ScoredPhotographs:
    aligned = align_log_odds(scores.photographs.log_odds, scores.good, own_good)
    return replace(scores.photographs, log_odds=aligned)
