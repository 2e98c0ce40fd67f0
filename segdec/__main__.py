"""The command `segdec`: predicts image files, watches camera folders and signs models."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

from segdec import __version__
from segdec.artifact import UnlikeAction
from segdec.command_line.inspection_loop import (
    NOT_INSPECTED,
    TerminalTable,
    inspect,
    print_not_inspected_count,
    print_plan_changes,
    print_review_count,
)
from segdec.command_line.inspectors import Inspector, LocalInspector, RemoteInspector
from segdec.command_line.overlay_folder import OverlayFolder
from segdec.command_line.photographs import find_photographs, parse_shard
from segdec.command_line.plan import add_plan
from segdec.command_line.service_keys import KEY_VARIABLE, open_client
from segdec.command_line.signing import add_signing
from segdec.command_line.watch import add_watch
from segdec.engines import ENGINES
from segdec.errors import ConfigError
from segdec.images import DEFAULT_MAX_PIXELS
from segdec.plan.plan_file import read_plan
from segdec.runtime.cli import Commands, clean_exit, parse_pixel_limit, parse_thread_count, raise_pixel_limit
from segdec.runtime.threads import limit_opencv_threads

EXIT_SOME_FAILED = 1
MAX_TYPES = 5
"""Types of ignored files that are printed."""

MODEL_OPTIONS = {
    "max_pixels": "--max-pixels",
    "accept_webp": "--accept-webp",
    "threads": "--threads",
    "engine": "--engine",
    "results": "--results",
    "require_signature": "--require-signature",
    "unlike_training": "--unlike-training",
    "plan": "--plan",
}
URL_OPTIONS = {"model_name": "--model-name", "model_version": "--version", "api_key_file": "--api-key-file"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 0, or 1 if some of the images could not be predicted.

    Raises:
        SystemExit: With 2 for an invalid argument, model, service, key or output folder.
    """
    options = build_parser().parse_args(arguments)
    with clean_exit():
        return int(options.run(options))


