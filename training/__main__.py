"""Command line: `python -m training run|evaluate|export`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from segdec.terminal import clean_exit, quiet_tensorflow


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, evaluates or exports a model."""
    parser = build_parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and options.command is not run:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    with clean_exit(extra="train"):
        options.command(options, rest)


def build_parser() -> argparse.ArgumentParser:
    """The commands and their arguments."""
    parser = argparse.ArgumentParser("python -m training", description=__doc__)
    commands = parser.add_subparsers(required=True)

    train = commands.add_parser("run", help="train the stages of an experiment", add_help=False)
    train.add_argument("experiment", type=Path, nargs="?", help="TOML file; see training/experiments/")
    train.add_argument("--fresh", action="store_true", help="start over even if the run folder exists")
    train.add_argument("-h", "--help", action="store_true", help="list all fields")
    train.set_defaults(command=run)

    score = commands.add_parser("evaluate", help="measure a finished run on a split and write its report")
    score.add_argument("run", type=Path, help="run folder")
    score.add_argument("--split", choices=("train", "val", "test"), default="test")
    score.set_defaults(command=evaluate)

    write = commands.add_parser("export", help="write the artifact of a finished run")
    write.add_argument("run", type=Path, help="run folder")
    write.add_argument("out", type=Path, help="folder of the artifact")
    write.add_argument("--name", help="name of the model; default: that of the run")
    write.add_argument("--version", default="1", help="version of the model")
    write.add_argument("--overwrite", action="store_true", help="replace an existing artifact")
    write.set_defaults(command=export)
    return parser


def run(options: argparse.Namespace, fields: list[str]) -> None:
    """Trains an experiment; `--field value` pairs override its file."""
    from training.config import load_experiment, print_fields

    if options.help or options.experiment is None:
        print_fields()
        return
    config = load_experiment(options.experiment, fields)
    quiet_tensorflow()
    from training.trainer import Trainer

    trainer = Trainer(config, fresh=options.fresh)
    print(trainer.opening())
    folder = trainer.run()
    print(f"Finished. Measure it with: python -m training evaluate {folder.path}")


def evaluate(options: argparse.Namespace, _: list[str]) -> None:
    """Measures a run and writes `metrics.json`, `predictions.csv` and `report.html` into its folder."""
    quiet_tensorflow()
    from training.results import evaluate_run

    print(evaluate_run(options.run, options.split))


def export(options: argparse.Namespace, _: list[str]) -> None:
    """Writes the artifact of a run."""
    quiet_tensorflow()
    from training.results import export_run

    manifest = export_run(
        options.run, options.out, name=options.name, version=options.version, overwrite=options.overwrite
    )
    print(f"Wrote {manifest.name} {manifest.version} to {options.out}. Serve it with: ")
    print(f"python -m api --model {options.out}")


if __name__ == "__main__":
    main(sys.argv[1:])
