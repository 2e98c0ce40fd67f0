"""Predicts image files: `segdec predict IMAGE… --model FOLDER`, or `--url` for a service; watches folders of
cameras: `segdec watch FOLDER --url …`; signs models.

In place of a file, a folder stands for all photographs below it, a list for those it names, a pattern for
those that match it. With `--results` any number of them, on any number of machines, go into Parquet files.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segdec import __version__
from segdec.command_line.inspection_loop import (
    NOT_INSPECTED,
    TerminalTable,
    inspect,
    print_missed_count,
    print_review_count,
)
from segdec.command_line.inspectors import Inspector, LocalInspector, RemoteInspector
from segdec.command_line.overlay_folder import OverlayFolder
from segdec.command_line.photographs import find_photographs, parse_shard
from segdec.command_line.service_keys import KEY_VARIABLE, explain_key_errors, read_key
from segdec.command_line.signing import add_signing
from segdec.command_line.watch import add_watch
from segdec.engines import ENGINES
from segdec.errors import ConfigError
from segdec.images import DEFAULT_MAX_PIXELS
from segdec.runtime.cli import clean_exit, parse_pixel_limit, raise_pixel_limit
from segdec.runtime.threads import limit_opencv_threads, parse_thread_count

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

EXIT_SOME_FAILED = 1
MODEL_OPTIONS = {
    "max_pixels": "--max-pixels",
    "accept_webp": "--accept-webp",
    "threads": "--threads",
    "engine": "--engine",
    "results": "--results",
    "require_signature": "--require-signature",
}
URL_OPTIONS = {"model_name": "--model-name", "model_version": "--version", "api_key_file": "--api-key-file"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 0, or 1 if some of the images could not be predicted.

    Raises:
        SystemExit: With 2 on a wrong argument, an unusable model, service, key or output folder.
    """
    options = build_parser().parse_args(arguments)
    with clean_exit():
        return int(options.run(options))


def build_parser() -> argparse.ArgumentParser:
    """Describes the command line."""
    parser = argparse.ArgumentParser(prog=program_name(), description="Find defects in photographs.")
    parser.add_argument("--version", action="version", version=f"segdec {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_predict(commands)
    add_watch(commands)
    add_signing(commands)
    return parser


def _add_predict(commands: "Commands") -> None:
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
    source.add_argument("--model", type=Path, metavar="FOLDER", help="artifact that answers here")
    source.add_argument("--url", help="service that answers, for example http://127.0.0.1:8000")
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
        help="with --model: inspect WebP files too, whose damage goes unnoticed: one with zeros for half of "
        "it may be called good",
    )
    command.add_argument(
        "--engine",
        metavar="ENGINE",
        help=f"with --model: what runs the network, {', '.join(ENGINES)} (default: of those that the "
        "model was exported for and that are installed, the preferred one)",
    )
    command.add_argument(
        "--threads",
        type=parse_thread_count,
        metavar="N",
        help="with --model: threads of the engine (default: one for each core that the process may use); "
        "reading, preparing, interpreting and writing take one more each, which is short beside it",
    )
    command.add_argument(
        "--require-signature",
        type=Path,
        metavar="PUBLIC_KEYS",
        help="with --model: PEM file of trusted public keys; a model that none of them signed is refused",
    )
    command.add_argument(
        "--threshold",
        type=float,
        metavar="T",
        help="score from which an image is defective, 0…1, and none is for review (default: the model's own)",
    )
    scale = command.add_argument_group("many photographs")
    scale.add_argument(
        "--results",
        type=Path,
        metavar="FOLDER",
        help="with --model: write Parquet files there and no table; what they hold is not done again",
    )
    scale.add_argument(
        "--shard",
        type=parse_shard,
        metavar="I/N",
        help="inspect part I of N: run all of them, on any machines, into one folder",
    )
    scale.add_argument(
        "--ray", action="store_true", help="with --results: spread over the cluster that RAY_ADDRESS names"
    )
    service = command.add_argument_group("with --url")
    service.add_argument("--model-name", metavar="NAME", help="model; default: the service's own")
    service.add_argument(
        "--version", dest="model_version", metavar="V", help="version of that model, or a label of one"
    )
    service.add_argument(
        "--api-key-file", type=Path, metavar="FILE", help=f"holds the key; default: ${KEY_VARIABLE}, if set"
    )


