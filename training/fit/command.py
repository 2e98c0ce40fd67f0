"""From a folder of photographs to a model, step by step. Read it downwards."""

import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from datasets.detection import detect_layout
from datasets.loading import load_dataset
from datasets.splitting import SPLITS, write_splits
from segdec.artifact import check_writable
from segdec.errors import ConfigError, RunError
from segdec.process_memory import memory_limit
from segdec.runtime.cli import EXIT_INTERRUPTED
from segdec.runtime.files import write_text_atomic
from training.config import ExperimentConfig
from training.data.run_data import open_check_cache
from training.distribution.interruption import RunInterruptedError, raise_on_sigterm
from training.evaluate import evaluate_run
from training.experiment_file import save_experiment
from training.export import ExportOptions, export_run
from training.fit.dataset_profile import (
    DatasetProfile,
    ProfiledDataset,
    ReadOptions,
    merge_defects,
    profile_dataset,
    rare_classes,
    store_checks,
)
from training.fit.deadline_control import DeadlineControl
from training.fit.experiment_choice import (
    DEFAULT_AREA,
    MIN_AREA,
    ExperimentChoice,
    Resources,
    choose_experiment,
)
from training.fit.messages import (
    describe_plan,
    describe_profile,
    describe_reasons,
    describe_split,
    format_line,
)
from training.fit.splitting import DatasetSplit, split_dataset
from training.fit.timing import count_validated, measure_times
from training.fit.training_plan import DatasetSizes, StepTimes, TrainingPlan, plan_training
from training.optimization.pretrained import IMAGENET, RANDOM, load_pretrained
from training.run.durations import format_duration
from training.run.folder import RunFolder
from training.run.records import UNTRAINED_DECISION
from training.trainer import Trainer

clock: Callable[[], float] = time.monotonic

INPUT_SHARES = (0.8, 0.65, 0.5, 0.4, 0.3, 0.2)
"""Shares of the usual input's pixels that are tried where time is short."""

MAX_MINUTES = 60 * 24 * 31

