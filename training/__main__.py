"""Command line: `python -m training COMMAND`; `--help` lists the commands."""

import argparse
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from datasets.reading_arguments import add_reading_arguments
from segdec.artifact import MANIFEST
from segdec.engines import ENGINES
from segdec.errors import ConfigError
from segdec.runtime.cli import (
    clean_exit,
    import_tensorflow,
    parse_pixel_limit,
    parse_seed,
    parse_white_level,
    raise_pixel_limit,
)

if TYPE_CHECKING:
    from datasets.sample import Split
    from training.config import ExperimentConfig
    from training.distribution.cluster import Cluster

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
    AddArgument = Callable[..., argparse.Action]

FRESH, SPLITS = "--fresh", ("train", "val", "test")
SPLIT_HELP = "split of the images; default: test, or with folds train if no image is in test"
NO_SAMPLE_HELP = "no image is stored in the model: self-test with noise, no report"
RUN_USAGE = (
    "Usage: python -m training run EXPERIMENT.toml [--fresh] [--field value]… "
    "(--fresh replaces an existing run)"
)
CHECK_USAGE = (
    "Usage: python -m training check EXPERIMENT.toml [--field value]… "
    "(takes two steps of each stage, evaluates, exports, and estimates duration and memory)"
)
CALIBRATE_USAGE = (
    "Usage: python -m training calibrate RUN [--folds K | --by RUN…] [--threshold.field value]… "
    "(chooses new calibration and thresholds of a finished run); "
    "python -m training calibrate MODEL --threshold.score SCORE (sets that of an exported model)"
)
SIGNALS = (
    "SIGTERM and Ctrl-C save a checkpoint and exit with code 75 and 130; the same command without --fresh "
    "resumes the run."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, evaluates or exports a model."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    with clean_exit(group="train"):
        if arguments and arguments[0] in EXPERIMENT_COMMANDS:
            EXPERIMENT_COMMANDS[arguments[0]](arguments[1:])
            return
        options = build_parser().parse_args(arguments)
        options.command(options)


def build_parser() -> argparse.ArgumentParser:
    """Builds the parser of the commands and their arguments."""
    parser = argparse.ArgumentParser("python -m training", description="Train, evaluate and export models.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_fit(commands)
    _add_retrain(commands)
    _add_worker(commands)
    for name, command in EXPERIMENT_COMMANDS.items():
        commands.add_parser(name, help=command.__doc__)
    _add_measuring(commands)
    _add_artifacts(commands)
    return parser


def _add_command(commands: "Commands", command: Callable[[argparse.Namespace], None]) -> "AddArgument":
    """Adds a command with the name and the docstring of its function."""
    parser = commands.add_parser(command.__name__, help=command.__doc__)
    parser.set_defaults(command=command)
    return parser.add_argument


def _add_strategy(add: "AddArgument") -> None:
    strategy = "multi-worker: with the machines of TF_CONFIG, each with the same flags and a copy of the data"
    choices = ("auto", "multi-worker")
    add("--strategy", choices=choices, default="auto", help=f"{strategy}; auto: if TF_CONFIG names several")


def _add_fit(commands: "Commands") -> None:
    add = _add_command(commands, fit)
    add("root", type=Path, metavar="FOLDER", help="folder of the images, in any known layout")
    limit = "time limit of the whole command (default: 10, with --all-steps 720)"
    add("--minutes", type=float, help=limit)
    steps = "take all steps, however long they take; --minutes only limits a slow machine"
    add("--all-steps", action="store_true", help=steps)
    add("--out", type=Path, metavar="MODEL", help="folder of the model; default: models/NAME")
    add("--name", help="name of run and model; default: that of the folder, with _ for spaces")
    add("--version", default="1", help="version of the model (default: %(default)s)")
    add("--runs", type=Path, default=Path("runs"), help="folder of all runs (default: %(default)s)")
    add("--layout", help="layout of the files; default: detected")
    splits = "split file; photographs without a line are ignored. Default: the split of the folder, if any"
    add("--splits", type=Path, metavar="FILE", help=splits)
    test = "folder of test photographs, in the same layout, that are only measured"
    add("--test", type=Path, metavar="FOLDER", help=test)
    add("--seed", type=parse_seed, metavar="N", default=0, help="seed of the training (default: %(default)s)")
    listed = (
        "encoder, see python -m training encoders; default: one whose weights are present, else mobilenet"
    )
    add("--encoder", metavar="NAME", help=listed)
    encoder = "its weights file; default: installed, in Keras' cache, or downloaded; none: no encoder"
    add("--encoder-weights", default="imagenet", metavar="FILE", help=encoder)
    limit = "choose the first encoder with which the exported model predicts a photograph within this time"
    add("--max-ms", type=float, metavar="MS", help=limit)
    area = "pixels of the network's input; default: chosen by the smallest defect and the time"
    add("--area", type=parse_pixel_limit, metavar="N", help=area)
    _add_strategy(add)
    add("--overwrite", action="store_true", help="replace the run and the model of this name")
    resume = (
        "continue an interrupted run of this name from its last checkpoint with the time that was left; "
        "SIGTERM then saves a checkpoint and exits with 75, Ctrl-C exports the best model so far"
    )
    add("--resume", action="store_true", help=resume)
    add("--skip-broken", action="store_true", help="skip unusable images")
    white = "white value of 16-bit images, if the camera has fewer bits"
    add("--white-level", type=parse_white_level, metavar="VALUE", help=white)
    add_reading_arguments(add)
    add("--max-pixels", type=parse_pixel_limit, metavar="N", help="maximum height × width of an image")


def _add_retrain(commands: "Commands") -> None:
    add = _add_command(commands, retrain)
    add("run", type=Path, metavar="RUN", help="folder of a finished run")
    reviewed = "output of python -m api export-reviewed"
    add("--reviewed", type=Path, required=True, metavar="FOLDER", help=reviewed)
    parent = "model that was exported from the run; default: the newest one in models/NAME"
    add("--parent", type=Path, metavar="MODEL", help=parent)
    add("--out", type=Path, metavar="MODEL", help="folder of the new model; default: next to the current one")
    add("--version", help="version of the new model; default: the current one plus 1")
    add("--name", help="name of the new run; default: name of the run with the new version")
    minutes = "time limit of the whole command; default: two fifths of the steps of the run"
    add("--minutes", type=float, help=minutes)
    _add_strategy(add)
    add("--force", action="store_true", help="export the model even if it is worse")
    add("--no-sample", action="store_true", help=NO_SAMPLE_HELP)


def _add_worker(commands: "Commands") -> None:
    add = _add_command(commands, worker)
    add("--url", required=True, help="address of the service, for example http://127.0.0.1:8000")
    key = "file with a key of the service's --train-keys"
    add("--key-file", type=Path, required=True, metavar="FILE", help=key)
    folder = "folder for data and runs; one worker at a time (default: %(default)s)"
    add("--folder", type=Path, default=Path("worker"), help=folder)
    add("--name", help="name of the worker; default: that of the machine")
    address = (
        "where the workers of other machines reach this one; default: it takes no job for several machines"
    )
    add("--address", metavar="HOST:PORT", help=address)
    signing = "private key that signs the models, see python -m segdec keygen; default: they stay unsigned"
    add("--signing-key", type=Path, metavar="FILE", help=signing)
    authority = "certificate authority of the service's https certificate; default: those of the system"
    add("--ca-file", type=Path, metavar="FILE", help=authority)
    add("--once", action="store_true", help="end after one job")


def _add_measuring(commands: "Commands") -> None:
    add = _add_command(commands, evaluate)
    add("run", type=Path, help="run folder")
    add("--split", choices=SPLITS, help=SPLIT_HELP)
    add = _add_command(commands, join)
    add("runs", type=Path, nargs="+", metavar="RUN", help="run folder, evaluated")
    add("--out", type=Path, help="folder for joined.json, joined.csv and report.html")
    add = _add_command(commands, compare)
    add("first", type=Path, metavar="RUN_A", help="run folder, evaluated")
    add("second", type=Path, metavar="RUN_B", help="run folder, evaluated on the same split")


def _add_artifacts(commands: "Commands") -> None:
    add = _add_command(commands, export)
    add("run", type=Path, help="run folder")
    add("out", type=Path, help="folder of the artifact")
    add("--name", help="name of the model; default: that of the run")
    add("--version", default="1", help="version of the model")
    add("--overwrite", action="store_true", help="replace an existing artifact")
    engines = (
        f"engines of the model: {', '.join(ENGINES)} (default: tensorflow). The first is preferred, or, if "
        "it is a float32 engine, the fastest float32 engine"
    )
    add("--engines", nargs="+", default=["tensorflow"], metavar="ENGINE", help=engines)
    measure = "prefer the first of --engines, without measuring their speed"
    add("--no-measure", action="store_true", help=measure)
    add("--force", action="store_true", help="also export engines that are worse than the network")
    add("--no-sample", action="store_true", help=NO_SAMPLE_HELP)
    add = _add_command(commands, verify)
    add("run", type=Path, help="run folder")
    add("model", type=Path, help="artifact that was exported from it")
    add("--split", choices=SPLITS, help=SPLIT_HELP)
    add = _add_command(commands, encoders)
    fetch = "download the ImageNet weights of this encoder unless they are present"
    add("--fetch", metavar="NAME", help=fetch)


def run(arguments: list[str]) -> None:
    """Trains the stages of an experiment: `run EXPERIMENT.toml [--fresh] [--field value]…`."""
    from training.distribution.cluster import find_cluster

    fields = [word for word in arguments[1:] if word != FRESH]
    config = read_experiment([*arguments[:1], *fields], RUN_USAGE, SIGNALS)
    cluster = find_cluster()
    import_tensorflow(trains=True)
    from training.distribution.interruption import RunInterruptedError

    try:
        with _exit_if_peer_lost():
            train(config, cluster, fresh=FRESH in arguments)
    except RunInterruptedError as stop:
        again = shlex.join(["python", "-m", "training", "run", arguments[0], *fields])
        print(stop if cluster else f"{stop} Resume with: {again}", file=sys.stderr)
        raise SystemExit(stop.exit_code) from None


@contextmanager
def _exit_if_peer_lost() -> Iterator[None]:
    """Ends this process at once if another one of its cluster was lost within the block."""
    from training.distribution.interruption import PeerLostError

    try:
        yield
    except PeerLostError as lost:
        print(f"error: {lost}", file=sys.stderr, flush=True)
        os._exit(lost.exit_code)  # a normal exit would wait for the lost process


def check(arguments: list[str]) -> None:
    """Dry-runs an experiment: `check EXPERIMENT.toml [--field value]…`."""
    config = read_experiment(arguments, CHECK_USAGE)
    import_tensorflow(trains=True)
    from training.distribution.interruption import RunInterruptedError
    from training.dry_run import dry_run

    try:
        print(dry_run(config))
    except RunInterruptedError as stop:
        raise SystemExit(stop.exit_code) from None


def launch(arguments: list[str]) -> NoReturn:
    """Trains on a local cluster: `launch --workers N [--ps P] EXPERIMENT.toml [--field value]…`."""
    from training.distribution.launch import launch

    raise SystemExit(launch(arguments))


def calibrate(arguments: list[str]) -> None:
    """Chooses new thresholds of a run: `calibrate RUN [--folds K | --by RUN…] [--threshold.field value]…`."""
    if "--help" in arguments or "-h" in arguments:
        print(CALIBRATE_USAGE, *_threshold_fields(), sep="\n")
        raise SystemExit(0)
    if not arguments or arguments[0].startswith("-"):
        raise ConfigError(f"No run given. {CALIBRATE_USAGE}")
    parser = argparse.ArgumentParser("python -m training calibrate", usage=CALIBRATE_USAGE, add_help=False)
    parser.add_argument("run", type=Path)
    more = parser.add_mutually_exclusive_group()
    more.add_argument("--folds", type=int, default=0)
    more.add_argument("--by", type=Path, nargs="+", default=[], metavar="RUN")
    options, fields = parser.parse_known_args(arguments)
    if (options.run / MANIFEST).is_file():  # a run has none
        _calibrate_model(options.run, arguments[1:])
        return
    import_tensorflow(trains=options.folds > 0)
    from training.calibrate import calibrate_run
    from training.distribution.interruption import RunInterruptedError
    from training.run.folder import RunFolder

    experiment = RunFolder.finished(options.run).experiment(fields)
    for word in fields:
        if word.startswith("--") and not word.startswith(("--threshold.", "--no-threshold.")):
            raise ConfigError(
                f"{word} cannot change in a finished run. Expected only --threshold.field value."
            )
    settings = experiment.threshold
    if not any(word.startswith("--threshold.score") for word in fields):
        settings = settings.model_copy(update={"score": None})  # an earlier command may have set it
    raise_pixel_limit(experiment.data.max_pixels)
    try:
        for line in calibrate_run(options.run, settings, folds=options.folds, by=options.by):
            print(line, flush=True)
    except RunInterruptedError as stop:
        print(f"{stop} Repeat the command to resume.", file=sys.stderr)
        raise SystemExit(stop.exit_code) from None


def _calibrate_model(model: Path, arguments: list[str]) -> None:
    from training.model_threshold import read_score, set_model_threshold

    for line in set_model_threshold(model, read_score(model, arguments)):
        print(line)


def _threshold_fields() -> Iterator[str]:
    from training.config import ThresholdConfig

    for name, field in ThresholdConfig.model_fields.items():
        yield f"  --threshold.{name.replace('_', '-')} (default: {field.default}): {field.description}"


EXPERIMENT_COMMANDS = {"check": check, "run": run, "launch": launch, "calibrate": calibrate}
"""Commands whose flags are the fields of the experiment."""


def read_experiment(arguments: list[str], *usage: str) -> "ExperimentConfig":
    """Reads an experiment file with flags that override its fields; `--help` prints the fields and exits."""
    from training.experiment_file import load_experiment, print_fields

    if "--help" in arguments or "-h" in arguments:
        print(*usage, sep="\n")
        print_fields()
        raise SystemExit(0)
    if not arguments or arguments[0].startswith("-"):
        raise ConfigError(f"No experiment given. {usage[0]}")
    config = load_experiment(Path(arguments[0]), arguments[1:])
    raise_pixel_limit(config.data.max_pixels)
    return config


def train(config: "ExperimentConfig", cluster: "Cluster | None", *, fresh: bool) -> None:
    """Trains, or executes the work that the chief of the cluster assigns to this process."""
    from training.distribution.strategies import serve
    from training.trainer import Trainer

    if cluster is not None and cluster.is_server:
        print(f"Serving the chief as {cluster.describe()}.", flush=True)
        serve(cluster, config.devices)
    trainer = Trainer(config, fresh=fresh, cluster=cluster)
    print(trainer.describe_start(), flush=True)
    folder = trainer.run()
    if trainer.is_chief:
        print(f"Finished. Evaluate it with: python -m training evaluate {folder.path}")


def fit(options: argparse.Namespace) -> None:
    """Chooses an experiment for a folder, trains, evaluates and exports, in one command."""
    from training.distribution.cluster import find_cluster

    started = time.monotonic()
    cluster = find_cluster()
    import_tensorflow(trains=True)
    from training.fit import command

    began = command.clock() - (time.monotonic() - started)  # including the imports
    given = {name: value for name, value in vars(options).items() if name != "command" and value is not None}
    if options.all_steps:
        given.setdefault("minutes", command.ALL_STEPS_MINUTES)
    chosen = command.FitOptions(**given)
    raise_pixel_limit(chosen.max_pixels)
    with _exit_if_peer_lost():
        command.fit(chosen, began, cluster)


def retrain(options: argparse.Namespace) -> None:
    """Continues a run with reviewed images, and exports the new model unless it is worse."""
    from training.distribution.cluster import find_cluster

    started = time.monotonic()
    cluster = find_cluster()
    import_tensorflow(trains=True)
    from training.fit.command import clock
    from training.retrain import command

    began = clock() - (time.monotonic() - started)
    _raise_pixel_limit_of(options.run)
    given = {name: value for name, value in vars(options).items() if name != "command"}
    with _exit_if_peer_lost():
        command.retrain(command.RetrainOptions(**given), began, cluster)


def worker(options: argparse.Namespace) -> None:
    """Trains the jobs that engineers order at a service; SIGTERM and Ctrl-C release a job."""
    from training.worker import command

    given = {name: value for name, value in vars(options).items() if name != "command"}
    command.work(command.WorkerOptions(**given))


def evaluate(options: argparse.Namespace) -> None:
    """Evaluates a finished run on a split and writes its report."""
    import_tensorflow()
    from training.evaluate import evaluate_run

    _raise_pixel_limit_of(options.run)
    print(evaluate_run(options.run, _split(options)))


def _split(options: argparse.Namespace) -> "Split":
    from training.run.folder import RunFolder

    return options.split or RunFolder.finished(options.run).compared_split


def _raise_pixel_limit_of(run: Path) -> None:
    from training.run.folder import RunFolder

    raise_pixel_limit(RunFolder.finished(run).experiment().data.max_pixels)


def join(options: argparse.Namespace) -> None:
    """Joins evaluated runs: folds, seeds, or both."""
    from training.metrics.aggregation import aggregate_runs, write_aggregate
    from training.reporting.aggregate_report import write_aggregate_report
    from training.reporting.tables import aggregate_table

    aggregate = aggregate_runs(options.runs)
    print(aggregate_table(aggregate))
    if options.out:
        write_aggregate(options.out, aggregate)
        write_aggregate_report(options.out / "report.html", aggregate)
        print(f"Wrote joined.json, joined.csv and report.html to {options.out}.")


def compare(options: argparse.Namespace) -> None:
    """Tests whether two evaluated runs differ significantly."""
    from training.metrics.comparison import compare_runs
    from training.reporting.tables import comparison_table

    print(comparison_table(compare_runs(options.first, options.second)))


def export(options: argparse.Namespace) -> None:
    """Writes the artifact of a finished run."""
    import_tensorflow()
    from training.export import ExportOptions, export_run
    from training.metrics.verification import describe_speed, describe_variant

    chosen = ExportOptions(
        name=options.name,
        version=options.version,
        engines=list(dict.fromkeys(options.engines)),
        with_sample=not options.no_sample,
        force=options.force,
        measure=not options.no_measure,
        overwrite=options.overwrite,
    )
    manifest = export_run(options.run, options.out, chosen)
    if any(variant.verification for variant in manifest.variants.values()):
        print("Each engine compared with the trained network, on the validation photographs:")
    for name, variant in manifest.variants.items():
        print(describe_variant(name, variant))
    if manifest.speed:
        print(describe_speed(manifest.speed, manifest.engines_by_speed[0]))
    print(f"Wrote {manifest.name} {manifest.version} to {options.out}.")
    if manifest.rating is not None and manifest.rating.level == "useless":
        print("The last evaluation rated it useless: see the report. Do not serve it.")
    else:
        print(f"Serve it with: python -m api --model {options.out}")


def verify(options: argparse.Namespace) -> None:
    """Compares the engines of an artifact with the network of its run."""
    import_tensorflow()
    from training.export import verify_artifact

    for line in verify_artifact(options.run, options.model, _split(options)):
        print(line, flush=True)


def encoders(options: argparse.Namespace) -> None:
    """Lists the pretrained encoders with their cost, licence and weights; downloads weights."""
    import_tensorflow()
    from training.encoders import describe_encoders, fetch_encoder

    for line in [fetch_encoder(options.fetch)] if options.fetch else describe_encoders():
        print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
