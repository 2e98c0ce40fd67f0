"""The command `calibrate`: new calibration and thresholds of a finished run.

Training images can be used in addition to the few validation images: each fold is scored by a network that
was trained like the run, without this fold, or by the runs of a cross-validation.
"""

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from datasets.checked_photograph import CheckedPhotograph
from datasets.checking import check_dataset
from datasets.folds import find_clusters, stratified_group_split
from datasets.leaks import near_duplicates_for_split
from datasets.sample import Split
from datasets.splitting import SPLIT_WORDS, read_split_lines, write_splits
from segdec.errors import ConfigError, RunError
from segdec.runtime.counts import count_of
from training.config import ExperimentConfig, ThresholdConfig
from training.data.reading_pool import ReadingPool
from training.data.run_data import item_reader, list_dataset, open_check_cache
from training.evaluate import describe_points, evaluate_run
from training.formatting import format_percent, format_score
from training.metrics.calibration import align_log_odds, apply_calibration
from training.metrics.mask_refinement_choice import choose_mask_refinement
from training.metrics.operating_points import find_operating_points
from training.metrics.size_errors import measure_size_errors
from training.metrics.storage import METRICS_FILE, load_evaluation
from training.metrics.three_outcomes import choose_outcomes
from training.metrics.thresholds import ScoredPhotographs
from training.metrics.validation import (
    ChosenThresholds,
    Validation,
    Validator,
    choose_thresholds,
    collect_scored,
    measure_errors,
)
from training.run.folder import RunFolder
from training.run.records import UNTRAINED_DECISION, PhotographScores
from training.run_limits import find_limits
from training.trainer import Trainer

FOLDS = "folds"
"""Folder of a run with the networks that score its training images."""


FoldScores = tuple[ScoredPhotographs, NDArray[np.float64]]
"""Training images scored by another network, and its log-odds of good images, to align them."""


def calibrate_run(
    path: Path, settings: ThresholdConfig, *, folds: int = 0, by: Sequence[Path] = ()
) -> Iterator[str]:
    """Chooses calibration and thresholds of a finished run, and repeats its evaluation if there is one.

    With `settings.score` the images of the last choice are used again, unless others are given: the training
    images in `folds` > 0 folds, or the test images of evaluated runs `by` of the same experiment. Yields
    messages for the terminal. Raises a `SegdecError` if a run has not finished or cannot be read, or the runs
    do not fit together.
    """
    folder = RunFolder.finished(path)
    with folder.locked():
        chosen = _choose(folder, settings, folds, by)
    limits = chosen.model.thresholds
    review = "" if limits.review is None else f", for review from {format_score(limits.review)}"
    origin = "chosen" if settings.score is None else "as set; calibrated"
    yield f"Defective from a score of {format_score(limits.score)}{review}, {origin} on {chosen.chosen_by}."
    if (rate := chosen.model.calibration.defect_rate) is not None:
        yield (
            f"Scores are probabilities for a share of {format_percent(rate)} defective photographs; another "
            "share changes the scores, not the threshold."
        )
    yield from (f"warning: {note}" for note in chosen.notes)
    if (path / METRICS_FILE).exists():
        split = cast(Split, load_evaluation(path).split)
        yield f"Evaluated again on the split '{split}':\n{evaluate_run(path, split)}\n"
    else:
        yield from describe_points(path, folder.result()).to_lines()
    export = f"python -m training export {shlex.quote(str(path))} MODEL --overwrite"
    yield f"Exported models keep their thresholds. To update one: {export}"


def _choose(folder: RunFolder, settings: ThresholdConfig, folds: int, by: Sequence[Path]) -> ChosenThresholds:
    experiment, result = folder.experiment(), folder.result()
    if settings.score is not None and result.scored is not None and not folds and not by:
        return _set_score(folder, settings, result.scored.unpack())
    # Folds first: a training configures its devices, which must happen before TensorFlow starts.
    scored = [*score_folds(folder, experiment, folds), *score_with_runs(folder, by)]
    validation = measure_split(folder, experiment.validation_split)
    own_good = validation.photographs.good
    others = [
        replace(photographs, log_odds=align_log_odds(photographs.log_odds, good, own_good))
        for photographs, good in scored
    ]
    chosen = choose_thresholds(result.model, validation, settings, others, balanced=experiment.balanced)
    parts = folder.parts(experiment.validation_split)
    read, pool = item_reader(experiment), ReadingPool(experiment.data.decode_threads)
    model = choose_mask_refinement(chosen.model, parts, read, pool)
    model = measure_size_errors(model, parts, read, pool)
    kept = [warning for warning in result.warnings if warning == UNTRAINED_DECISION]
    _save(folder, settings, replace(chosen, model=model, notes=(*chosen.notes, *kept)))
    return chosen


def _set_score(folder: RunFolder, settings: ThresholdConfig, scored: ScoredPhotographs) -> ChosenThresholds:
    """Sets the score threshold on the images of the last choice; the mask threshold and its note stay."""
    experiment, result = folder.experiment(), folder.result()
    former, limits = (
        choose_outcomes(scored, each, balanced=experiment.balanced)
        for each in (experiment.threshold, settings)
    )
    changed = {"score": limits.threshold, "review": limits.review}
    thresholds = result.model.thresholds.model_copy(update=changed)
    scores = apply_calibration(limits.calibration, scored.log_odds)
    changes = {"calibration": limits.calibration, "thresholds": thresholds}
    chosen = ChosenThresholds(
        model=result.model.model_copy(update=changes),
        validation={**result.validation, **measure_errors(scored.labels, scores, thresholds)},
        chosen_by=result.chosen_by,
        notes=(*limits.notes, *(note for note in result.warnings if note not in former.notes)),
        points=find_operating_points(scored, limits, settings),
        scored=scored,
    )
    _save(folder, settings, chosen)
    return chosen


