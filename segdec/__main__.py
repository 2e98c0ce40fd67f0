"""Predicts image files: `python -m segdec predict IMAGE… --model FOLDER`, or `--url` for a service."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from segdec import __version__
from segdec.command_line.inspectors import Inspector, LocalInspector, RemoteInspector
from segdec.command_line.picture_folder import PictureFolder
from segdec.command_line.table import Table
from segdec.errors import ConfigError, ImageError
from segdec.images import DEFAULT_MAX_PIXELS
from segdec.terminal import allow_pixels, clean_exit, pixel_limit

EXIT_SOME_FAILED = 1
KEY_VARIABLE = "SEGDEC_API_KEY"
URL_OPTIONS = {"model_name": "--model-name", "model_version": "--version", "api_key_file": "--api-key-file"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 0, or 1 when some of the images could not be predicted.

    Raises:
        SystemExit: With 2 on a wrong argument, an unusable model, service or output folder.
    """
    options = build_parser().parse_args(arguments)
    with clean_exit():
        check_options(options)
        images = list(dict.fromkeys(options.images))
        folder = None if options.out is None else PictureFolder(options.out, images)
        with open_inspector(options) as inspector:
            return predict(images, inspector, folder)


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m segdec", description="Find defects in photographs.")
    parser.add_argument("--version", action="version", version=f"segdec {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "predict", help="label images, write masks and overlays", description="Label images."
    )
    command.add_argument("images", nargs="+", type=Path, metavar="IMAGE", help="image files")
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument("--model", type=Path, metavar="FOLDER", help="artifact that answers here")
    source.add_argument("--url", help="service that answers, for example http://127.0.0.1:8000")
    command.add_argument(
        "--out", type=Path, metavar="DIR", help="write NAME_mask.png and NAME_overlay.png there"
    )
    command.add_argument(
        "--max-pixels",
        type=pixel_limit,
        metavar="N",
        help=f"with --model: largest photograph, height × width (default: {DEFAULT_MAX_PIXELS})",
    )
    command.add_argument(
        "--threshold", type=float, metavar="T", help="score from which an image is defective, 0…1"
    )
    service = command.add_argument_group("with --url")
    service.add_argument("--model-name", metavar="NAME", help="model; default: the service's own")
    service.add_argument(
        "--version", dest="model_version", metavar="V", help="version of that model, or a label of one"
    )
    service.add_argument(
        "--api-key-file", type=Path, metavar="FILE", help=f"holds the key; default: ${KEY_VARIABLE}, if set"
    )
    return parser


def check_options(options: argparse.Namespace) -> None:
    """Refuses what the parser cannot see.

    Raises:
        ConfigError: For a threshold outside 0…1 or options that do not go together.
    """
    if options.threshold is not None and not 0.0 <= options.threshold <= 1.0:
        raise ConfigError(f"--threshold {options.threshold} is no score. Expected a number from 0 to 1.")
    if options.url is not None and options.max_pixels is not None:
        raise ConfigError(
            "--max-pixels is for --model: a service has a limit of its own. Expected it without --url."
        )
    for name, flag in URL_OPTIONS.items():
        if options.url is None and getattr(options, name) is not None:
            raise ConfigError(f"{flag} is for a service. Expected it with --url; leave it out with --model.")
    if options.model_version is not None and options.model_name is None:
        raise ConfigError("--version without --model-name. Expected the name of the model with it.")


@contextmanager
def open_inspector(options: argparse.Namespace) -> Iterator[Inspector]:
    """What answers: the artifact of --model or the service at --url."""
    if options.url is None:
        max_pixels = options.max_pixels or DEFAULT_MAX_PIXELS
        allow_pixels(max_pixels)
        yield LocalInspector(options.model, options.threshold, max_pixels)
        return
    from segdec.client import Client

    with Client(options.url, api_key=read_key(options.api_key_file)) as client:
        yield RemoteInspector(
            client,
            options.threshold,
            model=options.model_name,
            version=options.model_version,
            pictures=options.out is not None,
        )


def read_key(file: Path | None) -> str | None:
    """The API key in `file`, else in the environment, else None.

    Raises:
        ConfigError: If the file cannot be read.
    """
    if file is None:
        return os.environ.get(KEY_VARIABLE) or None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(
            f"--api-key-file {file} cannot be read: {reason}. Expected a file that holds the key alone."
        ) from error


def predict(images: Sequence[Path], inspector: Inspector, folder: PictureFolder | None) -> int:
    """Inspects each of `images`, prints a table row each and writes its pictures to `folder`."""
    table = Table(images, inspector.classes)
    table.print_headings()
    failed = 0
    for path in images:
        try:
            finding = inspector.inspect(path)
            if folder is not None:
                folder.write(path, finding)
        except ImageError as error:
            failed += 1
            table.print_failure(path, error)
        else:
            table.print_finding(path, finding)
    return EXIT_SOME_FAILED if failed else 0


if __name__ == "__main__":
    sys.exit(main())
