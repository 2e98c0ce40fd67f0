"""From a run and reviewed photographs to the next version of its model, step by step. Read it downwards."""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from datasets.checking import CheckedPhotograph, check_dataset, raise_if_problems
from datasets.layouts import manifest
from datasets.sample import Dataset
from datasets.splitting import write_splits
from segdec.artifact import LABELS, MANIFEST, STABLE
from segdec.errors import ConfigError, DatasetError, RunError
from segdec.runtime.cli import progress_bar
from segdec.runtime.files import write_text_atomic
from training.config import ExperimentConfig
from training.data.run_data import list_dataset
from training.distribution.interruption import RunInterruptedError
from training.evaluate import evaluate_run
from training.export import ExportOptions, export_run
from training.fit.command import MAX_MINUTES, clock, record_steps_taken
from training.fit.deadline_control import DeadlineControl
from training.fit.messages import format_line
from training.optimization.initial import with_initial_sha256
from training.retrain.comparison import (
    ParentComparison,
    compare_with_parent,
    describe_comparison,
    evaluate_parent,
)
from training.retrain.experiment import next_experiment, with_steps
from training.retrain.lineage import Lineage, find_lineage
from training.retrain.messages import describe_counts, describe_left_out
from training.retrain.splitting import split_reviewed
from training.retrain.timing import plan_steps
from training.run.folder import RunFolder
from training.trainer import Trainer


@dataclass(frozen=True, kw_only=True)
class RetrainOptions:
    """What a user may say.

    Attributes:
        run: Folder of the run to go on from.
        reviewed: What `python -m api export-reviewed` wrote.
        parent: The model that the run became; None = looked for below `models`.
        out: Folder of the new model; None = beside the parent.
        version: Of the new model; None = one higher than the parent's.
        name: Of the new run; None = that of the run, with the new version.
        minutes: How long all of it may take; None = a share of the steps that the run took.
        force: Export the model even if it is worse.
        no_sample: Let no photograph travel in the model for its self-test.
    """

    run: Path
    reviewed: Path
    parent: Path | None = None
    out: Path | None = None
    version: str | None = None
    name: str | None = None
    minutes: float | None = None
    force: bool = False
    no_sample: bool = False


def retrain(options: RetrainOptions, began: float) -> None:
    """Trains on from a run, compares the two, and exports the new version unless it is worse.

    A command that was interrupted goes on where it was.

    Args:
        options: What the user said.
        began: When the command began, by the clock of `fit`.

    Raises:
        SegdecError: If something cannot be used or is in the way, or the new version is worse.
        SystemExit: If it was asked to stop.
    """
    # === Look ===
    parent = RunFolder.finished(options.run)
    lineage = find_lineage(parent, options.parent, options.version, options.out)
    config, begun = _experiment(parent, options, lineage)
    print_line(
        "model", f"{lineage.name} {lineage.version}, from {lineage.parent.version} of the run {parent.path}"
    )

    # === Divide ===
    control = None
    if not begun:
        dataset = _divide(parent, config)
        if options.minutes is not None:
            config, control = _fit_time(config, parent, dataset, began + 60 * options.minutes)

    # === Train ===
    folder = _train(config, control)

    # === Judge ===
    print(evaluate_run(folder.path, "test"), end="\n\n", flush=True)
    evaluate_parent(parent, folder)
    comparison = compare_with_parent(parent, folder)
    for topic, sentence in describe_comparison(comparison):
        print_line(topic, sentence)

    # === Export ===
    _export(folder, lineage, comparison, options)


def print_line(topic: str, sentence: str) -> None:
    """Prints a topic with its sentence at once, wherever stdout leads."""
    print(format_line(topic, sentence), flush=True)


def _experiment(
    parent: RunFolder, options: RetrainOptions, lineage: Lineage
) -> tuple[ExperimentConfig, bool]:
    """The experiment, and whether its run was begun before, by the same command.

    Raises:
        ConfigError: If no run can be named so, or the time is none.
        RunError: If there is another run of that name.
    """
    if options.minutes is not None and not 0 < options.minutes <= MAX_MINUTES:
        raise ConfigError(f"--minutes {options.minutes:g}. Expected how long all of it may take, above 0.")
    experiment, runs = parent.experiment(), options.run.parent
    name = options.name or f"{experiment.name.removesuffix(f'_{lineage.parent.version}')}_{lineage.version}"
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ConfigError(f"'{name}' cannot name a run. Give another one with --name.")
    config = with_initial_sha256(
        next_experiment(
            experiment,
            name=name,
            runs=runs,
            reviewed=options.reviewed,
            splits=runs / f"{name}.splits.txt",
            weights=parent.weights_path,
        )
    )
    if not config.folder.exists():
        return config, False
    begun = RunFolder(config.folder)
    begun.check_is_run()
    former = begun.experiment()
    if (former.initial_sha256, former.data.reviewed) != (config.initial_sha256, config.data.reviewed):
        raise RunError(f"'{config.folder}' is another run. Give this one a --name of its own.")
    return former, True


