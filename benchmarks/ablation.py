"""Trains variants of an experiment, each with other settings, and prints what each of them reaches.

    python -m datasets toy data/toy
    python -m benchmarks.ablation training/experiments/toy_compact.toml benchmarks/ablations/toy.toml

A table of variants is TOML: one heading a question, below it the name of each variant and its flags; `all`,
before the first heading, are flags of all of them, such as a short schedule. Variants of equal flags share a
run. Runs that have been made are kept, so that the same command goes on where it was stopped. Flags after
`--` go to all variants too: `-- --data.root data/kolektorsdd`.
"""

import argparse
import json
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from segdec.errors import ConfigError, RunError
from segdec.runtime.cli import clean_exit
from segdec.runtime.files import write_text_atomic

FIGURES = {
    "average_precision": ("AP", 3),
    "errors": ("errors", 0),
    "fp_at_full_recall": ("FP at FN = 0", 0),
    "pixel_f1": ("pixel F1", 3),
    "pixel_iou": ("pixel IoU", 3),
    "minutes": ("minutes", 1),
}
"""Heading of each figure, and its decimals."""

MINUTES = "minutes.json"
"""How long a run was trained; written when it has been evaluated."""


@dataclass(frozen=True)
class Variant:
    """One line of the table.

    Attributes:
        question: The heading that it stands under.
        name: What it is called there.
        flags: Fields of the experiment and their values.
        common: Those of all variants, which come before its own.
    """

    question: str
    name: str
    flags: tuple[str, ...]
    common: tuple[str, ...] = ()

    def run_name(self, seed: int) -> str:
        """Returns the name of its run with `seed`."""
        words = [flag.removeprefix("--") for flag in self.flags] or ["plain"]
        return "_".join([*words, f"seed{seed}"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains and evaluates what has not been yet, then prints one table a question."""
    parser = argparse.ArgumentParser(
        usage="%(prog)s [options] experiment variants [-- flags of the experiment]",
        description="What each setting of an experiment is worth.",
    )
    parser.add_argument("experiment", type=Path, help="the experiment that the variants change")
    parser.add_argument("variants", type=Path, help="TOML file of variants")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="default: 0")
    parser.add_argument("--only", default="", help="variants whose question or name holds this text")
    parser.add_argument("--runs", type=Path, default=Path("runs/ablation"), help="default: %(default)s")
    own, flags = split_arguments(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(own, argparse.Namespace(flags=flags))
    with clean_exit():
        variants = [
            variant
            for variant in read_variants(options.variants)
            if options.only in f"{variant.question} {variant.name}"
        ]
        for seed in options.seeds:
            for variant in variants:
                settings = (*options.flags, *variant.common, *variant.flags)
                train_once(options.experiment, options.runs / variant.run_name(seed), seed, settings)
        print(describe(variants, options.runs, options.seeds))


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns what comes before `--`, and the flags of the experiment behind it; argparse mixes them up."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    return list(arguments[:end]), list(arguments[end + 1 :])


def read_variants(path: Path) -> list[Variant]:
    """Reads the variants of a file, in its order.

    Raises:
        ConfigError: If the file cannot be read or holds something else.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        common = tuple(shlex.split(content.pop("all", "")))
        return [
            Variant(question, name, tuple(shlex.split(flags)), common)
            for question, entries in content.items()
            for name, flags in entries.items()
        ]
    except (OSError, tomllib.TOMLDecodeError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"{path} is no table of variants ({error}). Expected [question] and lines: name = 'flags'."
        ) from error


def describe(variants: Sequence[Variant], runs: Path, seeds: Sequence[int]) -> str:
    """Returns a Markdown table a question: mean over the seeds, ± standard deviation if there are several."""
    lines: list[str] = []
    for question in dict.fromkeys(variant.question for variant in variants):
        lines += [
            "",
            f"| {question} | {' | '.join(heading for heading, _ in FIGURES.values())} |",
            "|---" * (len(FIGURES) + 1) + "|",
        ]
        for variant in (variant for variant in variants if variant.question == question):
            figures = [_read(runs / variant.run_name(seed)) for seed in seeds]
            cells = [_cell([each[name] for each in figures], places) for name, (_, places) in FIGURES.items()]
            lines.append(f"| {variant.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def train_once(experiment: Path, folder: Path, seed: int, flags: Sequence[str]) -> None:
    """Trains and evaluates a run and writes down how many minutes its training took, unless it was before.

    Raises:
        RunError: If a command fails.
    """
    if (folder / MINUTES).exists():
        return
    place = ["--name", folder.name, "--runs", str(folder.parent), "--seed", str(seed)]
    began = time.perf_counter()
    _command("run", str(experiment), *place, "--fresh", *flags)
    minutes = (time.perf_counter() - began) / 60
    _command("evaluate", str(folder))
    write_text_atomic(folder / MINUTES, json.dumps(minutes))


def _command(*words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "training", *words], check=False)
    if done.returncode:
        raise RunError(f"`python -m training {' '.join(words)}` left with {done.returncode}.")


def _read(folder: Path) -> dict[str, Any]:
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    metrics["errors"] = metrics["false_positives"] + metrics["false_negatives"]
    return {**metrics, "minutes": json.loads((folder / MINUTES).read_text(encoding="utf-8"))}


def _cell(values: Sequence[float | None], decimals: int) -> str:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return "–"
    if len(known) == 1:
        return f"{known[0]:.{decimals}f}"
    decimals = max(1, decimals)  # a mean of counts is no count
    return f"{mean(known):.{decimals}f} ± {stdev(known):.{decimals}f}"


if __name__ == "__main__":
    main()