def build_parser() -> argparse.ArgumentParser:
    """Builds the argument parser."""
    name = "segdec" if Path(sys.argv[0]).name == "segdec" else "python -m segdec"
    parser = argparse.ArgumentParser(prog=name, description="Find defects in photographs.")
    parser.add_argument("--version", action="version", version=f"segdec {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_predict(commands)
    add_watch(commands)
    add_plan(commands)
    add_signing(commands)
    return parser


def _add_predict(commands: Commands) -> None:
    command = commands.add_parser(
        "predict", help="label images, write masks and overlays", description="Label images."
    )
    command.set_defaults(run=inspect_images)
    command.add_argument(
        "images",
        nargs="+",
        type=Path,
        metavar="IMAGE",
        help="image files, folders of them, 'patterns/**/*.png', or lists of them (.txt, .csv, .jsonl)",
    )
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument("--model", type=Path, metavar="FOLDER", help="artifact to run on this machine")
    source.add_argument("--url", help="service to ask, for example http://127.0.0.1:8000")
    command.add_argument(
        "--out", type=Path, metavar="DIR", help="write NAME_mask.png and NAME_overlay.png there"
    )
    command.add_argument(
        "--max-pixels",
        type=parse_pixel_limit,
        metavar="N",
        help=f"with --model: largest photograph, height × width (default: {DEFAULT_MAX_PIXELS})",
    )
    command.add_argument(
        "--accept-webp",
        action="store_true",
        default=None,
        help="with --model: accept WebP files, in which damage cannot be detected: a file with zeros for "
        "half of it may be called good",
    )
    command.add_argument(
        "--engine",
        metavar="ENGINE",
        help=f"with --model: inference engine, {', '.join(ENGINES)} (default: the preferred one of those "
        "that the model was exported for and that are installed)",
    )
    command.add_argument(
        "--threads",
        type=parse_thread_count,
        metavar="N",
        help="with --model: threads of the engine (default: one per core that the process may use); the "
        "other steps use one more thread each",
    )
    command.add_argument(
        "--require-signature",
        type=Path,
        metavar="PUBLIC_KEYS",
        help="with --model: PEM file of trusted public keys, one of which must have signed the model",
    )
    command.add_argument(
        "--unlike-training",
        choices=get_args(UnlikeAction),
        help="with --model: whether to reject a photograph that certainly shows something else than those of "
        "the training, or to inspect it with a warning, for review instead of good (default: reject)",
    )
    command.add_argument(
        "--plan",
        type=Path,
        metavar="FILE",
        help="with --model: inspection plan, whose zones and rules decide about the defects that the model "
        "finds",
    )
    command.add_argument(
        "--threshold",
        type=float,
        metavar="T",
        help="score from which an image is defective, 0…1, without a review range (default: the model's own)",
    )
    scale = command.add_argument_group("many photographs")
    scale.add_argument(
        "--results",
        type=Path,
        metavar="FOLDER",
        help="with --model: write Parquet files there instead of a table; skip photographs that they contain",
    )
    scale.add_argument(
        "--shard",
        type=parse_shard,
        metavar="I/N",
        help="inspect shard I of N; run all shards, on any machines, into one folder",
    )
    scale.add_argument(
        "--ray",
        action="store_true",
        help="with --results: distribute over the cluster that RAY_ADDRESS names",
    )
    service = command.add_argument_group("with --url")
    service.add_argument("--model-name", metavar="NAME", help="name of the model; default: the service's own")
    service.add_argument(
        "--version", dest="model_version", metavar="V", help="version of that model, or its label"
    )
    service.add_argument(
        "--api-key-file", type=Path, metavar="FILE", help=f"file with the API key; default: ${KEY_VARIABLE}"
    )


def inspect_images(options: argparse.Namespace) -> int:
    """Predicts the images that the command line names."""
    check_options(options)
    ignored: Counter[str] = Counter()
    images = find_photographs(options.images, ignored)
    if ignored:
        types = ", ".join(f"{number:,} {suffix}" for suffix, number in ignored.most_common(MAX_TYPES))
        print(f"note: {ignored.total():,} files of other types were ignored: {types}", file=sys.stderr)
    if options.shard is not None:
        images = options.shard.select(images)
    return predict(images, options) if options.results is None else predict_many(images, options)


def check_options(options: argparse.Namespace) -> None:
    """Raises ConfigError for a threshold outside 0…1 or conflicting options."""
    if options.threshold is not None and not 0.0 <= options.threshold <= 1.0:
        raise ConfigError(f"--threshold {options.threshold} is not a score. Expected a number from 0 to 1.")
    for name, flag in MODEL_OPTIONS.items():
        if options.url is not None and getattr(options, name) is not None:
            raise ConfigError(f"{flag} is only for --model: a service has its own. Use it without --url.")
    if options.results is not None and options.out is not None:
        raise ConfigError("--results and --out were given. Use only one; --results includes the masks.")
    if options.ray and options.results is None:
        raise ConfigError("--ray needs --results with a folder that all machines share.")
    for name, flag in URL_OPTIONS.items():
        if options.url is None and getattr(options, name) is not None:
            raise ConfigError(f"{flag} is only for a service. Use it with --url, not with --model.")
    if options.model_version is not None and options.model_name is None:
        raise ConfigError("--version needs --model-name.")


@contextmanager
def open_inspector(options: argparse.Namespace) -> Iterator[Inspector]:
    """Opens the artifact of --model or the service at --url."""
    if options.url is None:
        yield open_model(options)
        return
    with open_client(options.url, options.api_key_file) as client:
        yield RemoteInspector(
            client,
            options.threshold,
            model=options.model_name,
            version=options.model_version,
            pictures=options.out is not None,
        )


def open_model(options: argparse.Namespace) -> LocalInspector:
    """Loads the artifact of --model."""
    settings = model_settings(options)
    limit_opencv_threads()
    inspector = LocalInspector(**settings)  # first, because the extra of an engine includes `images`
    raise_pixel_limit(settings["max_pixels"])
    for note in inspector.notes:
        print(f"warning: {note}", file=sys.stderr)
    return inspector


def model_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the arguments of `LocalInspector`."""
    return {
        "model": options.model,
        "threshold": options.threshold,
        "max_pixels": options.max_pixels or DEFAULT_MAX_PIXELS,
        "threads": options.threads,
        "engine": options.engine,
        "accept_webp": bool(options.accept_webp),
        "trusted": options.require_signature,
        "unlike": options.unlike_training or "reject",
        "plan": None if options.plan is None else read_plan(options.plan),
    }


def predict(images: Sequence[Path], options: argparse.Namespace) -> int:
    """Inspects `images`, prints a table and writes the pictures to --out."""
    searched = [path for path in options.images if path.is_dir()]
    folder = None if options.out is None else OverlayFolder(options.out, images, searched)
    with open_inspector(options) as inspector:
        table = TerminalTable(images, inspector.labels, with_reason=inspector.has_plan)
        table.print_headings()
        missed = inspect(images, inspector, table, *([] if folder is None else [folder.write]))
    print_plan_changes(table.plan_changes, images)
    print_review_count(table.review_count, images)
    print_not_inspected_count(missed, images)
    return EXIT_SOME_FAILED if missed else 0


def predict_many(images: Sequence[Path], options: argparse.Namespace) -> int:
    """Inspects the `images` that --results does not contain, and prints how many there were."""
    from segdec.command_line.parquet_results import ResultFolder

    inspector = open_model(options)
    with ResultFolder(options.results, inspector.identity) as results:
        left = [path for path in images if str(path) not in results.done]
        if options.ray:
            from segdec.command_line.ray_inspection import inspect_on_ray

            inspect_on_ray(left, model_settings(options), results)
        else:
            inspect(left, inspector, results)
    counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(results.counts.items())) or "nothing new"
    print(f"{len(images):,} photographs, {len(images) - len(left):,} of them done before: {counts}")
    missed = results.counts[NOT_INSPECTED] + sum(str(path) in results.not_inspected for path in images)
    print_not_inspected_count(missed, images)
    if missed:
        print(f"The column 'error' of {options.results} has the reasons.", file=sys.stderr)
    return EXIT_SOME_FAILED if missed else 0


if __name__ == "__main__":
    sys.exit(main())
