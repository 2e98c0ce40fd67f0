"""Measures `fit` on several data sets, beside two simple baselines, and writes one table.

    python -m benchmarks.suite DATA --baselines --write docs/evaluation.md

DATA holds one folder for each data set. Each model is trained without the test photographs and measured on
them as it was exported. Results are stored in --out at once; the same command measures the missing ones.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness import describe_machine, wrap_lines
from benchmarks.suite.baselines import BASELINES, BaselineRun, check_encoder
from benchmarks.suite.child_process import call_in_process
from benchmarks.suite.fitting import FitRun, FitSettings
from benchmarks.suite.results import FitResult, Result
from benchmarks.suite.sets import SuiteSet, list_sets
from benchmarks.suite.table import Row, replace_marked, split_marked, tabulate
from segdec.errors import ConfigError, SegdecError
from segdec.runtime.cli import clean_exit, parse_seed

GOOD_ONLY = ("capsule", "dagm_class1", "kolektorsdd", "leather")
"""Data sets that are by default also measured without defects in training."""

Measurement = FitRun | BaselineRun


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures what is missing and prints the table."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    end = words.index("--") if "--" in words else len(words)
    options, flags = build_parser().parse_args(words[:end]), tuple(words[end + 1 :])
    with clean_exit(group="train"):
        if not measure_suite(options, flags):
            raise SystemExit(1)


def build_parser() -> argparse.ArgumentParser:
    """Builds the parser of the arguments; those after `--` are for `fit`."""
    usage = "%(prog)s [options] DATA [-- flags of fit]"
    parser = argparse.ArgumentParser("python -m benchmarks.suite", usage, (__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("data", type=Path, metavar="DATA", help="folder with one folder for each data set")
    add("--sets", nargs="+", default=[], metavar="NAME", help="default: all that can be measured")
    add("--minutes", type=float, default=3.0, help="time limit of each fit (default: %(default)s)")
    add("--seeds", type=parse_seed, nargs="+", default=[0, 1, 2], metavar="N", help="default: 0 1 2")
    numbers = f"defective training photographs; default: all, and also 0 for {', '.join(GOOD_ONLY)}"
    add("--defects", nargs="+", type=_parse_defects, metavar="N", help=numbers)
    add("--encoder-weights", default="imagenet", metavar="FILE", help="of fit and the baselines")
    add("--encoder", metavar="NAME", help="default: as fit chooses; mobilenet for the baselines")
    add("--out", type=Path, default=Path("build/suite"), help="folder of the results (default: %(default)s)")
    add("--baselines", action="store_true", help="measure and show the baselines too")
    add("--write", type=Path, metavar="FILE", help="Markdown file whose table is replaced")
    add("--table", default="suite", metavar="NAME", help="the table of --write between two <!-- NAME -->")
    return parser


def measure_suite(options: argparse.Namespace, flags: tuple[str, ...]) -> bool:
    """Measures what is missing, and prints and writes the table; returns whether nothing failed.

    Raises:
        SegdecError: If an option is wrong, or a stored result has other settings.
    """
    marker = f"<!-- {options.table} -->"
    if options.write is not None:
        split_marked(options.write, marker)
    sets, errors = list_sets(options.data, options.sets)
    for name, error in errors.items():
        _print_error(f"{'failed' if options.sets else 'ignored'}: {name}: {error}")
    if not sets:
        raise ConfigError(f"No data set of '{options.data}' can be measured. Expected one with a test split.")
    flags = (*(("--encoder", options.encoder) if options.encoder else ()), *flags)
    settings = FitSettings(options.out, options.minutes, options.encoder_weights, flags)
    cells = [(source, defects) for source in sets for defects in _defects(source, options.defects)]
    runs = [FitRun(*cell, seed, settings) for seed in options.seeds for cell in cells]
    encoder = options.encoder or "mobilenet", options.encoder_weights
    baselines = [BaselineRun(source, name, *encoder) for source in sets for name in BASELINES]
    measurements = [*runs, *(baselines if options.baselines else ())]

    results = load_results(measurements, options.out)
    missing = [run for run in measurements if run.name not in results]
    if missing and (options.baselines or options.encoder_weights != "none"):
        call_in_process(check_encoder, *encoder)
    results |= measure_missing(missing, options.out)

    rows = [row for cell in cells if (row := _row(*cell, runs, baselines, results)) is not None]
    text = f"{tabulate(rows)}\n\n{_describe(settings, options.seeds, with_baselines=options.baselines)}"
    print(text, flush=True)
    complete = len(results) == len(measurements) and not (errors and options.sets)
    if options.write is not None:
        if complete:
            replace_marked(options.write, text, marker)
        else:
            _print_error(f"{options.write} was not changed, since results are missing.")
    return complete


def load_results(measurements: Sequence[Measurement], out: Path) -> dict[str, Result]:
    """Reads the stored results, by name; raises a `RunError` if one has other settings."""
    found = {run.name: run.kind.load(_path(run, out), run.settings) for run in measurements}
    return {name: result for name, result in found.items() if result is not None}


def measure_missing(measurements: Sequence[Measurement], out: Path) -> dict[str, Result]:
    """Measures one after the other and stores each result; errors are printed and leave no result."""
    results: dict[str, Result] = {}
    for run in measurements:
        try:
            result = run.measure()
        except SegdecError as error:
            _print_error(f"failed: {run.name}: {error}")
            continue
        result.save(_path(run, out))
        results[run.name] = result
        print(f"{run.name}: AP {result.average_precision:.3f}, AUROC {result.auroc:.3f}", flush=True)
    return results


def _row(
    source: SuiteSet,
    defects: int | None,
    runs: Sequence[FitRun],
    baselines: Sequence[BaselineRun],
    results: Mapping[str, Result],
) -> Row | None:
    """The results of a data set with a number of defects; None without any."""
    own = [run.name for run in runs if run.source is source and run.defects == defects]
    found = [result for name in own if isinstance(result := results.get(name), FitResult)]
    beside = [run for run in baselines if run.source is source and run.name in results]
    return Row(found, {run.baseline: results[run.name] for run in beside}) if found else None


def _path(run: Measurement, out: Path) -> Path:
    return out / "results" / f"{run.name}.json"


def _defects(source: SuiteSet, chosen: Sequence[int | None] | None) -> Sequence[int | None]:
    if chosen is not None:
        return chosen
    return (None, 0) if source.name in GOOD_ONLY else (None,)


def _parse_defects(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of photographs. Expected 0, 1, … or all.")
    return int(text)


def _describe(settings: FitSettings, seeds: Sequence[int], *, with_baselines: bool) -> str:
    machine = describe_machine()
    listed = ", ".join(map(str, seeds))
    text = (
        f"`{settings}`; seeds {listed}, medians; {machine['cores']} cores of {machine['processor']}, "
        f"{machine['date']}. defects: defective training photographs; excess cost: beyond that of the "
        "best threshold, in false alarms; s: duration of `fit`; ms: inference of one photograph"
    )
    if with_baselines:
        text += "; above the better one: difference of AP and AUROC to the better baseline"
    return wrap_lines(f"{text}.")


def _print_error(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
