"""The steps of `retrain`, from a run and reviewed images to the next version. The functions are in the order
of the steps.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from datasets.checked_photograph import CheckedPhotograph
from datasets.checking import check_dataset
from datasets.layouts import manifest
from datasets.problems import raise_if_problems
from datasets.reading_options import ReadingOptions
from datasets.sample import Dataset
from datasets.splitting import write_splits
from segdec.artifact import ALIASES, MANIFEST, STABLE
from segdec.errors import DatasetError, RunError
from segdec.runtime.cli import progress_bar
from segdec.runtime.files import write_text_atomic
from training.config import ExperimentConfig
from training.data.run_data import item_reader, list_dataset
from training.distribution.cluster import Cluster
from training.distribution.interruption import RunInterruptedError
from training.distribution.process_group_context import ProcessGroupContext
from training.evaluate import evaluate_run
from training.export import ExportOptions, export_run
from training.fit.cluster_member import (
    announce_end,
    connect,
    make_time_control,
    share_experiment,
    train_as_member,
)
from training.fit.command import check_minutes, clock, record_steps_taken
from training.fit.forward_time import measure_forward
from training.fit.time_control import TimeControl, planned_steps, reserved_s, validation_interval
from training.formatting import format_line
from training.optimization.initial import with_initial_sha256
from training.retrain.comparison import compare_with_parent, describe_comparison, evaluate_parent
from training.retrain.experiment import next_experiment, with_steps
from training.retrain.lineage import Lineage, find_lineage
from training.retrain.messages import describe_counts, describe_ignored
from training.retrain.splitting import SHARES, TRAIN_SHARES, split_reviewed
from training.run.folder import RunFolder
from training.run.run_log import read_log
from training.run_name import check_run_name, make_run_name
from training.trainer import Trainer


@dataclass(frozen=True, kw_only=True)
class RetrainOptions:
    """Options of the command; `python -m training retrain --help` describes them."""

    run: Path
    reviewed: Path
    parent: Path | None = None
    out: Path | None = None
    version: str | None = None
    name: str | None = None
    minutes: float | None = None
    force: bool = False
    no_sample: bool = False
    strategy: Literal["auto", "multi-worker"] = "auto"


def retrain(options: RetrainOptions, began: float, cluster: Cluster | None = None) -> None:
    """Continues training from a run, compares both networks, and exports the new version unless it is worse.

    An interrupted command can be repeated and resumes. The time limit counts from `began`, by `fit`'s clock.
    In a `cluster` the chief does that; the other processes, each with a copy of run and data, train with it.
    The time in which they connect does not count.

    Raises:
        SegdecError: If an input cannot be used, an output exists already, or the new version is worse.
        SystemExit: After an interrupt.
    """
    # === Inputs ===
    parent = RunFolder.finished(options.run)
    local = _local_experiment(parent, options)
    group, connecting_s = connect(local, cluster, clock)
    if group is not None and not group.is_chief:
        train_as_member(group, local, clock)
        return
    lineage = find_lineage(parent, options.parent, options.version, options.out)
    config, resumed = _experiment(parent, options, lineage)
    print_line(
        "model", f"{lineage.name} {lineage.version}, after {lineage.parent.version} of the run {parent.path}"
    )

    # === Split ===
    if not resumed:
        _split(parent, config)
    train_until = None
    if options.minutes is not None:
        started_from = None if resumed else parent
        config, train_until = _limit_time(config, started_from, began + connecting_s + 60 * options.minutes)
    share_experiment(group, config, None if train_until is None else 1)
    control = None
    if train_until is not None:
        control = make_time_control(group, config.stages.steps, train_until, clock)

    # === Train ===
    folder = _train(config, control, group)

    # === Compare ===
    evaluated = evaluate_run(folder.path, parent.compared_split)
    print(evaluated, end="\n\n", flush=True)
    evaluate_parent(parent, folder)
    by_set, verdict = compare_with_parent(parent, folder)
    for sentence in describe_comparison(by_set):
        print_line("compared", sentence)
    print_line("verdict", verdict)
    announce_end(group)

    # === Export ===
    if verdict == "worse" and not options.force:
        raise RunError(
            f"{lineage.name} {lineage.version} is worse than {lineage.parent.version} and was not exported. "
            f"See {folder.path / 'report.html'}; repeat the command with --force to export it anyway."
        )
    _export(folder, lineage, with_sample=not options.no_sample)
    if evaluated.rating.level == "useless":
        print_line("rating", f"useless, see above: do not serve {lineage.name} {lineage.version}.")
    else:
        _print_next(lineage)


def print_line(topic: str, sentence: str) -> None:
    """Prints a topic with its sentence and flushes."""
    print(format_line(topic, sentence), flush=True)


def _local_experiment(parent: RunFolder, options: RetrainOptions) -> ExperimentConfig:
    """What is known before the experiment of the next version: strategy, and where data and weights are."""
    splits, weights = parent.splits, parent.weights_path
    local = next_experiment(
        parent.experiment(), options.run, reviewed=options.reviewed, splits=splits, weights=weights
    )
    return local.model_copy(update={"strategy": options.strategy})


def _experiment(
    parent: RunFolder, options: RetrainOptions, lineage: Lineage
) -> tuple[ExperimentConfig, bool]:
    """The experiment, and whether the same command has started its run already."""
    if options.minutes is not None:
        check_minutes(options.minutes)
    experiment, runs = parent.experiment(), options.run.parent
    derived = f"{experiment.name.removesuffix(f'_{lineage.parent.version}')}_{lineage.version}"
    name = make_run_name(derived) if options.name is None else check_run_name(options.name)
    splits, weights = runs / f"{name}.splits.txt", parent.weights_path
    config = with_initial_sha256(
        next_experiment(experiment, runs / name, reviewed=options.reviewed, splits=splits, weights=weights)
    )
    if not config.folder.exists():
        return config, False
    existing = RunFolder(config.folder)
    existing.check_is_run()
    former = existing.experiment()
    if (former.initial_sha256, former.data.reviewed) != (config.initial_sha256, config.data.reviewed):
        raise RunError(f"'{config.folder}' is another run. Give this one a different --name.")
    return former, True


# === Data ===


def _split(parent: RunFolder, config: ExperimentConfig) -> None:
    """Splits the reviewed images and writes the splits of the new run."""
    old = list_dataset(parent.experiment().data, parent.splits).assigned()
    old = replace(old, items=tuple(old.items))
    both = list_dataset(config.data, None)
    if both.classes != old.classes:
        raise DatasetError(f"{config.data.root} has other classes than those '{parent.path}' was trained on.")
    reading = ReadingOptions.of(config.data)
    reviewed = {item.name for item in manifest.index(config.data.reviewed[-1], reading=reading).items}
    former = {item.name: item for item in old.items}
    new = [item for item in both.items if item.name in reviewed - former.keys()]
    photographs = _check(replace(both, items=tuple(new), problems=()), config, skip=config.data.skip_broken)
    needs_masks = config.input.policy == "tile"
    shares = SHARES if parent.compared_split == "test" else TRAIN_SHARES
    checked = _check(old, config, skip=True)
    split = split_reviewed(checked, photographs, shares=shares, seed=config.seed, needs_masks=needs_masks)
    print_line("reviewed", describe_counts(photographs, split, len(reviewed) - len(new)))
    for sentence in describe_ignored(split):
        print_line("note", sentence)
    if "train" not in split.splits.values():
        raise DatasetError(
            f"{config.data.reviewed[-1]} has no new photograph to train on for '{parent.path}'. Expected at "
            "least one: review more, and export again."
        )
    kept = {name: (each.split, each.fold) for name, each in former.items() if name not in split.replaced}
    splits = {**kept, **{name: (new_split, None) for name, new_split in split.splits.items()}}
    items = tuple(item.with_split(*splits.get(item.name, (None, None))) for item in both.items)
    assert config.data.splits is not None
    write_splits(config.data.splits, items, comment=f"Made by: python -m training retrain {parent.path}")


def _check(dataset: Dataset, config: ExperimentConfig, *, skip: bool) -> Sequence[CheckedPhotograph]:
    checked = check_dataset(
        dataset,
        white_level=config.input.white_level,
        max_pixels=config.data.max_pixels,
        strict=config.data.strict,
        progress=lambda items: progress_bar(items, desc="reading", unit="image", leave=False),
    )
    if not skip:
        raise_if_problems(checked.dataset)
    return checked.photographs


# === Training ===


def _limit_time(
    config: ExperimentConfig, parent: RunFolder | None, ends_at: float
) -> tuple[ExperimentConfig, float]:
    """Returns the experiment with the maximum number of steps unless it has started, without a `parent`, and
    the time at which training must end so that both networks are compared and the new one is exported at
    `ends_at`.
    """
    dataset = list_dataset(config.data, config.data.splits)
    first = replace(dataset.of_split("train")[0], mask_file=None, mask_values=None)
    size = item_reader(config)(first).image.shape
    forward_s = measure_forward(config, dataset.classes, (size[0], size[1]), clock)
    validated = len(dataset.of_split(config.validation_split))
    compared = len(dataset.of_split("test")) or validated
    train_until = ends_at - reserved_s(forward_s, validated, 2 * compared)
    if parent is not None:
        before = config.stages.steps
        total = sum(before.values())
        steps = planned_steps({name: number / total for name, number in before.items()})
        interval = validation_interval(forward_s, validated, train_until - clock())
        config = with_steps(config, parent.experiment(), steps, interval)
    return config, train_until


def _train(
    config: ExperimentConfig, control: TimeControl | None, group: ProcessGroupContext | None
) -> RunFolder:
    trainer = Trainer(config, control=control, process_group=group)
    print(trainer.describe_start(), flush=True)
    try:
        folder = trainer.run()
    except RunInterruptedError as stop:
        print(f"{stop} Repeat the command to resume.", file=sys.stderr)
        raise SystemExit(stop.exit_code) from None
    if control is not None:  # the log also has the stages before an interrupt
        record_steps_taken(folder, {record["stage"]: record["step"] for record in read_log(folder.path)})
    return folder


def _export(folder: RunFolder, lineage: Lineage, *, with_sample: bool) -> None:
    chosen = ExportOptions(
        name=lineage.name,
        version=lineage.version,
        engines=lineage.engines,
        with_sample=with_sample,
        parent=lineage.parent,
    )
    if lineage.is_versioned:
        _make_parent_stable(lineage)
    written, report = export_run(folder.path, lineage.out, chosen), folder.path / "report.html"
    print_line("wrote", f"{written.name} {written.version} to {lineage.out}, report {report}")


def _print_next(lineage: Lineage) -> None:
    if lineage.is_versioned:
        candidate = f'POST /v1/admin/models/{lineage.name}/candidate with {{"version": "{lineage.version}"}}'
        stays = f"{lineage.parent.version} stays in production."
        print_line("next", f"{candidate} runs it in shadow mode. {stays}")


def _make_parent_stable(lineage: Lineage) -> None:
    """Makes the parent stable; without aliases, the next start would serve the newest version."""
    versions = lineage.out.parent
    aliases, parent = versions / ALIASES, lineage.parent.version
    if not aliases.exists() and (versions / parent / MANIFEST).exists():
        write_text_atomic(aliases, json.dumps({STABLE: parent}) + "\n")