NO_MODEL = "There is no model: nothing was trained yet."
AGAIN = "A run of this name has been begun: start again with --overwrite."


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What a user may say.

    Attributes:
        root: Folder of the photographs.
        minutes: How long all of it may take.
        out: Folder of the model; None = `models` and the name of the run.
        layout: How the files lie; None = as they show.
        encoder_weights: As `encoder_weights` of an experiment; `none` = a network from random weights.
        name: Of the run; None = that of the folder.
        runs: Folder that holds all runs.
        overwrite: Replace a run and a model of this name.
        reading: How the files are read.
    """

    root: Path
    minutes: float = 10.0
    out: Path | None = None
    layout: str | None = None
    encoder_weights: str = IMAGENET
    name: str | None = None
    runs: Path = Path("runs")
    overwrite: bool = False
    read_options: ReadOptions = field(default_factory=ReadOptions)


def fit(options: FitOptions, began: float) -> None:
    """Looks at a folder, chooses, trains, measures and exports, and says what it does and why.

    Args:
        options: What the user said.
        began: When the command began, by `clock`.

    Raises:
        SegdecError: If the photographs or the time do not suffice, or something is in the way.
        SystemExit: If it was asked to stop; the best model so far is written then, if there is one.
    """
    ends_at = began + 60 * options.minutes
    name, out = _places(options)
    with raise_on_sigterm():
        _fit(options, name, out, began, ends_at)


def _fit(options: FitOptions, name: str, out: Path, began: float, ends_at: float) -> None:
    with _nothing_trained(options.runs / name):
        # === Look ===
        profiled = _survey(options)
        print_lines(*describe_profile(profiled.profile, profiled.notes))

        # === Choose ===
        profiled, division = _divide(profiled)
        print_lines(*describe_split(division))
        resources = _means(options)
        choice = _choose(profiled.profile, division, resources)
        print_lines(format_line("measuring", "how long a few steps take"))
        times = measure_times(choice, division.dataset, options.runs, clock)
        choice, planned = _fit_time(profiled.profile, division, resources, times, ends_at - clock())
        config = _experiment(choice, planned, name, options.runs)
        store_checks(profiled, open_check_cache(config, config.network.input_channels))
        print_lines(*describe_reasons(choice.reasons))
        print_lines(describe_plan(planned, config, options.minutes))
        _write(config, division, choice)
        print_lines(
            format_line(
                "experiment", f"{_experiment_file(config)}: all of this, to be changed and run again"
            ),
            "",
        )

        # === Train ===
        control = DeadlineControl(planned, ends_at + planned.overrun_s - planned.post_training_s, clock)
        with _undone_if_refused(config):
            trainer = Trainer(config, fresh=options.overwrite, control=control)
        print_lines(
            trainer.describe_start(), "Ctrl-C ends it with the best weights so far, measured and exported."
        )
    stopped = _train(trainer)
    config = record_steps_taken(trainer.folder, control)
    if stopped is None:  # else the file keeps the plan: what was cut short is not to be repeated
        _write(config, division, choice)

    # === Measure and export ===
    with _trained(config, division, out):
        print_lines(evaluate_run(trainer.folder.path, division.evaluated))
        export_run(trainer.folder.path, out, ExportOptions(overwrite=options.overwrite))
    why = "the machine was faster or slower than measured" if stopped is None else "it was stopped"
    print_lines("", *_ending(config, _describe_steps(control, planned, why), out, clock() - began))
    if stopped is not None:
        raise SystemExit(stopped.exit_code)


@contextmanager
def _nothing_trained(run: Path) -> Iterator[None]:
    """Within the block nothing is lost by an interrupt, and there is nothing to keep."""
    try:
        yield
    except (KeyboardInterrupt, RunInterruptedError) as stop:  # the latter from what is only measured
        _tell_no_model(run)
        raise SystemExit(getattr(stop, "exit_code", EXIT_INTERRUPTED)) from None


def _tell_no_model(run: Path) -> None:
    print(f"{NO_MODEL} {AGAIN}" if run.exists() else NO_MODEL, file=sys.stderr)


@contextmanager
def _undone_if_refused(config: ExperimentConfig) -> Iterator[None]:
    """Takes the experiment away if it cannot even begin, so that the same command can be given again."""
    try:
        yield
    except BaseException:
        for path in _files(config.runs, config.name):
            path.unlink(missing_ok=True)
        raise


@contextmanager
def _trained(config: ExperimentConfig, division: DatasetSplit, out: Path) -> Iterator[None]:
    """Within the block an interrupt leaves a finished run, of which a model can be made."""
    try:
        yield
    except KeyboardInterrupt as stop:
        run, options = shlex.quote(str(config.folder)), f"--split {division.evaluated}"
        print(
            "Stopped. The network is trained; what is missing:\n"
            f"  python -m training evaluate {run} {options}\n"
            f"  python -m training export {run} {shlex.quote(str(out))} --overwrite",
            file=sys.stderr,
        )
        raise SystemExit(getattr(stop, "exit_code", EXIT_INTERRUPTED)) from None


def _train(trainer: Trainer) -> RunInterruptedError | None:
    """Trains; returns what stopped it, if something did and there is a model."""
    try:
        trainer.run(keep_best=True)
    except RunInterruptedError as stop:
        if not trainer.folder.has_result:
            _tell_no_model(trainer.folder.path)
            raise SystemExit(stop.exit_code) from None
        print("Stopped: the best model so far is measured and exported.", file=sys.stderr, flush=True)
        return stop
    return None


def print_lines(*lines: str) -> None:
    """Prints lines at once, wherever stdout leads."""
    print(*lines, sep="\n", flush=True)


# === Look and choose ===


def _places(options: FitOptions) -> tuple[str, Path]:
    """Name of the run and place of the model, both free.

    Raises:
        ConfigError: If the time is none, or no name follows from the folder.
        RunError: If there is a run or a model already, or something else in the place of a run.
        ArtifactError: If the model cannot be written where it shall be.
    """
    if not 0 < options.minutes <= MAX_MINUTES:
        raise ConfigError(
            f"--minutes {options.minutes:g}. Expected how long all of it may take, in minutes, above 0 and "
            f"up to {MAX_MINUTES} (31 days); in fewer than three little is learnt."
        )
    root = options.root.resolve()
    name = options.name or (root.stem if root.is_file() else root.name)
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ConfigError(f"The folder's name '{name}' cannot name a run. Give another one with --name.")
    out, run = options.out or Path("models") / name, options.runs / name
    if out.exists():
        check_writable(out, overwrite=True)  # --overwrite does not help where no model lies
    for place in (run, *_files(options.runs, name), out):
        if place.exists() and not options.overwrite:
            raise RunError(f"'{place}' exists. Give --overwrite to replace it, or another --name or --out.")
    check_writable(out, options.overwrite)
    if run.exists():
        RunFolder(run).check_is_run()
    return name, out


def _survey(options: FitOptions) -> ProfiledDataset:
    """Loads and looks; where a class of defects hardly occurs, all become one."""
    layout = options.layout or detect_layout(options.root)
    dataset = load_dataset(layout, options.root, mask_threshold=options.read_options.mask_threshold)
    profiled = profile_dataset(dataset, layout, options.root, options.read_options)
    if not (hardly := rare_classes(profiled)):
        return profiled
    few = f"{', '.join(hardly)}: fewer than {len(SPLITS)} parts, too few to be told from other defects"
    return merge_defects(profiled, few)


def _divide(profiled: ProfiledDataset) -> tuple[ProfiledDataset, DatasetSplit]:
    """Divides; where no class of defects is to learn from, all become one."""
    division = split_dataset(profiled)
    if division.defective[0] or len(profiled.profile.classes) == 2:
        return profiled, division
    merged = merge_defects(profiled, "no defect trains, so that nothing tells one class from another")
    division = split_dataset(merged)
    return merged, replace(division, reasons=(*division.reasons, merged.notes[-1]))


def _choose(
    profile: DatasetProfile, division: DatasetSplit, resources: Resources, area: int = DEFAULT_AREA
) -> ExperimentChoice:
    train = division.good[0] + division.defective[0]
    taught = profile.with_annotations_of(division.dataset.of_split("train"))
    return choose_experiment(taught, division.defective, train, resources, area)


def _fit_time(
    profile: DatasetProfile, division: DatasetSplit, resources: Resources, times: StepTimes, left_s: float
) -> tuple[ExperimentChoice, TrainingPlan]:
    """Plans the steps; where they are too few, for the largest input of which there is time for enough."""
    usual = choice = _choose(profile, division, resources)
    sizes = _amounts(choice, division)
    planned = plan_training(choice.shares, times, sizes, left_s)
    for share in INPUT_SHARES:
        area = int(share * usual.area)
        if not planned.is_short or area < MIN_AREA:
            break
        choice = _choose(profile, division, resources, area)
        planned = plan_training(choice.shares, times.scaled(choice.area / usual.area), sizes, left_s)
    return choice, planned


def _means(options: FitOptions) -> Resources:
    """The encoder's weights, if they can be had.

    Raises:
        ConfigError: If a file was named that cannot be used.
    """
    memory = memory_limit()
    if options.encoder_weights == RANDOM:
        return Resources(None, "as --encoder-weights none says", memory)
    try:
        load_pretrained(
            ExperimentConfig(
                encoder_weights=options.encoder_weights,
                network={"preset": "mobilenet"},
                stages={"joint": {"steps": 1}},
            )
        )
    except ConfigError as error:
        if options.encoder_weights != IMAGENET:
            raise
        (reason, *_) = str(error).split(" Expected")
        return Resources(None, f"{reason} Name a file with --encoder-weights", memory)
    return Resources(options.encoder_weights, memory_bytes=memory)


def _amounts(choice: ExperimentChoice, division: DatasetSplit) -> DatasetSizes:
    evaluated = len(division.dataset.of_split(division.evaluated))
    train = division.good[0] + division.defective[0]
    val = count_validated(division.dataset.of_split("val"))
    return DatasetSizes(train, val, evaluated, choice.settings["batch_size"])


# === The experiment ===


def _experiment(choice: ExperimentChoice, planned: TrainingPlan, name: str, runs: Path) -> ExperimentConfig:
    data = {**choice.settings["data"], "splits": _files(runs, name)[1]}
    return choice.config(
        planned.steps, name=name, runs=runs, data=data, validate_every=planned.validate_every
    )


def _files(runs: Path, name: str) -> tuple[Path, Path]:
    """The experiment and its splits."""
    return runs / f"{name}.toml", runs / f"{name}.splits.txt"


def _experiment_file(config: ExperimentConfig) -> Path:
    return _files(config.runs, config.name)[0]


def _write(config: ExperimentConfig, division: DatasetSplit, choice: ExperimentChoice) -> None:
    """The splits, and the experiment with its reasons on top, as `python -m training run` takes it."""
    path, splits = _experiment_file(config), config.data.splits
    path.parent.mkdir(parents=True, exist_ok=True)
    chosen = f"Chosen by: python -m training fit {config.data.root}"
    if splits is not None:
        write_splits(splits, division.dataset.records, comment=chosen)
    told = [chosen, f"python -m training run {path} --name another", ""]
    told += [*describe_split(division), *describe_reasons(choice.reasons)]
    head = "".join(f"# {part}".rstrip() + "\n" for text in told for part in text.split("\n"))
    write_text_atomic(path, f"{head}\n{save_experiment(config)}")


def record_steps_taken(run: RunFolder, control: DeadlineControl) -> ExperimentConfig:
    """Returns the experiment with the steps that were taken, which becomes that of the run, too."""
    config = run.experiment()
    stages: dict[str, Any] = {
        name: stage.model_copy(update={"steps": control.taken.get(name, 0)}) for name, stage in config.stages
    }
    config = config.model_copy(update={"stages": config.stages.model_copy(update=stages)})
    run.save_thresholds(config, run.result())
    return config


def _describe_steps(control: DeadlineControl, planned: TrainingPlan, why: str) -> str:
    if control.taken == planned.steps:
        return "steps as planned"
    told = ", ".join(f"{name} {number}" for name, number in control.taken.items())
    return f"steps {told} in place of the planned ones: {why}"


def _ending(config: ExperimentConfig, steps: str, out: Path, took_s: float) -> list[str]:
    return [
        format_line("took", f"{format_duration(took_s)}; {steps}"),
        format_line(
            "wrote",
            f"model {out}, report {config.folder / 'report.html'}, experiment {_experiment_file(config)}",
        ),
        "",
        "Next:",
        *(f"  {command}  # {purpose}" for command, purpose in _next_commands(config, out)),
    ]


def _next_commands(config: ExperimentConfig, out: Path) -> list[tuple[str, str]]:
    """Serve the model, if it has learnt to judge; change its limits; train another. Each with its purpose."""
    folder = RunFolder(config.folder)
    result, run = folder.result(), shlex.quote(str(config.folder))
    serve = f"python -m api --model {shlex.quote(str(out))} --port 8000"
    calibrate = f"python -m training calibrate {run}"
    limits = (
        (f"{calibrate} --threshold.refused-share 0.02", "refuse at most one good part in 50; then export")
        if result.model.calibration.defect_rate is None
        else (f"{calibrate} --threshold.defect-rate 0.01", "one part in 100 is defective; then export")
    )
    again = f"python -m training run {shlex.quote(str(_experiment_file(config)))} --name {config.name}_2"
    return [
        *([] if UNTRAINED_DECISION in result.warnings else [(serve, "then open http://127.0.0.1:8000/")]),
        limits,
        (again, "the same again, once you have changed the file"),
    ]