def _save(folder: RunFolder, settings: ThresholdConfig, chosen: ChosenThresholds) -> None:
    changes = {
        "model": chosen.model,
        "validation": chosen.validation,
        "warnings": chosen.notes,
        "chosen_by": chosen.chosen_by,
        "scored": PhotographScores.pack(chosen.scored),
        "operating_points": chosen.points,
    }
    changes["training_photographs"] = find_limits(folder)
    config = folder.experiment().model_copy(update={"threshold": settings})
    folder.save_thresholds(config, folder.result().model_copy(update=changes))


def measure_split(folder: RunFolder, split: Split) -> Validation:
    """Scores the images of a split with the network of a finished run."""
    experiment = folder.experiment()
    pool, read = ReadingPool(experiment.data.decode_threads), item_reader(experiment)
    return Validator(folder.parts(split), read, experiment.batch_size, pool).measure()


# === Folds of the training photographs ===


def score_folds(folder: RunFolder, experiment: ExperimentConfig, folds: int) -> Iterator[FoldScores]:
    """Yields the scores of each fold by a network trained without it; trains networks that are missing."""
    if not folds:
        return
    if experiment.network.folds > 1:
        raise ConfigError(
            f"--folds {folds} is not needed: each photograph of this run was scored by a network built "
            "without it. Omit --folds."
        )
    if experiment.initial_weights is not None:
        raise ConfigError(
            f"--folds {folds} needs a run from random weights: the initial weights of this run were trained "
            "on the photographs of every fold. Omit --folds."
        )
    items = list_dataset(experiment.data, folder.splits).assigned()
    train, val = (replace(items, items=items.of_split(split)) for split in ("train", "val"))
    channels = folder.result().model.network.input_channels
    checked = check_dataset(
        train,
        white_level=experiment.input.white_level,
        max_pixels=experiment.data.max_pixels,
        known=open_check_cache(experiment, channels),
    )
    for number, held_out in enumerate(split_into_folds(checked.photographs, folds, experiment.seed), start=1):
        place = folder.path / FOLDS / f"{number}_of_{folds}"
        place.parent.mkdir(exist_ok=True)
        splits, own = place.with_suffix(".txt"), checked.dataset.items
        others = [item.with_split("test" if item.group in held_out else "train") for item in own]
        write_splits(splits, (*val.items, *others))
        trained = Trainer(experiment.local_copy(place, splits)).run()
        tested = measure_split(trained, "test").photographs
        yield tested, measure_split(trained, "val").photographs.good


def split_into_folds(photographs: Sequence[CheckedPhotograph], folds: int, seed: int) -> list[frozenset[str]]:
    """Splits the groups of images into folds, stratified by class.

    Equal pictures and near duplicates stay in one fold, unless a fold would lose its share of a class, which
    is reported. Raises a `ConfigError` if a fold has no good images, or no defective ones although there are
    some.
    """
    if folds < 2:
        raise ConfigError(f"--folds {folds}. Expected at least 2.")
    duplicates, notes = near_duplicates_for_split(photographs, [1] * folds, seed)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    parts = stratified_group_split(find_clusters(photographs, duplicates), [1] * folds, seed)
    groups = [frozenset(group for cluster in part for group in cluster.groups) for part in parts]
    with_defects = any(each.item.label for each in photographs)
    for own in groups:
        defective = [each.item.label > 0 for each in photographs if each.item.group in own]
        if all(defective) or (with_defects and not any(defective)):
            raise ConfigError(
                f"--folds {folds} would leave a fold with {defective.count(False)} good and "
                f"{count_of(defective.count(True), 'defective training photograph')}; groups, equal pictures "
                "and near duplicates stay together. Expected some of both: ask for fewer folds."
            )
    return groups


# === Other runs ===


def score_with_runs(folder: RunFolder, others: Sequence[Path]) -> Iterator[FoldScores]:
    """Yields the scores of other runs for their test images that this run was trained on, each image once.

    Raises:
        RunError: If a run has test images in common with this run, has other classes, or adds no images.
    """
    classes = folder.result().model.classes
    lines = read_split_lines(folder.splits)
    remaining, held = (
        {line.name for line in lines if SPLIT_WORDS[line.word][0] == split} for split in ("train", "test")
    )
    for path in others:
        evaluated = load_evaluation(path)
        if evaluated.classes != classes:
            raise RunError(
                f"'{path}' has the classes {', '.join(evaluated.classes)}, '{folder.path}' "
                f"{', '.join(classes)}. Expected runs of one experiment."
            )
        names = {result.name for result in evaluated.results}
        if same := sorted(names & held):
            raise RunError(
                f"'{path}' was evaluated on {count_of(len(same), 'test photograph')} of '{folder.path}', the "
                f"first is '{same[0]}'. Thresholds must not be chosen on test data. Expected the other folds "
                "of a cross-validation."
            )
        tested = [each for each in evaluated.results if each.split == "test" and each.name in remaining]
        if not tested:
            raise RunError(
                f"'{path}' has tested no training photograph of '{folder.path}' in addition to the runs "
                "before it. Expected the other folds of a cross-validation, evaluated on 'test'."
            )
        remaining -= names
        photographs = collect_scored(tested)
        yield photographs, photographs.good