# === What is learnt from ===


def _divide(parent: RunFolder, config: ExperimentConfig) -> Dataset:
    """Writes the splits of the new run, says what becomes of the reviewed photographs, and returns all.

    Raises:
        DatasetError: If there are problems in these, or nothing in them is new.
    """
    old = list_dataset(parent.experiment().data, parent.splits).assigned()
    old = replace(old, records=tuple(old.records))
    both = list_dataset(config.data, None)
    if both.classes != old.classes:
        raise DatasetError(f"{config.data.root} holds other classes than '{parent.path}' was trained on.")
    reviewed = {record.name for record in manifest.index(config.data.reviewed[-1]).records}
    former = {record.name: record.split for record in old.records}
    news = [record for record in both.records if record.name in reviewed - former.keys()]
    found = _check(replace(both, records=tuple(news), problems=()), config, skip=config.data.skip_broken)
    places = config.input.policy == "tile"
    division = split_reviewed(_check(old, config, skip=True), found, seed=config.seed, needs_places=places)
    print_line("reviewed", describe_counts(found, division, len(reviewed) - len(news)))
    for sentence in describe_left_out(division):
        print_line("note", sentence)
    if "train" not in division.splits.values():
        raise DatasetError(
            f"{config.data.reviewed[-1]} holds no photograph to train on that '{parent.path}' has not seen. "
            "Expected some: review more, and export again."
        )
    kept = {name: split for name, split in former.items() if name not in division.replaced}
    splits = {**kept, **division.splits}
    records = tuple(record.with_split(splits.get(record.name)) for record in both.records)
    assert config.data.splits is not None
    write_splits(config.data.splits, records, comment=f"Made by: python -m training retrain {parent.path}")
    return replace(both, records=records)


def _check(dataset: Dataset, config: ExperimentConfig, *, skip: bool) -> Sequence[CheckedPhotograph]:
    checked = check_dataset(
        dataset,
        white_level=config.input.white_level,
        max_pixels=config.data.max_pixels,
        progress=lambda records: progress_bar(records, desc="reading", unit="image", leave=False),
    )
    if not skip:
        raise_if_problems(checked.dataset)
    return checked.photographs


# === Training ===


def _fit_time(
    config: ExperimentConfig, parent: RunFolder, dataset: Dataset, ends_at: float
) -> tuple[ExperimentConfig, DeadlineControl]:
    print_line("measuring", "how long a few steps take")
    planned = plan_steps(config, dataset, ends_at, clock)
    config = with_steps(config, parent.experiment(), planned.steps, planned.validate_every)
    return config, DeadlineControl(planned, ends_at + planned.overrun_s - planned.post_training_s, clock)


def _train(config: ExperimentConfig, control: DeadlineControl | None) -> RunFolder:
    """Trains what is left of the run."""
    trainer = Trainer(config, control=control)
    print(trainer.describe_start(), flush=True)
    try:
        folder = trainer.run()
    except RunInterruptedError as stop:
        print(f"{stop} The same command goes on.", file=sys.stderr)
        raise SystemExit(stop.exit_code) from None
    if control is not None:
        record_steps_taken(folder, control)
    return folder


def _export(
    folder: RunFolder, lineage: Lineage, comparison: ParentComparison, options: RetrainOptions
) -> None:
    """Writes the artifact of the new version.

    Raises:
        RunError: If it is worse, and nobody insists.
    """
    if comparison.verdict == "worse" and not options.force:
        raise RunError(
            f"{lineage.name} {lineage.version} is worse than {lineage.parent.version}, and was not exported. "
            f"Look at {folder.path / 'report.html'}; the same command with --force exports it all the same."
        )
    chosen = ExportOptions(
        name=lineage.name,
        version=lineage.version,
        engines=lineage.engines,
        with_sample=not options.no_sample,
        parent=lineage.parent,
    )
    if lineage.out.name == lineage.version:  # where a service has several
        _keep_stable(lineage)
    written = export_run(folder.path, lineage.out, chosen)
    print_line(
        "wrote", f"{written.name} {written.version} to {lineage.out}, report {folder.path / 'report.html'}"
    )
    if lineage.out.name == written.version:
        shadow = f'POST /v1/admin/models/{written.name}/candidate with {{"version": "{written.version}"}}'
        print_line(
            "next",
            f"{shadow} puts it into the shadow. {lineage.parent.version} goes on answering.",
        )


def _keep_stable(lineage: Lineage) -> None:
    """Labels the parent as the one that answers: without labels, the next start would serve the newest."""
    versions = lineage.out.parent
    labels, parent = versions / LABELS, lineage.parent.version
    if not labels.exists() and (versions / parent / MANIFEST).exists():
        write_text_atomic(labels, json.dumps({STABLE: parent}) + "\n")