def program_name() -> str:
    """Returns what the command line was called as: the installed command, or the module."""
    return "segdec" if Path(sys.argv[0]).name == "segdec" else "python -m segdec"


def inspect_images(options: argparse.Namespace) -> int:
    """Predicts the images that the command line names."""
    check_options(options)
    images = find_photographs(options.images)
    if options.shard is not None:
        images = options.shard.select(images)
    return predict(images, options) if options.results is None else predict_many(images, options)


def check_options(options: argparse.Namespace) -> None:
    """Refuses what the parser cannot see.

    Raises:
        ConfigError: For a threshold outside 0…1 or options that do not go together.
    """
    if options.threshold is not None and not 0.0 <= options.threshold <= 1.0:
        raise ConfigError(f"--threshold {options.threshold} is no score. Expected a number from 0 to 1.")
    for name, flag in MODEL_OPTIONS.items():
        if options.url is not None and getattr(options, name) is not None:
            raise ConfigError(f"{flag} is for --model: a service has its own. Expected it without --url.")
    if options.results is not None and options.out is not None:
        raise ConfigError(
            "--results and --out were given. Expected one of them; --results holds the masks too."
        )
    if options.ray and options.results is None:
        raise ConfigError("--ray without --results. Expected the folder, one that all machines share.")
    for name, flag in URL_OPTIONS.items():
        if options.url is None and getattr(options, name) is not None:
            raise ConfigError(f"{flag} is for a service. Expected it with --url; leave it out with --model.")
    if options.model_version is not None and options.model_name is None:
        raise ConfigError("--version without --model-name. Expected the name of the model with it.")


@contextmanager
def open_inspector(options: argparse.Namespace) -> Iterator[Inspector]:
    """Opens what answers: the artifact of --model or the service at --url."""
    if options.url is None:
        yield open_model(options)
        return
    from segdec.client import Client

    key = read_key(options.api_key_file)
    with (
        explain_key_errors(options.url, options.api_key_file, key),
        Client(options.url, api_key=key) as client,
    ):
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
    inspector = LocalInspector(**settings)  # first: the extra of an engine holds that of the images
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
    }


def predict(images: Sequence[Path], options: argparse.Namespace) -> int:
    """Inspects each of `images`, prints a table row each and writes its pictures to --out."""
    searched = [path for path in options.images if path.is_dir()]
    folder = None if options.out is None else OverlayFolder(options.out, images, searched)
    with open_inspector(options) as inspector:
        table = TerminalTable(images, inspector.labels)
        table.print_headings()
        missed = inspect(images, inspector, table, *([] if folder is None else [folder.write]))
    print_review_count(table.review_count, images)
    print_missed_count(missed, images)
    return EXIT_SOME_FAILED if missed else 0


def predict_many(images: Sequence[Path], options: argparse.Namespace) -> int:
    """Inspects those of `images` that the files in --results do not hold, and says how many there were.

    Those that could not be inspected count each time: nothing is known about them.
    """
    from segdec.command_line.parquet_results import ResultFolder

    inspector = open_model(options)
    with ResultFolder(options.results, inspector.identity) as results:
        left = [path for path in images if str(path) not in results.done]
        if options.ray:
            from segdec.command_line.ray_inspection import inspect_on_ray

            inspect_on_ray(left, model_settings(options), results)
        else:
            inspect(left, inspector, results)
    found = ", ".join(f"{count:,} {kind}" for kind, count in sorted(results.counts.items())) or "nothing new"
    print(f"{len(images):,} photographs, {len(images) - len(left):,} of them done before: {found}")
    missed = results.counts[NOT_INSPECTED] + sum(str(path) in results.not_inspected for path in images)
    print_missed_count(missed, images)
    if missed:
        print(f"Their rows in {options.results} have the reason in the column 'error'.", file=sys.stderr)
    return EXIT_SOME_FAILED if missed else 0


if __name__ == "__main__":
    sys.exit(main())
